"""The real Anthropic SDK, unchanged, before models that only write text and before servers with tools of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from anthropic.types import Message, ToolUseBlock

from tests.support.backend import Backend, body, chunk, error, sse, text
from tests.support.speech import Call, Mode, says

WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
CLOCK: Any = {"name": "get_time", "description": "The time.", "input_schema": {"type": "object", "properties": {}}}
WRITE: Any = {
    "name": "write_file",
    "input_schema": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
    },
}
TOOLS = [WEATHER, CLOCK, WRITE]
OSLO, ROME = Call("get_weather", {"city": "Oslo"}), Call("get_weather", {"city": "Rome", "days": 2})

Turns: TypeAlias = list[Any]
Send: TypeAlias = Callable[..., Message]


@pytest.fixture
def client(url: str) -> Iterator[Anthropic]:
    with Anthropic(base_url=url, api_key="none", max_retries=0) as sdk:
        yield sdk


@pytest.fixture(params=["whole", "stream"])
def send(request: pytest.FixtureRequest, client: Anthropic) -> Send:
    """Asks for a message, in one of the two ways."""

    def ask(messages: Turns | str, **fields: Any) -> Message:
        turns = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        asked: dict[str, Any] = {"model": "m", "max_tokens": 500, "messages": turns, "tools": TOOLS, **fields}
        if request.param == "whole":
            return client.messages.create(**asked)  # type: ignore[no-any-return]
        with client.messages.stream(**asked) as stream:
            return stream.get_final_message()

    return ask


def calls(message: Message) -> list[Call]:
    return [Call(block.name, block.input) for block in message.content if isinstance(block, ToolUseBlock)]


def said(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def results(message: Message, *contents: str, **fields: Any) -> Any:
    """The turn that answers the calls of ``message``."""
    ids = [block.id for block in message.content if isinstance(block, ToolUseBlock)]
    blocks = [
        {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}
        for call_id, content in zip(ids, contents, strict=True)
    ]
    return {"role": "user", "content": blocks}


def test_a_call(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Let me look. ", OSLO))
    message = send("Rain in Oslo?", system="Be brief.", extra_body={"temperature": 0.1})
    assert calls(message) == [OSLO]
    assert said(message).strip() == "Let me look."
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.output_tokens) == (400, 30)
    sent = backend.chats[-1].json
    assert ("tools" in sent) == (mode == "native")
    assert sent["messages"][0]["content"].startswith("Be brief.")
    assert (sent["max_tokens"], sent["temperature"]) == (500, 0.1)


def test_parallel_calls(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, ROME))
    message = send("Rain in Oslo and Rome?")
    assert calls(message) == [OSLO, ROME]
    assert [block.type for block in message.content] == ["tool_use", "tool_use"]
    assert len({block.id for block in message.content if isinstance(block, ToolUseBlock)}) == 2


def test_several_steps(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(
        says(mode, "", OSLO, ROME), says(mode, "Now the time.", Call("get_time")), says(mode, "Take a coat.")
    )
    turns: Turns = [{"role": "user", "content": "A coat?"}]
    first = send(turns)
    turns += [first.to_param(), results(first, "rain", "sun")]
    second = send(turns)
    assert calls(second) == [Call("get_time")]
    turns += [second.to_param(), results(second, "9:00")]
    third = send(turns)
    assert (said(third), third.stop_reason) == ("Take a coat.", "end_turn")
    sent = backend.chats[-1].json["messages"]
    if mode == "native":
        assert [turn["role"] for turn in sent] == ["user", "assistant", "tool", "tool", "assistant", "tool"]
    else:
        assert [turn["role"] for turn in sent] == ["system", "user", "assistant", "user", "assistant", "user"]
        assert sent[3]["content"].index("rain") < sent[3]["content"].index("sun")


def test_a_call_without_arguments(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", Call("get_time")))
    assert calls(send("The time?")) == [Call("get_time", {})]


def test_a_tool_that_failed(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO), says(mode, "I could not look."))
    first = send("Rain in Oslo?")
    asked = {"role": "user", "content": "Rain in Oslo?"}
    answer = send([asked, first.to_param(), results(first, "no network", is_error=True)])
    assert said(answer) == "I could not look."
    told = backend.chats[-1].json["messages"][-1]["content"]
    assert ('status="error"' in told) if mode == "xml" else (told == "Error: no network")


def test_thinking_comes_back_and_may_be_sent_again(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, reasoning="Which city?"), says(mode, "Rain."))
    thinking = {"type": "enabled", "budget_tokens": 1024}
    first = send("Rain in Oslo?", thinking=thinking)
    assert [block.type for block in first.content] == ["thinking", "tool_use"]
    thought = first.content[0]
    assert thought.type == "thinking"
    assert (thought.thinking, bool(thought.signature)) == ("Which city?", True)
    asked = {"role": "user", "content": "Rain in Oslo?"}
    answer = send([asked, first.to_param(), results(first, "rain")], thinking={"type": "adaptive"})
    assert said(answer) == "Rain."


def test_markup_within_a_string_is_data(send: Send, backend: Backend, mode: Mode) -> None:
    wanted = Call("write_file", {"path": "a.md", "text": 'Close it with </tool_call> or "</tool_call>".\n<think>'})
    backend.script(says(mode, "", wanted))
    assert calls(send("Write it down.")) == [wanted]


@pytest.mark.parametrize(
    ("choice", "native"),
    [
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "get_weather"}, {"type": "function", "function": {"name": "get_weather"}}),
    ],
)
def test_a_forced_choice(send: Send, backend: Backend, mode: Mode, choice: Any, native: Any) -> None:
    backend.script(says(mode, "", OSLO))
    message = send("Hello.", tool_choice=choice)
    assert (calls(message), message.stop_reason) == ([OSLO], "tool_use")
    assert backend.chats[-1].json.get("tool_choice") == (native if mode == "native" else None)


def test_no_tool_may_be_called(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "It may rain."))
    message = send("Rain in Oslo?", tool_choice={"type": "none"})
    assert (calls(message), said(message), message.stop_reason) == ([], "It may rain.", "end_turn")


def test_only_one_call_where_several_are_forbidden(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, *([ROME] if mode == "xml" else [])))
    message = send("Rain?", tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert calls(message) == [OSLO]
    assert backend.chats[-1].json.get("parallel_tool_calls") == (False if mode == "native" else None)


def test_a_reply_that_was_cut(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Look: ", OSLO, ROME, finish="length", cut=8))
    message = send("Rain?", max_tokens=20)
    assert (calls(message), message.stop_reason) == ([OSLO], "max_tokens")


def test_a_refusal(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Well", finish="content_filter"))
    assert send("Rain?").stop_reason == "refusal"


def test_a_stop_sequence_that_the_backend_tells(send: Send, backend: Backend) -> None:
    choice = {"index": 0, "finish_reason": "stop", "stop_reason": "END"}
    streamed = sse(chunk({"content": "One."}), chunk(choices=[{**choice, "delta": {}}]), "data: [DONE]\n\n")
    whole = body({"choices": [{**choice, "message": {"role": "assistant", "content": "One."}}]})

    async def reply(exchange: Any) -> None:
        await (streamed if exchange.request.json.get("stream") else whole)(exchange)

    backend.script(reply)
    message = send("Count.", stop_sequences=["END"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "END")
    assert backend.chats[-1].json["stop"] == ["END"]


def test_a_stream_that_breaks_raises_instead_of_ending(client: Anthropic, backend: Backend) -> None:
    backend.script(sse(chunk({"content": "Let me look"}), end="reset"))
    heard: list[str] = []

    def listen() -> None:
        with client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], tools=TOOLS
        ) as stream:
            heard.extend(stream.text_stream)

    with pytest.raises(anthropic.APIStatusError, match="backend") as caught:
        listen()
    assert "".join(heard) == "Let me look"
    assert caught.value.body["type"] == "error"  # type: ignore[index]


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (error(503, "Loading model"), anthropic.OverloadedError, "Loading model"),
        (error(429, "Slow down"), anthropic.RateLimitError, "Slow down"),
        (error(401, "Who are you?"), anthropic.AuthenticationError, "Who are you"),
        (error(500, "It broke"), anthropic.InternalServerError, "It broke"),
        (
            error(400, "the request exceeds the available context size", type="exceed_context_size_error"),
            anthropic.BadRequestError,
            "prompt is too long: the request exceeds",
        ),
    ],
)
def test_an_error_of_the_backend_is_the_sdks_own_exception(
    send: Send, backend: Backend, reply: Any, kind: type[anthropic.APIStatusError], says: str
) -> None:
    backend.script(reply)
    with pytest.raises(kind, match=says):
        send("hi")


def test_what_cannot_be_served_is_a_400_with_the_reason(send: Send) -> None:
    with pytest.raises(anthropic.BadRequestError, match="bash_20250124") as caught:
        send("hi", tools=[{"type": "bash_20250124", "name": "bash"}])
    assert caught.value.type == "invalid_request_error"
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
    with pytest.raises(anthropic.BadRequestError, match="application/pdf"):
        send([{"role": "user", "content": [pdf]}])


def test_hosted_tools_are_left_out_and_named(client: Anthropic, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "It may rain."))
    raw = client.messages.with_raw_response.create(
        model="m",
        max_tokens=9,
        messages=[{"role": "user", "content": "Rain?"}],
        tools=[WEATHER, {"type": "web_search_20250305", "name": "web_search"}],
    )
    assert raw.headers["x-toolgraft-dropped-tools"] == "web_search_20250305"
    assert said(raw.parse()) == "It may rain."


def test_models_can_be_listed_and_looked_up(client: Anthropic) -> None:
    (model,) = list(client.models.list())
    assert (model.id, model.type, model.display_name) == ("scripted", "model", "scripted")
    assert client.models.retrieve("scripted").created_at.year == 1970
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.models.retrieve("other")
    assert caught.value.type == "not_found_error"


def test_tokens_are_counted_without_generating_any(client: Anthropic, backend: Backend) -> None:
    before = len(backend.chats)
    raw = client.messages.with_raw_response.count_tokens(
        model="m", messages=[{"role": "user", "content": "x" * 400}], tools=TOOLS
    )
    assert raw.headers["x-toolgraft-estimated"] == "true"
    assert raw.parse().input_tokens > 150
    assert len(backend.chats) == before
    with pytest.raises(anthropic.BadRequestError, match="`messages`"):
        client.messages.count_tokens(model="m", messages=[])


def test_the_sdks_own_tool_loop(client: Anthropic, backend: Backend, mode: Mode) -> None:
    @beta_tool
    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: Its name.
        """
        return f"rain in {city}"

    backend.script(says(mode, "", OSLO), says(mode, "Take a coat."))
    final = client.beta.messages.tool_runner(
        model="m", max_tokens=99, messages=[{"role": "user", "content": "A coat?"}], tools=[get_weather]
    ).until_done()
    assert [block.text for block in final.content if block.type == "text"] == ["Take a coat."]
    assert "rain in Oslo" in backend.chats[-1].body.decode()


def test_a_thread_falls_back_to_sending_all_of_it(client: Anthropic, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Rain."), says(mode, "Sun."))
    thread = client.beta.messages.thread(model="m", max_tokens=99, unsupported_request_behavior="continue_unthreaded")
    thread.send({"role": "user", "content": "In Oslo?"})
    assert thread.send({"role": "user", "content": "In Rome?"}).content[0].type == "text"
    assert [turn["content"] for turn in backend.chats[-1].json["messages"]] == ["In Oslo?", "Rain.", "In Rome?"]


async def test_the_asynchronous_client_works_too(url: str, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, ROME))
    async with (
        AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as client,
        client.messages.stream(
            model="m", max_tokens=99, messages=[{"role": "user", "content": "Rain?"}], tools=TOOLS
        ) as stream,
    ):
        assert calls(await stream.get_final_message()) == [OSLO, ROME]


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/"])
def test_base_urls_as_people_write_them(url: str, backend: Backend, base: str) -> None:
    backend.script(text("Hello."))
    with Anthropic(base_url=url + base, api_key="none", max_retries=0) as client:
        message = client.beta.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], betas=["x-2026-01-01"]
        )
        assert client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "hi"}]).input_tokens
    assert message.content[0].type == "text"

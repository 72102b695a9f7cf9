"""The real OpenAI SDK's Responses, before models that only write text and before servers with tools of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import Response
from pydantic import BaseModel

from proxy.wire.openai_responses import KEEP_ALIVE
from tests.support.backend import Backend, Exchange, chunk, error, sse, text
from tests.support.proxy import http_client, proxy_before
from tests.support.responses import final
from tests.support.speech import Call, Mode, says

WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": False,
}
CLOCK: Any = {"type": "function", "name": "get_time", "description": "The time.", "parameters": None, "strict": None}
WRITE: Any = {
    "type": "function",
    "name": "write_file",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
    },
}
TOOLS = [WEATHER, CLOCK, WRITE]
OSLO, ROME = Call("get_weather", {"city": "Oslo"}), Call("get_weather", {"city": "Rome", "days": 2})

Items: TypeAlias = list[Any]
Send: TypeAlias = Callable[..., Response]


@pytest.fixture
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as sdk:
        yield sdk


@pytest.fixture(params=["whole", "stream"])
def send(request: pytest.FixtureRequest, client: OpenAI) -> Send:
    """Asks for a response, in one of the two ways."""

    def ask(given: Items | str, **fields: Any) -> Response:
        asked: dict[str, Any] = {"model": "m", "input": given, "tools": TOOLS, **fields}
        if request.param == "whole":
            return client.responses.create(**asked)  # type: ignore[no-any-return]
        with client.responses.create(stream=True, **asked) as stream:
            *_, last = stream
        assert last.type in ("response.completed", "response.incomplete")
        return last.response  # type: ignore[no-any-return]

    return ask


def calls(response: Response) -> list[Call]:
    return [Call(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]


def results(response: Response, *outputs: Any) -> Items:
    """What answers the calls of ``response``: its own items, sent back, and the outputs."""
    ids = [item.call_id for item in response.output if item.type == "function_call"]
    replayed = [item.model_dump(mode="json", exclude_unset=True) for item in response.output]
    return replayed + [
        {"type": "function_call_output", "call_id": call_id, "output": output}
        for call_id, output in zip(ids, outputs, strict=True)
    ]


def user(words: str) -> Any:
    return {"role": "user", "content": words}


def test_a_call(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Let me look. ", OSLO))
    response = send("Rain in Oslo?", instructions="Be brief.", temperature=0.1, max_output_tokens=500)
    assert calls(response) == [OSLO]
    assert response.output_text.strip() == "Let me look."
    assert response.status == "completed"
    assert response.usage
    assert (response.usage.input_tokens, response.usage.output_tokens) == (400, 30)
    sent = backend.chats[-1].json
    assert ("tools" in sent) == (mode == "native")
    assert sent["messages"][0]["content"].startswith("Be brief.")
    assert (sent["max_tokens"], sent["temperature"]) == (500, 0.1)


def test_parallel_calls(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, ROME))
    response = send("Rain in Oslo and Rome?")
    assert calls(response) == [OSLO, ROME]
    assert [item.type for item in response.output] == ["function_call", "function_call"]
    assert len({item.call_id for item in response.output if item.type == "function_call"}) == 2


def test_several_steps(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(
        says(mode, "", OSLO, ROME), says(mode, "Now the time.", Call("get_time")), says(mode, "Take a coat.")
    )
    items: Items = [user("A coat?")]
    first = send(items)
    items += results(first, "rain", [{"type": "input_text", "text": "sun"}])
    second = send(items)
    assert calls(second) == [Call("get_time")]
    items += results(second, "9:00")
    third = send(items)
    assert (third.output_text, third.status) == ("Take a coat.", "completed")
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
    answer = send([user("Rain in Oslo?"), *results(first, "Error: no network")])
    assert answer.output_text == "I could not look."
    assert "no network" in backend.chats[-1].json["messages"][-1]["content"]


@pytest.mark.parametrize("summary", [None, "auto"])
def test_thinking_comes_back_and_may_be_sent_again(
    send: Send, backend: Backend, mode: Mode, summary: str | None
) -> None:
    backend.script(says(mode, "", OSLO, reasoning="Which city?"), says(mode, "Rain."))
    first = send("Rain in Oslo?", reasoning={"summary": summary}, include=["reasoning.encrypted_content"])
    assert [item.type for item in first.output] == ["reasoning", "function_call"]
    thought = first.output[0]
    assert thought.type == "reasoning"
    assert [part.text for part in thought.content or thought.summary] == ["Which city?"]
    assert bool(thought.summary) == (summary is not None)
    assert send([user("Rain in Oslo?"), *results(first, "rain")]).output_text == "Rain."


def test_markup_within_a_string_is_data(send: Send, backend: Backend, mode: Mode) -> None:
    wanted = Call("write_file", {"path": "a.md", "text": 'Close it with </tool_call> or "</tool_call>".\n<think>'})
    backend.script(says(mode, "", wanted))
    assert calls(send("Write it down.")) == [wanted]


@pytest.mark.parametrize(
    ("choice", "native"),
    [
        ("required", "required"),
        ({"type": "function", "name": "get_weather"}, {"type": "function", "function": {"name": "get_weather"}}),
    ],
)
def test_a_forced_choice(send: Send, backend: Backend, mode: Mode, choice: Any, native: Any) -> None:
    backend.script(says(mode, "", OSLO))
    assert calls(send("Hello.", tool_choice=choice)) == [OSLO]
    assert backend.chats[-1].json.get("tool_choice") == (native if mode == "native" else None)


def test_no_tool_may_be_called(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "It may rain."))
    response = send("Rain in Oslo?", tool_choice="none")
    assert (calls(response), response.output_text) == ([], "It may rain.")


def test_only_the_allowed_tools_are_offered(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO))
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_weather"}]}
    assert calls(send("Rain in Oslo?", tool_choice=allowed)) == [OSLO]
    sent = backend.chats[-1].json
    assert [tool["function"]["name"] for tool in sent.get("tools", [])] == (["get_weather"] if mode == "native" else [])


def test_only_one_call_where_several_are_forbidden(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, *([ROME] if mode == "xml" else [])))
    response = send("Rain?", parallel_tool_calls=False)
    assert calls(response) == [OSLO]
    assert not response.parallel_tool_calls
    assert backend.chats[-1].json.get("parallel_tool_calls") == (False if mode == "native" else None)


def test_a_reply_that_was_cut(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Look: ", OSLO, ROME, finish="length", cut=8))
    response = send("Rain?", max_output_tokens=20)
    assert (calls(response), response.status) == ([OSLO], "incomplete")
    assert response.incomplete_details
    assert response.incomplete_details.reason == "max_output_tokens"


def test_a_filtered_reply(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Well", finish="content_filter"))
    response = send("Rain?")
    assert response.incomplete_details
    assert response.incomplete_details.reason == "content_filter"


def test_a_custom_tool_takes_free_text(send: Send, backend: Backend, mode: Mode) -> None:
    patch = {"type": "custom", "name": "apply", "format": {"type": "grammar", "syntax": "lark", "definition": "s: /x/"}}
    backend.script(says(mode, "", Call("apply", {"input": "*** Begin\n+x"})), says(mode, "Done."))
    first = send("Patch it.", tools=[patch])
    (item,) = first.output
    assert item.type == "custom_tool_call"
    assert (item.name, item.input) == ("apply", "*** Begin\n+x")
    assert "s: /x/" in backend.chats[-1].body.decode()
    output = {"type": "custom_tool_call_output", "call_id": item.call_id, "output": "applied"}
    answer = send([user("Patch it."), item.model_dump(mode="json", exclude_unset=True), output], tools=[patch])
    assert answer.output_text == "Done."


def test_tools_in_a_name_space(send: Send, backend: Backend, mode: Mode) -> None:
    space = {"type": "namespace", "name": "mcp__files__", "description": "Files.", "tools": [WRITE]}
    backend.script(says(mode, "", Call("mcp__files__write_file", {"path": "a", "text": "b"})), says(mode, "Done."))
    first = send("Write.", tools=[space])
    (item,) = first.output
    assert item.type == "function_call"
    assert (item.namespace, item.name) == ("mcp__files__", "write_file")
    assert send([user("Write."), *results(first, "written")], tools=[space]).output_text == "Done."
    assert "mcp__files__write_file" in json.dumps(backend.chats[-1].json["messages"][-2])


def test_a_tool_that_is_only_a_type(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", Call("local_shell", {"command": ["ls"]})))
    (item,) = send("Which files?", tools=[{"type": "local_shell"}]).output
    assert item.type == "local_shell_call"
    assert item.action.command == ["ls"]


def test_an_image_among_the_results(send: Send, backend: Backend, mode: Mode) -> None:
    png = "data:image/png;base64,iVBORw0KGgo="
    backend.script(says(mode, "", Call("get_time")), says(mode, "A clock."))
    first = send("The time?")
    answer = send([user("The time?"), *results(first, [{"type": "input_image", "image_url": png, "detail": "auto"}])])
    assert answer.output_text == "A clock."
    last = backend.chats[-1].json["messages"][-1]
    assert last["role"] == "user"
    assert [part["image_url"]["url"] for part in last["content"] if part["type"] == "image_url"] == [png]


def test_an_answer_in_a_schema(client: OpenAI, backend: Backend, mode: Mode) -> None:
    class Weather(BaseModel):
        city: str
        rain: bool

    backend.script(says(mode, '{"city": "Oslo", "rain": true}'))
    parsed = client.responses.parse(model="m", input="Rain in Oslo?", text_format=Weather)
    assert parsed.output_parsed == Weather(city="Oslo", rain=True)
    sent = backend.chats[-1].json["response_format"]
    assert sent["json_schema"]["name"] == "Weather"
    assert set(sent["json_schema"]["schema"]["properties"]) == {"city", "rain"}


def test_the_sdks_stream_helper(client: OpenAI, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Let me look at the map. ", OSLO, ROME, reasoning="Two cities, so two calls."))
    words = ""
    with client.responses.stream(model="m", input="Rain?", tools=TOOLS) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                words += event.delta
                assert event.snapshot == words
        response = stream.get_final_response()
    assert calls(response) == [OSLO, ROME]
    assert words.strip() == "Let me look at the map."


def test_the_raw_stream_holds_to_every_rule(url: str, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Let me look. ", OSLO, Call("get_time"), reasoning="Two calls."))
    asked = {"model": "m", "input": "Rain?", "tools": TOOLS, "stream": True}
    with http_client(url) as http:
        reply = http.post("/v1/responses", json=asked)
    assert reply.headers["content-type"].startswith("text/event-stream")
    kinds = [item["type"] for item in final(reply.content)["output"]]
    assert kinds == ["reasoning", "message", "function_call", "function_call"]


def test_a_stream_that_breaks_ends_as_a_failed_response(url: str, client: OpenAI, backend: Backend) -> None:
    backend.script(sse(chunk({"content": "Let me look"}), end="reset"))
    with client.responses.create(model="m", input="hi", tools=TOOLS, stream=True) as stream:
        events = list(stream)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Let me look"
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error
    assert (last.response.status, last.response.error.code) == ("failed", "server_error")
    assert "backend" in last.response.error.message


def test_a_failure_after_a_long_silence_is_a_whole_stream(backend: Backend, mode: Mode) -> None:
    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(0.3)
        await error(503, "Loading model")(exchange)

    backend.script(late)
    with proxy_before(backend, mode, config={"keep_alive": 0.05}) as address, http_client(address) as http:
        reply = http.post("/v1/responses", json={"input": "hi", "tools": TOOLS, "stream": True})
    assert reply.status_code == 200
    assert reply.content.startswith(KEEP_ALIVE)
    failed = final(reply.content)
    assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
    assert "Loading model" in failed["error"]["message"]


@pytest.mark.parametrize(
    ("reply", "kind", "says"),
    [
        (error(503, "Loading model"), openai.InternalServerError, "Loading model"),
        (error(429, "Slow down"), openai.RateLimitError, "Slow down"),
        (error(500, "It broke"), openai.InternalServerError, "It broke"),
        (
            error(400, "the request exceeds the available context size", type="exceed_context_size_error"),
            openai.BadRequestError,
            "exceeds the available context size",
        ),
    ],
)
def test_an_error_of_the_backend_is_the_sdks_own_exception(
    send: Send, backend: Backend, reply: Any, kind: type[openai.APIStatusError], says: str
) -> None:
    backend.script(reply)
    with pytest.raises(kind, match=says):
        send("hi")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"tools": [{"type": "computer_use_preview"}]}, "tools[0]"),
        ({"tool_choice": {"type": "web_search_preview"}}, "tool_choice"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
    ],
)
def test_what_cannot_be_served_is_a_400_that_names_it(client: OpenAI, fields: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**{"model": "m", "input": "hi", "tools": TOOLS, **fields})
    assert caught.value.param == param


def test_hosted_tools_are_left_out_and_named(client: OpenAI, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "It may rain."))
    hosted: Any = {"type": "web_search"}
    raw = client.responses.with_raw_response.create(model="m", input="Rain?", tools=[WEATHER, hosted])
    assert raw.headers["x-toolgraft-dropped-tools"] == "web_search"
    assert raw.parse().output_text == "It may rain."


def test_items_can_be_referred_to_while_they_are_remembered(send: Send, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "Hello there."), says(mode, "Again."))
    first = send("hi")
    answer = send([user("hi"), {"type": "item_reference", "id": first.output[0].id}, user("Once more.")])
    assert answer.output_text == "Again."
    assert backend.chats[-1].json["messages"][-2] == {"role": "assistant", "content": "Hello there."}


async def test_the_asynchronous_client_works_too(url: str, backend: Backend, mode: Mode) -> None:
    backend.script(says(mode, "", OSLO, ROME))
    async with (
        AsyncOpenAI(base_url=url + "/v1", api_key="none", max_retries=0) as client,
        client.responses.stream(model="m", input="Rain?", tools=TOOLS) as stream,
    ):
        assert calls(await stream.get_final_response()) == [OSLO, ROME]


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/", "/v1/v1"])
def test_base_urls_as_people_write_them(url: str, backend: Backend, base: str) -> None:
    backend.script(text("Hello."))
    with OpenAI(base_url=url + base, api_key="none", max_retries=0) as client:
        assert client.responses.create(model="m", input="hi").output_text == "Hello."
    with http_client(url + base) as http:
        assert http.post("responses/", json={"input": "hi"}).json()["object"] == "response"


def test_errors_before_a_request_is_read_are_of_the_surface(url: str) -> None:
    with http_client(url) as http:
        wrong = http.get("/v1/responses")
        broken = http.post("/v1/responses", content=b"{")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "invalid_json")

"""The real OpenAI SDK, unchanged, against the proxy in front of a model that only writes text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.support.backend import Backend, error, sse, text
from tests.support.proxy import proxy_before

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
QUESTION: Any = [{"role": "user", "content": "Will it rain in Oslo and in Rome?"}]
TWO_CALLS = (
    "<think>Two cities.</think>\nI will look it up.\n"
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": "2"}}</tool_call>\n'
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'
)
ARGUMENTS = [{"city": "Oslo", "days": 2}, {"city": "Rome"}]


def cut(whole: str, size: int) -> list[str]:
    return [whole[at : at + size] for at in range(0, len(whole), size)]


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture(scope="module")
def url(backend: Backend) -> Iterator[str]:
    with proxy_before(backend) as address:
        yield address + "/v1"


@pytest.fixture
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url, api_key="none", max_retries=0) as sdk:
        yield sdk


def test_a_whole_reply_has_calls_reasoning_content_and_usage(client: OpenAI, backend: Backend) -> None:
    backend.script(text(TWO_CALLS, usage=(40, 30)))
    completion = client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls or ()] == ARGUMENTS  # type: ignore[union-attr]
    assert len({call.id for call in choice.message.tool_calls or ()}) == 2
    assert choice.message.content == "I will look it up."
    assert choice.message.model_extra == {"reasoning_content": "Two cities."}
    assert completion.usage
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (40, 30)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_is_the_same_reply_in_pieces(client: OpenAI, backend: Backend, size: int) -> None:
    backend.script(text(*cut(TWO_CALLS, size)))
    content, arguments, reasoning, finishes, roles = "", ["", ""], "", [], []
    stream = client.chat.completions.create(
        model="m", messages=QUESTION, tools=[WEATHER], stream=True, stream_options={"include_usage": True}
    )
    usage = None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reasoning += (choice.delta.model_extra or {}).get("reasoning_content", "")
            for call in choice.delta.tool_calls or ():
                assert call.function
                arguments[call.index] += call.function.arguments or ""
            finishes += [choice.finish_reason] if choice.finish_reason else []
            roles += [choice.delta.role] if choice.delta.role else []
    assert (content, reasoning) == ("I will look it up.", "Two cities.")
    assert [json.loads(each) for each in arguments] == ARGUMENTS
    assert (finishes, roles) == (["tool_calls"], ["assistant"])
    assert usage
    assert usage.completion_tokens == 7


def test_the_stream_helper_gathers_the_same_message(client: OpenAI, backend: Backend) -> None:
    backend.script(text(*cut(TWO_CALLS, 3)))
    with client.chat.completions.stream(model="m", messages=QUESTION, tools=[WEATHER]) as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_completion().choices[0].message
    assert {"content.delta", "content.done", "tool_calls.function.arguments.done"} <= kinds
    assert [call.function.parsed_arguments for call in message.tool_calls or ()] == ARGUMENTS


async def test_the_asynchronous_client_works_too(url: str, backend: Backend) -> None:
    backend.script(text(*cut(TWO_CALLS, 5)))
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        whole = await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
        async with client.chat.completions.stream(model="m", messages=QUESTION, tools=[WEATHER]) as stream:
            streamed = await stream.get_final_completion()
    assert len(whole.choices[0].message.tool_calls or ()) == 2
    assert len(streamed.choices[0].message.tool_calls or ()) == 2


def test_a_tool_loop_from_call_to_answer(client: OpenAI, backend: Backend) -> None:
    backend.script(text(TWO_CALLS), text("Rain in Oslo, sun in Rome."))
    messages = list(QUESTION)
    first = client.chat.completions.create(model="m", messages=messages, tools=[WEATHER]).choices[0].message
    messages.append(first)
    for call, result in zip(first.tool_calls or (), ("rain", "sun"), strict=True):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answer = client.chat.completions.create(model="m", messages=messages, tools=[WEATHER]).choices[0]
    assert (answer.finish_reason, answer.message.content) == ("stop", "Rain in Oslo, sun in Rome.")
    assert answer.message.tool_calls is None
    seen = backend.chats[-1].json
    assert "tools" not in seen
    assert [message["role"] for message in seen["messages"]] == ["system", "user", "assistant", "user"]
    results = seen["messages"][-1]["content"]
    assert results.index("rain") < results.index("sun")


def test_an_error_of_the_backend_is_the_sdk_s_own_exception(client: OpenAI, backend: Backend) -> None:
    backend.script(error(400, "the request exceeds the available context size", type="exceed_context_size_error"))
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
    assert caught.value.code == "context_length_exceeded"
    assert "available context size" in caught.value.message


def test_a_stream_that_breaks_raises_instead_of_ending(client: OpenAI, backend: Backend) -> None:
    backend.script(sse('data: {"choices":[{"index":0,"delta":{"content":"Let me"}}]}\n\n', end="reset"))
    stream = client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=True)
    with pytest.raises(openai.APIError, match="The backend"):
        list(stream)


def test_models_can_be_listed_and_looked_up(client: OpenAI, backend: Backend) -> None:
    assert [model.id for model in client.models.list()] == ["scripted"]
    assert client.models.retrieve("scripted").id == "scripted"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("other")
    assert caught.value.code == "model_not_found"

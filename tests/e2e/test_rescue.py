"""Calls that a backend with tools of its own leaves in its text, as the client gets them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.backend import DONE, Backend, body, chunk, sse, text
from tests.support.proxy import http_client, proxy_before

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Weather in Paris?"}], "tools": [TOOL]}
TOKENS = [
    '{"',
    "name",
    '":',
    ' "',
    "get",
    "_weather",
    '",',
    ' "',
    "arguments",
    '":',
    ' {"',
    "city",
    '":',
    ' "',
    "Paris",
]
TOKENS += ['"}}']
"""What Qwen2.5-Coder 0.5B writes on llama.cpp, with tools in its template: without the tag the server sees text."""

FENCED = ["```", "json", "\n", *TOKENS, "\n", "```"]
TAGGED = ["I will look.\n", "<tool_call>", "\n", *TOKENS, "\n", "</tool_call>"]
NOON = ["It is {", "noon} in <", "Paris", ">.", "\n"]


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend(probe_tokens=(10, 60)) as server:
        yield server


@pytest.fixture
def url(backend: Backend) -> Iterator[str]:
    with proxy_before(backend, "auto") as address:
        yield address


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with http_client() as http:
        yield http


def chat(client: httpx2.Client, url: str, **more: Any) -> httpx2.Response:
    return client.post(url + "/v1/chat/completions", json={**ASKED, **more})


def calls_of(raw: bytes) -> list[tuple[str, Any]]:
    """The names and arguments of the calls in an answer, whole or streamed."""
    if raw.startswith(b"data: "):
        chunks = [json.loads(event.removeprefix("data: ")) for event in raw.decode().split("\n\n")[:-2]]
        found = [
            call for each in chunks for choice in each["choices"] for call in choice["delta"].get("tool_calls", ())
        ]
    else:
        found = json.loads(raw)["choices"][0]["message"].get("tool_calls", [])
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in found]


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@both_ways
@pytest.mark.parametrize("pieces", [TOKENS, FENCED, TAGGED], ids=["bare", "fenced", "tagged"])
def test_a_call_left_as_text_is_one(
    backend: Backend, url: str, client: httpx2.Client, stream: bool, pieces: list[str]
) -> None:
    backend.script(text(*pieces))
    answer = chat(client, url, stream=stream)
    assert calls_of(answer.content) == [("get_weather", {"city": "Paris"})]
    assert b'"finish_reason":"tool_calls"' in answer.content
    assert b'"chatcmpl-s"' in answer.content
    assert "tools" in backend.chats[-1].json
    assert (b"I will look." in answer.content) == (pieces is TAGGED)
    assert not stream or answer.content.endswith(DONE.encode())


@both_ways
def test_an_answer_comes_as_the_bytes_that_came(
    backend: Backend, url: str, client: httpx2.Client, stream: bool
) -> None:
    whole = (
        b'{"choices" : [{"index":0,"message":{"content":"It is {noon}."},"finish_reason":"stop"}],\n "extra": 1.10}\n'
    )
    raw = "".join([": hi\r\n\r\n", *(chunk({"content": piece}) for piece in NOON), chunk({}, "stop"), DONE]).encode()
    backend.script(sse(*(raw[at : at + 50] for at in range(0, len(raw), 50)), pause=0) if stream else body(whole))
    assert chat(client, url, stream=stream).content == (raw if stream else whole)


@both_ways
@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "none"},
        {"tools": []},
        {"tools": [{"type": "odd"}]},
        {"n": 2},
        {"tools": [{"type": "custom", "custom": {"name": "get_weather"}}]},
        {"tools": None, "functions": [TOOL["function"]]},
    ],
)
def test_nothing_is_looked_for_where_no_call_can_be_told(
    backend: Backend, url: str, client: httpx2.Client, stream: bool, more: dict[str, Any]
) -> None:
    backend.script(text(*TOKENS))
    answer = chat(client, url, stream=stream, **more)
    assert calls_of(answer.content) == []
    assert b'"finish_reason": "stop"' in answer.content


@both_ways
def test_a_backend_that_is_said_to_be_native_has_its_text_left_alone(
    backend: Backend, client: httpx2.Client, stream: bool
) -> None:
    backend.script(text(*TOKENS))
    with proxy_before(backend, "native") as url:
        assert calls_of(chat(client, url, stream=stream).content) == []


@both_ways
def test_a_backend_that_does_not_do_as_asked_is_looked_into_too(
    backend: Backend, url: str, client: httpx2.Client, stream: bool
) -> None:
    message = {"role": "assistant", "content": "".join(TOKENS)}
    whole = body({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    streamed = sse(*(chunk({"content": piece}) for piece in TOKENS), chunk({}, "stop"), DONE)
    backend.script(whole if stream else streamed)
    answer = chat(client, url, stream=stream)
    assert b'"finish_reason":"tool_calls"' in answer.content
    assert answer.content.count(b'"name":"get_weather"') == 1


@both_ways
def test_other_surfaces_get_the_call_as_well(backend: Backend, url: str, client: httpx2.Client, stream: bool) -> None:
    backend.script(text(*FENCED))
    asked = {"model": "m", "max_tokens": 99, "messages": ASKED["messages"], "stream": stream}
    tool = {"name": "get_weather", "input_schema": SCHEMA}
    answer = client.post(url + "/v1/messages", json={**asked, "tools": [tool]})
    assert b'"stop_reason":"tool_use"' in answer.content
    assert b"```" not in answer.content


@both_ways
def test_the_key_is_not_repeated_in_an_error_within_a_reply(
    backend: Backend, client: httpx2.Client, stream: bool
) -> None:
    failure = {"error": {"message": "bad key sk-backend", "code": 400}}
    backend.script(sse(f"data: {json.dumps(failure)}\n\n") if stream else body(failure))
    for dispatcher in ("native", "auto", "xml"):
        with proxy_before(backend, dispatcher, key="sk-backend") as url:
            answer = chat(client, url, stream=stream)
            assert answer.status_code == 400
            assert answer.json()["error"]["message"] == "bad key [the key]"


def test_the_key_is_not_repeated_in_the_middle_of_a_stream(backend: Backend, client: httpx2.Client) -> None:
    failure = {"error": {"message": "bad key sk-backend"}}
    backend.script(sse(chunk({"content": "Hi."}), f"data: {json.dumps(failure)}\n\n"))
    with proxy_before(backend, "xml", key="sk-backend") as url:
        answer = chat(client, url, stream=True)
    assert b"bad key [the key]" in answer.content

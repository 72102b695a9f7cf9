"""What a stream looks like on the wire, while the backend is slow, breaks, or is no longer wanted."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.backend import DONE, Backend, Exchange, Reply, body, chunk, error, silence, sse, text
from tests.support.proxy import http_client, post, proxy_before

TOOL = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], "stream": True}
WHOLE = {**ASKED, "stream": False}
CALL = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'
KEEP_ALIVE = b": keep-alive\n\n"

CLOSED_WITHIN = 2.0
"""Seconds in which a backend must be told that nobody waits for it any more."""


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture
def url(backend: Backend) -> Iterator[str]:
    with proxy_before(backend) as address:
        yield address + "/v1/chat/completions"


@pytest.fixture
def restless(backend: Backend) -> Iterator[str]:
    """A proxy that bears no silence of more than a twentieth of a second."""
    with proxy_before(backend, config={"keep_alive": 0.05}) as address:
        yield address + "/v1/chat/completions"


@pytest.fixture
def ask(url: str) -> Iterator[Callable[[dict[str, Any]], httpx2.Response]]:
    with http_client() as client:
        yield lambda asked: client.post(url, json=asked)


Asks = Callable[[dict[str, Any]], httpx2.Response]


def events(raw: bytes) -> list[Any]:
    data = [event.removeprefix("data: ") for event in raw.decode().split("\n\n") if event.startswith("data: ")]
    return [json.loads(each) if each != "[DONE]" else each for each in data]


def slow(reply: Reply) -> Reply:
    """``reply`` after a silence of several keep-alive intervals."""

    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(0.3)
        await reply(exchange)

    return late


def test_nobody_between_here_and_the_client_is_to_buffer_or_compress(ask: Asks, backend: Backend) -> None:
    backend.script(text("Hello."))
    answer = ask(ASKED)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in answer.headers


def test_silence_is_filled_before_the_first_token_and_the_stream_is_whole(restless: str, backend: Backend) -> None:
    backend.script(slow(text("Hello.")))
    with http_client() as client, client.stream("POST", restless, json=ASKED) as answer:
        assert answer.status_code == 200
        pieces = answer.iter_raw()
        assert next(pieces) == KEEP_ALIVE
        raw = b"".join(pieces)
    assert raw.replace(KEEP_ALIVE, b"").endswith(b"data: [DONE]\n\n")
    assert events(raw)[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events(raw)[:-1]) == "Hello."


def test_a_whole_reply_is_waited_for(restless: str, backend: Backend) -> None:
    backend.script(slow(text("Hello.")))
    answer = post(restless, json=WHOLE)
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (error(400, "bad template"), 400),
        (error(500, "Jinja Exception: Conversation roles must alternate"), 500),
        (sse('data: {"error":{"message":"bad template","type":"server_error","code":null}}\n\n', DONE), 502),
        (sse('error: {"code":400,"message":"bad template","type":"invalid_request_error"}\n\n', DONE), 400),
        (body(b"<html><title>bad template</title>", 502, "text/html"), 502),
    ],
)
def test_an_error_before_the_first_event_is_the_status(ask: Asks, backend: Backend, reply: Reply, status: int) -> None:
    backend.script(reply)
    answer = ask(ASKED)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["message"]


def test_an_error_after_the_status_has_gone_out_is_an_event(restless: str, backend: Backend) -> None:
    backend.script(slow(error(503, "the model is being loaded")))
    answer = post(restless, json=ASKED)
    assert answer.status_code == 200
    assert answer.content.startswith(KEEP_ALIVE)
    (last,) = events(answer.content)
    assert "the model is being loaded" in last["error"]["message"]


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_stream_that_is_cut_inside_a_call_ends_with_an_error_and_no_call(
    ask: Asks, backend: Backend, end: str
) -> None:
    backend.script(sse(chunk({"content": "Look: " + CALL[:-20]}), end=end))
    *before, last = events(ask(ASKED).content)
    assert "The backend" in last["error"]["message"]
    assert not any("tool_calls" in event["choices"][0]["delta"] for event in before)
    assert not any(event["choices"][0]["finish_reason"] for event in before)


@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_whole_reply_that_is_cut_is_a_502(ask: Asks, backend: Backend, end: str) -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.head(200, "application/json", ("content-length", "1000"))
        await exchange.write(b'{"choices": [{"message": {"content": "Hel')
        if end == "reset":
            exchange.reset()
        exchange.ends_connection = True

    backend.script(half)
    answer = ask(WHOLE)
    assert answer.status_code == 502
    assert "The backend" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "pieces",
    [
        ("data: {not json}\n\n",),
        ("data: [1]\n\n",),
        ("",),
        ("garbage\n\n",),
    ],
)
def test_garbage_is_a_502(ask: Asks, backend: Backend, pieces: tuple[str, ...]) -> None:
    backend.script(sse(*pieces))
    answer = ask(ASKED)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"]


def test_a_backend_that_does_not_stream_is_streamed_for(ask: Asks, backend: Backend) -> None:
    message = {"role": "assistant", "content": f"Look.\n{CALL}"}
    backend.script(body({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    answer = ask(ASKED)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events(answer.content)[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert events(answer.content)[-1] == "[DONE]"


def test_a_backend_that_streams_unasked_is_gathered(ask: Asks, backend: Backend) -> None:
    backend.script(sse(chunk({"content": "Look."}), chunk({"content": CALL}), chunk({}, "stop"), DONE))
    choice = ask(WHOLE).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "Look."


def test_tokens_are_estimated_when_the_backend_does_not_count(ask: Asks, backend: Backend) -> None:
    backend.script(text("Hello there.", usage=None))
    usage = ask(WHOLE).json()["usage"]
    assert usage["completion_tokens"] == 3
    assert usage["prompt_tokens"] > 10
    streamed = events(ask({**ASKED, "stream_options": {"include_usage": True}}).content)
    assert streamed[-2]["usage"]["completion_tokens"] == 3


# ---- nobody waits any more


def closed(backend: Backend) -> bool:
    return backend.hung_up.wait(CLOSED_WITHIN)


def start(url: str, asked: dict[str, Any]) -> socket.socket:
    """A request on a bare socket, which can be closed without ceremony."""
    parts = urlsplit(url)
    client = socket.create_connection((parts.hostname, parts.port))
    content = json.dumps(asked).encode()
    head = f"POST {parts.path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
    client.sendall(head.encode() + content)
    return client


@pytest.mark.parametrize("asked", [ASKED, WHOLE], ids=["stream", "whole"])
def test_a_client_that_goes_before_the_first_byte_closes_the_backend(
    url: str, backend: Backend, asked: dict[str, Any]
) -> None:
    backend.script(silence)
    with start(url, asked):
        wait_until(lambda: bool(backend.chats))
    assert closed(backend)


@pytest.mark.parametrize("asked", [ASKED, WHOLE], ids=["stream", "whole"])
def test_a_client_that_goes_in_the_middle_closes_the_backend(url: str, backend: Backend, asked: dict[str, Any]) -> None:
    backend.script(sse(chunk({"content": "a"}), end="repeat"))
    with start(url, asked) as client:
        if asked["stream"]:
            client.recv(10)
        wait_until(lambda: bool(backend.chats))
    assert closed(backend)


def test_a_client_that_goes_while_the_backend_is_asked_what_it_can_do_closes_it(url: str, backend: Backend) -> None:
    backend.routes["/props"] = silence
    with start(url, ASKED):
        wait_until(lambda: bool(backend.requests))
    assert closed(backend)
    assert not backend.chats


def test_a_client_that_goes_from_another_path_closes_the_backend(url: str, backend: Backend) -> None:
    backend.routes["/v1/completions"] = silence
    with start(url.replace("/chat/", "/"), ASKED):
        wait_until(lambda: bool(backend.requests))
    assert closed(backend)


def test_a_result_that_the_model_makes_up_ends_the_reply_and_the_backend_s_work(ask: Asks, backend: Backend) -> None:
    backend.script(sse(chunk({"content": CALL + "\n<tool_result>"}), chunk({"content": "x"}), end="repeat"))
    streamed = events(ask(ASKED).content)
    assert streamed[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert closed(backend)


def test_the_one_call_that_is_allowed_ends_the_backend_s_work(ask: Asks, backend: Backend) -> None:
    backend.script(sse(chunk({"content": CALL}), end="hang"))
    streamed = events(ask({**ASKED, "parallel_tool_calls": False}).content)
    assert streamed[-1] == "[DONE]"
    assert closed(backend)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")

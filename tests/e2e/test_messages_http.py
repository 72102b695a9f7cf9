"""Anthropic's Messages on the wire: paths, the shape of errors before and within a stream, and what fills a silence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from proxy.wire.sse import SseDecoder
from tests.support.backend import Backend, Exchange, body, chunk, error, sse, text
from tests.support.proxy import http_client, post, proxy_before

HELLO: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
VERSION = {"anthropic-version": "2023-06-01"}


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture(scope="module")
def client(backend: Backend) -> Iterator[httpx2.Client]:
    config = {"max_body": 100_000, "keep_alive": 0.05}
    with proxy_before(backend, config=config) as url, http_client(url) as http:
        yield http


def error_of(answer: httpx2.Response) -> Any:
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert (set(told), told["type"]) == ({"type", "error"}, "error")
    return told["error"]


def events(data: bytes) -> list[Any]:
    return [json.loads(frame.data) for frame in SseDecoder().feed(data)]


@pytest.mark.parametrize(
    "path",
    ["/v1/messages", "/v1/messages/", "/v1/messages?beta=true", "/v1/v1/messages", "/messages", "//v1/messages"],
)
def test_messages_are_found_however_the_base_url_was_given(client: httpx2.Client, backend: Backend, path: str) -> None:
    backend.script(text("Hello."))
    answer = client.post(path, json=HELLO)
    assert answer.json()["content"] == [{"type": "text", "text": "Hello."}]
    counted = client.post(path.replace("messages", "messages/count_tokens"), json=HELLO)
    assert counted.json()["input_tokens"] == 1
    assert answer.headers["request-id"] == answer.headers["x-request-id"]


def test_errors_before_it_is_read_come_in_its_shape(client: httpx2.Client) -> None:
    wrong = client.get("/v1/messages")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert error_of(wrong)["type"] == "invalid_request_error"
    garbled = client.post("/v1/messages", content=b"{")
    assert (garbled.status_code, error_of(garbled)["type"]) == (400, "invalid_request_error")
    large = client.post("/v1/messages/count_tokens", content=b" " * 100_001)
    assert (large.status_code, error_of(large)["type"]) == (413, "request_too_large")


def test_anthropics_clients_are_told_of_everything_in_their_shape(client: httpx2.Client) -> None:
    nowhere = client.get("/nowhere", headers=VERSION)
    assert (nowhere.status_code, error_of(nowhere)["type"]) == (404, "not_found_error")
    unknown = client.get("/v1/models/other", headers=VERSION)
    assert error_of(unknown)["details"] == {"error_code": "model_not_found"}
    assert client.get("/v1/models", headers=VERSION).json()["data"][0]["type"] == "model"
    assert client.get("/v1/models").json()["data"][0]["object"] == "model"


@pytest.mark.parametrize("stream", [False, True])
def test_an_early_error_is_the_status_of_the_answer(client: httpx2.Client, backend: Backend, stream: bool) -> None:
    backend.script(error(503, "Loading model"))
    answer = client.post("/v1/messages", json={**HELLO, "stream": stream})
    assert answer.status_code == 529
    assert error_of(answer)["type"] == "overloaded_error"


def test_a_late_one_is_the_last_event_of_the_stream(client: httpx2.Client, backend: Backend) -> None:
    backend.script(sse(chunk({"content": "Let me"}), end="reset"))
    answer = client.post("/v1/messages", json={**HELLO, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = events(answer.content)
    assert [event["type"] for event in told][:2] == ["message_start", "content_block_start"]
    assert told[-1]["type"] == "error"
    assert told[-1]["error"]["type"] == "api_error"
    assert "message_stop" not in [event["type"] for event in told]


def test_a_silence_is_filled_with_pings(client: httpx2.Client, backend: Backend) -> None:
    async def slow(exchange: Exchange) -> None:
        await asyncio.sleep(0.3)
        await text("Hello.")(exchange)

    backend.script(slow)
    answer = client.post("/v1/messages", json={**HELLO, "stream": True})
    kinds = [event["type"] for event in events(answer.content)]
    assert kinds[0] == "ping"
    assert [kind for kind in kinds if kind != "ping"] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.parametrize("headers", [{"x-api-key": "sk-1"}, {"authorization": "Bearer sk-1"}])
def test_the_clients_key_reaches_a_backend_that_wants_it(backend: Backend, headers: dict[str, str]) -> None:
    backend.script(text("Hello."))
    with proxy_before(backend, forward_client_key=True) as url:
        assert post(url + "/v1/messages", json=HELLO, headers=headers).status_code == 200
    assert backend.chats[-1].header("authorization") == "Bearer sk-1"


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_refuses_tools_is_asked_again_with_them_in_the_prompt(stream: bool) -> None:
    tool = {"name": "clock", "input_schema": {"type": "object"}}
    with Backend(probe_tokens=(10, 40)) as other, proxy_before(other, "auto") as url:
        call = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'
        other.script(error(400, "m does not support tools"), text(call))
        answer = post(url + "/v1/messages", json={**HELLO, "tools": [tool], "stream": stream})
        assert answer.status_code == 200
        assert '"name":"clock"' in answer.text
        assert ["tools" in chat.json for chat in other.chats] == [True, False]


def test_a_server_with_a_tokenizer_counts() -> None:
    props = {"build_info": "b1-x", "chat_template": "", "model_path": "m.gguf"}
    routes = {
        "/props": body(props),
        "/apply-template": body({"prompt": "<|user|>hi"}),
        "/tokenize": body({"tokens": [1, 2, 3, 4, 5]}),
    }
    with Backend(routes=routes) as other, proxy_before(other) as url:
        answer = post(url + "/v1/messages/count_tokens", json=HELLO)
        assert answer.json() == {"input_tokens": 5}
        assert "x-toolgraft-estimated" not in answer.headers
        assert other.chats == other.probes == []

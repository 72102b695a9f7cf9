"""Keys, limits, queues, metrics and logs of a proxy that listens, as clients and operators meet them."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from proxy.access import hash_key
from proxy.telemetry import RequestLog
from tests.support.backend import Backend, Exchange, error, silence, text
from tests.support.conversations import FIXTURES
from tests.support.proxy import http_client, proxy_before

KEYS = {"ann": hash_key(b"tg-ann")}
ANN = {"authorization": "Bearer tg-ann"}
MESSAGES = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"model": "m", "messages": MESSAGES}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": CHAT,
    "/v1/messages": {**CHAT, "max_tokens": 5},
    "/v1/responses": {"model": "m", "input": "hi"},
}
PREFLIGHT = {
    "origin": "app://obsidian.md",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-os,x-stainless-timeout",
}


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


def error_of(path: str, answer: httpx2.Response) -> dict[str, Any]:
    """The error in an answer, which has the shape of its surface."""
    payload = answer.json()
    if path == "/v1/messages":
        assert payload["type"] == "error"
    else:
        assert set(payload["error"]) == {"message", "type", "param", "code"}
    return dict(payload["error"])


def test_an_item_of_one_client_s_answer_is_no_other_s_to_refer_to(backend: Backend) -> None:
    keys = {**KEYS, "bob": hash_key(b"tg-bob")}
    with proxy_before(backend, config={"client_keys": keys}) as url, http_client(url) as client:

        def answer(key: str, given: Any) -> httpx2.Response:
            backend.script(text("Hello."))
            sent = {"model": "m", "input": given}
            return client.post("/v1/responses", json=sent, headers={"authorization": f"Bearer {key}"})

        reference = {"type": "item_reference", "id": answer("tg-ann", "hi").json()["output"][0]["id"]}
        again = [reference, {"role": "user", "content": "Again."}]
        assert (answer("tg-ann", again).status_code, answer("tg-bob", again).status_code) == (200, 400)


@pytest.mark.parametrize("stream", [False, True])
def test_the_log_names_tools_that_were_left_out(
    backend: Backend, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    caplog.set_level("INFO", "toolgraft")
    backend.script(text("Hello."))
    tools = [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": {"type": "object"}}]
    with proxy_before(backend) as url, http_client(url) as client:
        sent = {"model": "m", "input": "hi", "tools": tools, "stream": stream}
        assert client.post("/v1/responses", json=sent).status_code == 200
    lines = [record.toolgraft for record in caplog.records if hasattr(record, "toolgraft")]
    assert [line["dropped_tools"] for line in lines if line["surface"] == "responses"] == ["web_search"]


@pytest.mark.parametrize("path", [*BODIES, "/v1/embeddings", "/nowhere"])
def test_without_a_key_every_surface_says_so_in_its_own_shape(backend: Backend, path: str) -> None:
    with proxy_before(backend, config={"client_keys": KEYS}) as url, http_client(url) as client:
        for headers in ({}, {"authorization": "Bearer tg-guess"}, {"x-api-key": "tg-guess"}):
            answer = client.post(path, json=BODIES.get(path, CHAT), headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["x-should-retry"] == "false"
            assert "key" in error_of(path, answer)["message"].lower()
            assert "tg-guess" not in answer.text
    assert not backend.requests


def test_with_a_key_everything_works_and_the_key_goes_nowhere(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolgraft")
    with proxy_before(backend, config={"client_keys": KEYS}) as url, http_client(url) as client:
        for path, body in BODIES.items():
            for headers in (ANN, {"x-api-key": "tg-ann"}):
                assert client.post(path, json=body, headers=headers).status_code == 200
        assert client.get("/v1/models", headers=ANN).status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers=ANN).status_code == 200
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
    assert not any("tg-ann" in value for request in backend.requests for _, value in request.headers)
    told = [getattr(record, "toolgraft", {}) for record in caplog.records]
    assert "ann" in [fields.get("client") for fields in told]
    assert "tg-ann" not in json.dumps(told)


def test_pages_of_other_sites_are_not_let_in_by_default(backend: Backend) -> None:
    with proxy_before(backend) as url, http_client(url) as client:
        for answer in (
            client.options("/v1/chat/completions", headers=PREFLIGHT),
            client.post("/v1/chat/completions", json=CHAT, headers={"origin": "app://obsidian.md"}),
        ):
            assert not any(name.startswith("access-control-") for name in answer.headers)


@pytest.mark.parametrize("allowed", [("app://obsidian.md",), ("*",)])
def test_pages_that_are_listed_are_let_in(backend: Backend, allowed: tuple[str, ...]) -> None:
    config = {"cors_origins": allowed, "client_keys": KEYS}
    with proxy_before(backend, config=config) as url, http_client(url) as client:
        asked = client.options("/v1/chat/completions", headers=PREFLIGHT)
        assert asked.status_code == 200
        told = asked.headers["access-control-allow-headers"]
        assert all(name in told for name in PREFLIGHT["access-control-request-headers"].split(","))
        assert "POST" in asked.headers["access-control-allow-methods"]
        from_page = {"origin": "app://obsidian.md"}
        backend.script(text("Hello."), text("Hello."), error(500, "broken"))
        answers = [
            client.post("/v1/chat/completions", json=CHAT, headers={**ANN, **from_page}),
            client.post("/v1/chat/completions", json={**CHAT, "stream": True}, headers={**ANN, **from_page}),
            client.post("/v1/chat/completions", json=CHAT, headers={**ANN, **from_page}),
            client.post("/v1/chat/completions", json=CHAT, headers=from_page),
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 500, 401]
    origin = "*" if "*" in allowed else "app://obsidian.md"
    assert {answer.headers["access-control-allow-origin"] for answer in (asked, *answers)} == {origin}
    assert all("x-request-id" in answer.headers["access-control-expose-headers"] for answer in answers)


def test_other_pages_are_still_not(backend: Backend) -> None:
    with proxy_before(backend, config={"cors_origins": ("https://a.example",)}) as url, http_client(url) as client:
        for origin in ("https://b.example", "https://a.example.evil.example", "null"):
            asked = client.options("/v1/chat/completions", headers={**PREFLIGHT, "origin": origin})
            answer = client.post("/v1/chat/completions", json=CHAT, headers={"origin": origin})
            assert asked.status_code == 400
            assert "access-control-allow-origin" not in {**asked.headers, **answer.headers}


@pytest.mark.parametrize("path", BODIES)
def test_too_many_requests_are_told_when_to_come_again(backend: Backend, path: str) -> None:
    with proxy_before(backend, config={"rate_limit": 2}) as url, http_client(url) as client:
        answers = [client.post(path, json=BODIES[path]) for _ in range(3)]
        assert client.get("/health").status_code == 200
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in answers] == ["1", "0", "0"]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 30
    assert "x-should-retry" not in answers[-1].headers
    assert error_of(path, answers[-1])["type"] == "rate_limit_error"


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("dispatcher", ["xml", "native"])
def test_too_many_messages_or_tools_are_refused(backend: Backend, path: str, dispatcher: str) -> None:
    config = {"max_messages": 3, "max_tools": 3}
    many = {"input" if path == "/v1/responses" else "messages": MESSAGES * 4}
    with proxy_before(backend, dispatcher, config=config) as url, http_client(url) as client:
        for more in (many, {"tools": [{"type": "function"}] * 4}):
            answer = client.post(path, json={**BODIES[path], **more})
            assert answer.status_code == 400
            assert "has 4 entries" in error_of(path, answer)["message"]
    assert not backend.chats


def test_a_body_that_stops_coming_is_not_waited_for(backend: Backend) -> None:
    def half() -> Iterator[bytes]:
        yield b'{"model": "m", '
        time.sleep(0.5)
        yield b'"messages": []}'

    with proxy_before(backend, config={"body_timeout": 0.05}) as url, http_client(url) as client:
        answer = client.post("/v1/chat/completions", content=half())
    assert answer.status_code == 408
    assert "0.05 seconds" in answer.json()["error"]["message"]


class Gatekeeper:
    """A backend's replies that wait until they are let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    async def __call__(self, exchange: Exchange) -> None:
        while not self.let_go.is_set():
            await asyncio.sleep(0.01)
        await text("Hello.")(exchange)


def until(true: Any) -> None:
    for _ in range(1000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it does not come to that")


@pytest.mark.parametrize("path", BODIES)
def test_what_the_backend_cannot_take_waits_and_what_cannot_wait_is_refused(backend: Backend, path: str) -> None:
    keeper = Gatekeeper()
    backend.script(keeper)
    with (
        proxy_before(backend, max_concurrent=1, max_queue=2) as url,
        http_client(url) as client,
        ThreadPoolExecutor(4) as pool,
    ):

        def sample(name: str) -> float:
            page = client.get("/metrics").text
            return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(name + "{"))

        served = [pool.submit(client.post, path, json=BODIES[path])]
        until(lambda: backend.chats)
        while len(served) < 3:
            served.append(pool.submit(client.post, path, json=BODIES[path]))
            until(lambda: sample("toolgraft_backend_queue") == len(served) - 1)
        refused = client.post(path, json=BODIES[path])
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert error_of(path, refused)["type"] == "rate_limit_error"
        assert len(backend.chats) == 1
        keeper.let_go.set()
        assert [each.result().status_code for each in served] == [200, 200, 200]
        assert sample("toolgraft_backend_requests") == sample("toolgraft_backend_queue") == 0
        assert sample("toolgraft_queue_seconds_count") >= 2


def test_who_leaves_the_queue_makes_room_and_never_reaches_the_backend(backend: Backend) -> None:
    keeper = Gatekeeper()
    backend.script(keeper)
    with (
        proxy_before(backend, max_concurrent=1, max_queue=1) as url,
        http_client(url) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        first = pool.submit(client.post, "/v1/chat/completions", json=CHAT)
        until(lambda: backend.chats)
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/v1/chat/completions", json=CHAT, timeout=0.1)
        stayed: Any = None

        def stays() -> bool:
            nonlocal stayed
            stayed = pool.submit(client.post, "/v1/chat/completions", json=CHAT)
            time.sleep(0.05)
            return not stayed.done()

        until(stays)
        keeper.let_go.set()
        assert first.result().status_code == stayed.result().status_code == 200
    assert len(backend.chats) == 2


def test_a_stream_that_waits_for_its_turn_is_kept_alive(backend: Backend) -> None:
    keeper = Gatekeeper()
    backend.script(keeper)
    with (
        proxy_before(backend, max_concurrent=1, config={"keep_alive": 0.05}) as url,
        http_client(url) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(client.post, "/v1/chat/completions", json=CHAT)
        until(lambda: backend.chats)
        with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as answer:
            pieces = answer.iter_raw()
            assert next(pieces) == b": keep-alive\n\n"
            keeper.let_go.set()
            assert b"".join(pieces).endswith(b"data: [DONE]\n\n")
        assert first.result().status_code == 200


@pytest.mark.parametrize(
    ("limit", "words"), [("first_byte_timeout", "the first byte"), ("total_timeout", "the whole"), ("idle_timeout", "")]
)
def test_limits_of_time_are_kept_where_they_are_set(backend: Backend, limit: str, words: str) -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.head(200, "application/json", ("content-length", "100"))
        await exchange.write(b'{"choices": [')
        await exchange.wait_for_hang_up()

    backend.script(half if limit == "idle_timeout" else silence)
    with proxy_before(backend, config={limit: 0.2}) as url, http_client(url) as client:
        answer = client.post("/v1/chat/completions", json=CHAT)
    assert answer.status_code == 504
    told = answer.json()["error"]
    assert told["code"] == "backend_timeout"
    assert words in told["message"]
    assert backend.hung_up.wait(5)


def test_what_was_done_is_counted(backend: Backend) -> None:
    call = '<tool_call>{"name": "f", "arguments": {"n": "5",}}</tool_call>'
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    backend.script(text(call))
    with proxy_before(backend) as url, http_client(url) as client:
        client.post(
            "/v1/chat/completions", json={**CHAT, "stream": True, "tools": [{"type": "function", "function": tool}]}
        )
        client.post("/v1/chat/completions", content=b"{")
        page = client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    where = f'backend="{backend.url}/v1"'
    for line in (
        f'toolgraft_requests_total{{{where},mode="xml",model="m",status="200",surface="chat"}} 1.0',
        f'toolgraft_calls_total{{{where},model="m"}} 1.0',
        'toolgraft_problems_total{kind="repaired"} 1.0',
        'toolgraft_problems_total{kind="coerced"} 1.0',
        f'toolgraft_tokens_total{{{where},kind="prompt",model="m"}} 11.0',
        f"toolgraft_time_to_first_token_seconds_count{{{where}}} 1.0",
        'toolgraft_added_latency_seconds_count{mode="xml"} 1.0',
        'toolgraft_errors_total{backend="",code="invalid_json",fault="client"} 1.0',
        "toolgraft_requests_in_progress 1.0",
    ):
        assert line in page.text


def fields_of(caplog: pytest.LogCaptureFixture, message: str = "request") -> list[dict[str, Any]]:
    return [record.__dict__["toolgraft"] for record in caplog.records if record.getMessage() == message]


def test_a_request_s_line_has_all_that_an_operator_asks_for(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolgraft")
    with proxy_before(backend) as url, http_client(url) as client:
        client.post("/v1/chat/completions", json={**CHAT, "model": "devstral"}, headers={"x-request-id": "mine-1"})
    (line,) = fields_of(caplog)
    known = {"id": "mine-1", "surface": "chat", "model": "devstral", "mode": "xml", "status": 200, "calls": 0}
    assert {**line, **known} == line
    assert line["dialect"] == "auto+mistral"
    assert line["prompt_tokens"] == 11
    assert line["completion_tokens"] == 7
    assert {"ms", "first_ms", "added_ms", "backend"} <= line.keys()
    assert not fields_of(caplog, "content")


def test_the_error_that_a_client_gets_is_found_in_the_log(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "toolgraft")
    backend.script(error(500, "out of memory"))
    with proxy_before(backend) as url, http_client(url) as client:
        answer = client.post("/v1/chat/completions", json=CHAT)
    (line,) = fields_of(caplog)
    assert line["id"] == answer.headers["x-request-id"]
    assert (line["status"], line["fault"]) == (500, "backend")


def test_what_was_said_is_logged_only_where_that_is_wanted(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked = {**CHAT, "messages": [{"role": "user", "content": "a secret question"}]}
    backend.script(text("a secret answer"))
    with proxy_before(backend) as url, http_client(url) as client:
        client.post("/v1/chat/completions", json=asked)
    assert "secret" not in caplog.text + json.dumps(fields_of(caplog))
    with proxy_before(backend, config={"log_content": True}) as url, http_client(url) as client:
        client.post("/v1/chat/completions", json={**asked, "stream": True})
    (content,) = fields_of(caplog, "content")
    assert "a secret question" in content["request"]
    assert "a secret answer" in content["answer"]
    assert content["id"] == fields_of(caplog)[-1]["id"]


def test_a_huge_conversation_does_not_hold_up_the_others(backend: Backend) -> None:
    turns = [{"role": "user", "content": "x <b> " * 4}, {"role": "assistant", "content": "y " * 12}]
    huge = json.dumps({**CHAT, "messages": turns * 15_000, "tools": [{"type": "function", "function": {"name": "f"}}]})
    answered = 0
    with proxy_before(backend) as url, http_client(url) as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.post, "/v1/chat/completions", content=huge)
        while not answer.done():
            assert client.get("/health").status_code == 200
            answered += 1
        assert answer.result().status_code == 200
    assert answered > 5


def test_every_metric_and_every_field_of_the_log_is_documented(backend: Backend) -> None:
    told = (FIXTURES.parent / "docs" / "operations.md").read_text("utf-8")
    with proxy_before(backend) as url, http_client(url) as client:
        page = client.get("/metrics").text
    names = re.findall(r"^# TYPE (toolgraft_\w+) (?!gauge\n.*_created)", page, re.MULTILINE)
    for name in names:
        assert f"`{name}`" in told, name
    assert len(names) > 10
    unlogged = {"started", "received", "queued", "asked", "first", "answered", "ended", "trace", "tape"}
    for name in RequestLog.__struct_fields__:
        assert name in unlogged or f"`{name}`" in told, name

"""What comes over a connection that is not quite HTTP, or too much of it, and clients that leave behind their backs."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from proxy import protocol
from proxy.protocol import MOST_HEAD
from tests.support.backend import Backend, silence, text
from tests.support.proxy import proxy_before

GOT = b"GET /health HTTP/1.1\r\nhost: x\r\n"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
ASKED = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture(scope="module")
def url(backend: Backend) -> Iterator[str]:
    with proxy_before(backend) as address:
        yield address


@contextmanager
def connection(url: str) -> Iterator[socket.socket]:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as sock:
        yield sock


def answer(sock: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The next answer on a connection: status, headers, body of the declared length."""
    with sock.makefile("rb") as file:
        status = int(file.readline().split()[1])
        headers: dict[str, str] = {}
        while line := file.readline().strip().decode():
            name, _, value = line.partition(": ")
            headers[name] = value
        return status, headers, file.read(int(headers["content-length"]))


def closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def send(sock: socket.socket, data: bytes) -> None:
    """Send ``data``, some of which the other side may no longer want."""
    try:
        for at in range(0, len(data), 4096):
            sock.sendall(data[at : at + 4096])
    except ConnectionError:
        pass


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "invalid_http"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "invalid_http"),
        (GOT + b"transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n", 400, "invalid_http"),
        (GOT + b"content-length: five\r\n\r\n", 400, "invalid_http"),
        (GOT + b"bad header\r\n\r\n", 400, "invalid_http"),
        (GOT + b"x: " + b"a" * MOST_HEAD + b"\r\n\r\n", 431, "head_too_large"),
        (GOT + b"x: " + b"a" * 4 * MOST_HEAD, 431, "head_too_large"),
        (GOT + b"x: a\r\n" * MOST_HEAD, 431, "head_too_large"),
        (b"GET /" + b"a" * 4 * MOST_HEAD, 431, "head_too_large"),
        (b"\r\n" * MOST_HEAD, 431, "head_too_large"),
        (ASKED[: ASKED.index(b"content-length")] + b"transfer-encoding: chunked\r\n\r\nxyz\r\n", 400, "invalid_http"),
    ],
)
def test_broken_http_is_told_in_an_object_with_an_id(
    url: str, sent: bytes, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolgraft")
    with connection(url) as sock:
        send(sock, sent)
        got, headers, body = answer(sock)
        assert (got, json.loads(body)["error"]["code"]) == (status, code)
        assert headers["connection"] == "close"
        assert closed(sock)
    assert headers["x-request-id"] in [getattr(record, "toolgraft", {}).get("id") for record in caplog.records]


@pytest.mark.parametrize("kind", ["extension", "trailer"])
def test_what_is_neither_head_nor_body_is_bounded(url: str, kind: str) -> None:
    head = ASKED[: ASKED.index(b"content-length")] + b"transfer-encoding: chunked\r\n\r\n"
    endless = {"extension": b"5;a=", "trailer": b"0\r\nx: "}[kind] + b"a" * 8 * MOST_HEAD
    with connection(url) as sock:
        send(sock, head + endless)
        assert answer(sock)[0] in (400, 431)
        assert closed(sock)


def test_a_head_that_begins_in_the_same_read_as_another_request_is_bounded(url: str) -> None:
    half = b"x" * (MOST_HEAD * 3 // 4)
    with connection(url) as sock:
        sock.sendall(GOT + b"\r\n" + GOT + b"a: " + half)
        assert answer(sock)[0] == 200
        sock.sendall(half + b"\r\n\r\n")
        assert answer(sock)[0] == 431


def test_a_head_that_does_not_come_is_not_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_WITHIN", 0.05)
    with connection(url) as sock:
        assert closed(sock)
    with connection(url) as sock:
        sock.sendall(GOT)
        assert answer(sock)[0] == 408
        assert closed(sock)
    with connection(url) as sock:
        sock.sendall(GOT + b"\r\n")
        assert answer(sock)[0] == 200
        sock.sendall(GOT)
        assert answer(sock)[0] == 408


def test_an_answer_may_take_longer_than_the_next_head(
    url: str, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_WITHIN", 0.02)

    async def late(exchange: Any) -> None:
        await asyncio.sleep(0.2)
        await text("Late.")(exchange)

    backend.script(late)
    with connection(url) as sock:
        sock.sendall(ASKED + GOT)
        assert answer(sock)[0] == 200


def test_garbage_behind_a_request_is_no_part_of_its_answer(url: str, backend: Backend) -> None:
    async def begun(exchange: Any) -> None:
        await exchange.head(200, "text/event-stream")
        await exchange.write(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n')
        await exchange.wait_for_hang_up()

    backend.script(begun)
    streamed = BODY[:-1] + b', "stream": true}'
    with connection(url) as sock:
        sock.sendall(ASKED[: ASKED.index(b"content-length")] + b"content-length: %d\r\n\r\n" % len(streamed) + streamed)
        got = sock.recv(65536)
        while b'"a"' not in got:
            got += sock.recv(65536)
        sock.sendall(b"nonsense\r\n\r\n")
        while more := sock.recv(65536):
            got += more
    assert got.count(b"HTTP/1.1") == 1
    assert b"invalid_http" not in got


OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_an_offer_of_http2_is_declined_and_the_connection_goes_on(url: str, backend: Backend, size: int) -> None:
    backend.script(text("Hello."))
    chunked = ASKED.replace(b"content-length: %d" % len(BODY), b"transfer-encoding: chunked")
    chunked = chunked.replace(BODY, b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY))
    with connection(url) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for asked in (ASKED, ASKED, chunked, ASKED):
            asked = asked.replace(b"host: x\r\n", b"host: x\r\n" + OFFER)
            for at in range(0, len(asked), size):
                sock.sendall(asked[at : at + size])
            status, headers, body = answer(sock)
            assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, "Hello.")
            assert headers.get("connection") != "close"


def test_very_many_offers_at_once_are_no_depth(url: str, caplog: pytest.LogCaptureFixture) -> None:
    one = b"GET /health HTTP/1.1\r\nhost: x\r\n" + OFFER + b"\r\n"
    with connection(url) as sock:
        sock.sendall(one * 3_000)
        assert answer(sock)[0] == 200
    with connection(url) as sock:
        sock.sendall(one)
        assert answer(sock)[0] == 200
    assert "RecursionError" not in caplog.text


def test_a_websocket_is_answered_as_what_it_is_without_one(url: str) -> None:
    with connection(url) as sock:
        sock.sendall(GOT + b"connection: keep-alive, upgrade\r\nupgrade: websocket\r\n\r\n")
        assert answer(sock)[0] == 200
        sock.sendall(GOT + b"\r\n")
        assert answer(sock)[0] == 200


def test_a_tunnel_is_refused(url: str) -> None:
    with connection(url) as sock:
        sock.sendall(b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n")
        assert answer(sock)[0] == 400
        assert closed(sock)


def test_a_client_that_leaves_with_a_request_behind_is_noticed(backend: Backend, url: str) -> None:
    backend.script(silence)
    backend.hung_up.clear()
    before = len(backend.chats)
    with connection(url) as sock:
        sock.sendall(ASKED + GOT + b"\r\n")
        while len(backend.chats) == before:
            pass
    assert backend.hung_up.wait(5)


@pytest.mark.parametrize("size", [0, 70_000, 400_000])
def test_a_client_that_leaves_behind_a_large_body_is_noticed(backend: Backend, url: str, size: int) -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * size}]}).encode()
    backend.script(silence)
    backend.hung_up.clear()
    before = len(backend.chats)
    with connection(url) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body))
        sock.sendall(body)
        while len(backend.chats) == before:
            pass
    assert backend.hung_up.wait(5)

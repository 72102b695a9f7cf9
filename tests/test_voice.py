"""How errors are told, and what becomes of one that cannot be. Answers are tested over HTTP, in tests/e2e."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.asgi import Exchange
from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
from proxy.surfaces.base import Shape
from proxy.surfaces.chat import Chat
from proxy.telemetry import RequestLog
from proxy.voice import STREAM, Voice, fail


def broken(error: ToolgraftError) -> Any:
    raise ZeroDivisionError


BROKEN = Shape("broken", b"", broken, broken)


class Wire:
    """What went out."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.exchange = Exchange({"type": "http", "headers": []}, self.never, self.send, "r1")

    async def send(self, message: Any) -> None:
        self.messages.append(message)

    async def never(self) -> Any:
        raise AssertionError

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


@pytest.mark.parametrize(
    ("error", "fault", "code"),
    [
        (ClientError("no", code="odd"), "client", "odd"),
        (UpstreamError("no"), "backend", "upstream_error"),
        (ToolgraftError("no"), "proxy", "internal_error"),
    ],
)
async def test_an_error_is_the_answer_and_the_log_has_whose_fault_it_was(
    error: ToolgraftError, fault: str, code: str
) -> None:
    wire, log = Wire(), RequestLog("r1", "chat")
    await fail(wire.exchange, Voice(Chat.shape), log, error)
    assert wire.messages[0]["status"] == error.status
    assert json.loads(wire.body)["error"]["message"] == "no"
    assert (log.fault, log.error) == (fault, code)


@pytest.mark.parametrize(("begun", "gap"), [(b"data: 1\n\n", b""), (b"data: 1", b"\n\n")])
async def test_in_a_stream_it_is_the_last_event(begun: bytes, gap: bytes) -> None:
    wire = Wire()
    await wire.exchange.start(200, STREAM)
    await wire.exchange.write(begun)
    await fail(wire.exchange, Voice(Chat.shape), RequestLog("r1", "chat"), UpstreamError("no"))
    assert wire.body.startswith(begun + gap + b'data: {"error"')
    assert not wire.messages[-1]["more_body"]


async def test_any_other_answer_is_left_incomplete() -> None:
    wire = Wire()
    await wire.exchange.start(200, [("content-type", "audio/mpeg")])
    await wire.exchange.write(b"half")
    await fail(wire.exchange, Voice(Chat.shape), RequestLog("r1", "chat"), UpstreamError("no"))
    assert wire.body == b"half"
    assert wire.messages[-1]["more_body"]


async def test_an_error_that_cannot_be_told_is_still_an_error(caplog: pytest.LogCaptureFixture) -> None:
    wire = Wire()
    await fail(wire.exchange, Voice(BROKEN), RequestLog("r1", "chat"), ClientError("no"))
    assert wire.messages[0]["status"] == 500
    assert "Its log has the reason" in json.loads(wire.body)["error"]["message"]
    assert "request r1 cannot be told" in caplog.text


async def test_in_a_stream_it_leaves_that_incomplete(caplog: pytest.LogCaptureFixture) -> None:
    wire = Wire()
    await wire.exchange.start(200, STREAM)
    await fail(wire.exchange, Voice(BROKEN), RequestLog("r1", "chat"), ClientError("no"))
    assert [message["type"] for message in wire.messages] == ["http.response.start"]
    assert "cannot be told" in caplog.text

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from proxy.asgi import CLIENT, ClientGoneError, Exchange
from proxy.core.errors import ClientError


class Wire:
    """The server's side: what the application is told, and what it said."""

    def __init__(self, *messages: dict[str, Any], headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        for message in messages:
            self._queue.put_nowait(message)
        self.sent: list[Any] = []
        scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
        self.exchange = Exchange(scope, self._queue.get, self._take, "r1")

    async def _take(self, message: Any) -> None:
        self.sent.append(message)

    def hang_up(self) -> None:
        self._queue.put_nowait({"type": "http.disconnect"})


class Known:
    """A client of which the server tells more: whether it is there, and a body that has come."""

    def __init__(self, body: bytes | None = None) -> None:
        self.body = body
        self.there = True
        self.call: Callable[[], None] | None = None

    def take_body(self) -> bytes | None:
        return self.body

    def when_gone(self, call: Callable[[], None] | None) -> None:
        self.call = call
        if call is not None and not self.there:
            call()

    def go(self) -> None:
        self.there = False
        if self.call is not None:
            self.call()


def known(client: Known) -> Exchange:
    async def nothing(message: Any = None) -> Any:
        return await asyncio.sleep(60)

    return Exchange({"type": "http", "method": "POST", "headers": [], CLIENT: client}, nothing, nothing, "r1")


async def watched(wire: Wire, work: Awaitable[object]) -> None:
    async with wire.exchange.watch():
        await work


def piece(data: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


async def test_a_body_is_put_together() -> None:
    assert await Wire(piece(b"ab", more=True), piece(b"", more=True), piece(b"c")).exchange.body(3) == b"abc"
    assert await Wire(piece(b"")).exchange.body(3) == b""


async def test_a_body_is_counted_as_it_comes() -> None:
    with pytest.raises(ClientError) as caught:
        await Wire(piece(b"ab", more=True), piece(b"cd", more=True)).exchange.body(3)
    assert caught.value.status == 413


async def test_a_body_that_announces_to_be_too_large_is_not_waited_for() -> None:
    with pytest.raises(ClientError):
        await Wire(headers=((b"content-length", b"4"),)).exchange.body(3)


def encoded(data: bytes, coding: bytes) -> Wire:
    return Wire(piece(data[:3], more=True), piece(data[3:]), headers=((b"content-encoding", coding),))


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        (b"gzip", gzip.compress(b"abc", mtime=0)),
        (b" GZIP", gzip.compress(b"ab", mtime=0) + gzip.compress(b"c", mtime=0)),
        (b"deflate", zlib.compress(b"abc")),
        (b"identity", b"abc"),
    ],
)
async def test_an_encoded_body_is_decoded(coding: bytes, data: bytes) -> None:
    assert await encoded(data, coding).exchange.body(100) == b"abc"


@pytest.mark.parametrize(
    ("coding", "data", "status", "words"),
    [
        (b"gzip", gzip.compress(b"a" * 10_000_000, mtime=0), 413, "larger than 100,000 bytes"),
        (b"gzip", gzip.compress(b"abc", mtime=0)[:-2], 400, "breaks off"),
        (b"gzip", b"abcdef", 400, "not what its `content-encoding` says"),
        (b"zstd", b"abcdef", 415, "'zstd'"),
        (b"gzip, gzip", b"abcdef", 415, "'gzip, gzip'"),
    ],
)
async def test_an_encoded_body_that_cannot_be_read_is_refused(
    coding: bytes, data: bytes, status: int, words: str
) -> None:
    with pytest.raises(ClientError, match=re.escape(words)) as caught:
        await encoded(data, coding).exchange.body(100_000)
    assert caught.value.status == status


async def test_a_body_that_is_handed_on_in_pieces_must_be_sent_as_it_is() -> None:
    exchange = encoded(gzip.compress(b"abc", mtime=0), b"gzip").exchange
    with pytest.raises(ClientError, match="'gzip'"):
        [piece async for piece in exchange.pieces(100)]
    assert exchange.refusal is not None


async def test_a_client_that_goes_in_the_middle_of_its_body_is_gone() -> None:
    wire = Wire(piece(b"ab", more=True))
    wire.hang_up()
    with pytest.raises(ClientGoneError):
        await wire.exchange.body(3)


async def test_the_block_ends_when_the_client_goes() -> None:
    wire = Wire(piece(b""))
    await wire.exchange.body(3)
    asyncio.get_running_loop().call_soon(wire.hang_up)
    with pytest.raises(ClientGoneError):
        await watched(wire, asyncio.sleep(60))
    await asyncio.sleep(0)  # the task itself goes on as if it had never been cancelled


async def test_a_body_that_has_come_is_not_waited_for() -> None:
    assert await known(Known(b"abc")).body(3) == b"abc"
    with pytest.raises(ClientError):
        await known(Known(b"abcd")).body(3)


async def test_the_block_ends_when_the_server_tells_that_the_client_goes() -> None:
    client = Known()
    asyncio.get_running_loop().call_soon(client.go)
    with pytest.raises(ClientGoneError):
        async with known(client).watch():
            await asyncio.sleep(60)
    assert client.call is None
    with pytest.raises(ClientGoneError):
        async with known(client).watch():  # it has gone before
            await asyncio.sleep(60)
    await asyncio.sleep(0)


async def test_the_block_ends_when_the_client_goes_in_the_middle_of_a_body_that_someone_else_reads() -> None:
    wire = Wire(piece(b"ab", more=True))

    async def read() -> None:
        async for _ in wire.exchange.pieces(100):
            wire.hang_up()

    with pytest.raises(ClientGoneError):
        await watched(wire, asyncio.gather(read(), asyncio.sleep(60), return_exceptions=True))


async def test_a_client_that_goes_when_it_has_its_answer_disturbs_nobody() -> None:
    wire = Wire(piece(b""))
    await wire.exchange.body(3)
    async with wire.exchange.watch():
        await wire.exchange.respond(200, [], b"done")
        wire.hang_up()
        await asyncio.sleep(0.01)


async def test_a_cancellation_by_the_server_is_not_taken_for_the_client_s() -> None:
    wire = Wire()

    task = asyncio.create_task(watched(wire, asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_silence_is_noticed_and_writing_ends_it() -> None:
    wire = Wire(piece(b""))
    await wire.exchange.body(3)
    await wire.exchange.start(200, [])
    ticks = 0
    enough = asyncio.Event()

    async def tick() -> None:
        nonlocal ticks
        ticks += 1
        await wire.exchange.write(b"tick")
        if ticks == 3:
            enough.set()

    async with wire.exchange.watch(tick, every=0.01):
        await asyncio.wait_for(enough.wait(), 10)
    written = [message["body"] for message in wire.sent if message["type"] == "http.response.body"]
    assert written[:3] == [b"tick"] * 3


async def test_there_is_no_tick_while_something_is_written() -> None:
    wire = Wire(piece(b""))
    await wire.exchange.body(3)

    async def tick() -> None:
        raise AssertionError("it was not silent")

    async with wire.exchange.watch(tick, every=30):
        for _ in range(5):
            await wire.exchange.write(b"data")
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("data", "between"),
    [
        (b"data: 1\n\n", True),
        (b"data: 1\r\n\r\n", True),
        (b"data: 1\n", False),
        (b'data: {"a', False),
    ],
)
async def test_it_knows_whether_an_event_has_ended(data: bytes, between: bool) -> None:
    exchange = Wire().exchange
    await exchange.start(200, [("content-type", "text/event-stream")])
    assert exchange.is_event_stream
    assert exchange.between_events
    await exchange.write(data)
    assert exchange.between_events is between


async def test_a_whole_answer_has_its_length_and_the_request_s_id() -> None:
    wire = Wire()
    await wire.exchange.respond(201, [("content-type", "text/plain")], b"abc")
    start, end = wire.sent
    assert start["status"] == wire.exchange.status == 201
    names = (b"x-request-id", b"request-id")
    assert dict(start["headers"]) == {
        b"content-type": b"text/plain",
        b"content-length": b"3",
        **dict.fromkeys(names, b"r1"),
    }
    assert end == {"type": "http.response.body", "body": b"abc", "more_body": False}
    assert wire.exchange.ended

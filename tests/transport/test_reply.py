from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from proxy.core.errors import UpstreamError
from proxy.transport.inflate import PIECE
from proxy.transport.reply import Limits, Patience
from proxy.transport.upstream import Upstream, UpstreamReply
from tests.support.servers import Exchange, Step, answer, chunk, head, raw, scripted_server, stream

CHUNKED = head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})


async def test_the_head(upstream: Upstream) -> None:
    async with (
        scripted_server(answer(b"{}", 503, headers={"X-One": "1", "Retry-After": "2"})) as server,
        await upstream.open("POST", server.url) as reply,
    ):
        assert reply.status == 503
        assert ("X-One", "1") in reply.headers
        assert reply.header("retry-after") == "2"
        assert reply.header("x-two") is None
        assert await reply.read() == b"{}"


@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_each_piece_comes_before_the_next_is_sent(upstream: Upstream, coding: str) -> None:
    received = asyncio.Semaphore(0)
    compressor = zlib.compressobj(wbits=31)

    def on_the_wire(piece: bytes) -> bytes:
        if coding == "identity":
            return piece
        return compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)

    async def step(exchange: Exchange) -> None:
        await exchange.send(head(200, {"transfer-encoding": "chunked", "content-encoding": coding}))
        for piece in pieces:
            await exchange.send(chunk(on_the_wire(piece)))
            await received.acquire()
        rest = chunk(compressor.flush()) if coding == "gzip" else b""
        await exchange.send(rest + b"0\r\n\r\n")

    pieces = [b"data: 1\n\n", b"da", b"ta: 2\n\n", b"\xe6\x9d", b"\xb1"]
    got = []
    async with (
        asyncio.timeout(10),
        scripted_server(step) as server,
        await upstream.open("POST", server.url) as reply,
    ):
        async for piece in reply:
            got.append(piece)
            received.release()
    assert got == pieces


async def test_a_whole_body_leaves_its_connection_for_the_next(upstream: Upstream) -> None:
    async with scripted_server(stream(b"one ", b"two")) as server:
        for _ in range(3):
            reply = await upstream.open("POST", server.url)
            assert await reply.read() == b"one two"
        assert server.connections == 1


async def take(reply: UpstreamReply, got: list[bytes]) -> None:
    async for piece in reply:
        got.append(piece)


@pytest.mark.parametrize(
    "step",
    [
        stream(b"data: 1\n\n", end="cut"),
        stream(b"data: 1\n\n", end="reset"),
        raw(head(200, {"content-length": "100"}), b"data: 1\n\n"),
        raw(head(200, {"content-length": "100"}), b"data: 1\n\n", end="reset"),
        raw(CHUNKED, chunk(b"data: 1\n\n"), b"no size\r\n", end="hang"),
    ],
)
async def test_a_reply_that_breaks_off_is_an_error_after_what_came(upstream: Upstream, step: Step) -> None:
    got: list[bytes] = []
    async with scripted_server(step) as server, asyncio.timeout(10):
        async with await upstream.open("POST", f"{server.url}/v1") as reply:
            with pytest.raises(UpstreamError, match="broke off") as caught:
                await take(reply, got)
        await server.until(lambda: server.connections_open == 0)
    assert b"".join(got) == b"data: 1\n\n"
    assert caught.value.status == 502
    assert f"{server.url}/v1" in caught.value.message


async def test_a_body_that_ends_with_its_connection_is_whole(upstream: Upstream) -> None:
    async with scripted_server(raw(head(200, {}), b"to the ", b"end")) as server:
        reply = await upstream.open("POST", server.url)
        assert await reply.read() == b"to the end"


async def test_read_takes_a_body_up_to_its_limit(upstream: Upstream) -> None:
    async with scripted_server(answer(bytes(1000)), stream(bytes(600), bytes(400))) as server:
        for _ in range(2):
            reply = await upstream.open("POST", server.url)
            assert len(await reply.read(1000)) == 1000


async def endless(exchange: Exchange) -> None:
    await exchange.send(CHUNKED)
    while True:
        await exchange.send(chunk(bytes(50_000)))


@pytest.mark.parametrize("step", [answer(bytes(1001)), stream(bytes(600), bytes(401)), endless])
async def test_read_gives_up_a_body_past_its_limit(upstream: Upstream, step: Step) -> None:
    async with scripted_server(step) as server:
        reply = await upstream.open("POST", server.url)
        with pytest.raises(UpstreamError, match="more than 1000 bytes"):
            await reply.read(1000)
        await upstream.aclose()
        await server.until(lambda: server.connections_open == 0)


async def test_a_body_that_is_declared_too_long_is_not_even_begun(upstream: Upstream) -> None:
    async with scripted_server(raw(head(200, {"content-length": "1001"}), end="hang")) as server:
        reply = await upstream.open("POST", server.url)
        with pytest.raises(UpstreamError, match="more than 1000 bytes"):
            await reply.read(1000)
        await server.until(lambda: server.connections_open == 0)


async def test_compression_that_nobody_asked_for_is_undone(upstream: Upstream) -> None:
    body = gzip.compress(b'{"a": 1}')
    async with scripted_server(answer(body, headers={"Content-Encoding": "GZIP"})) as server:
        reply = await upstream.open("POST", server.url)
        assert [name for name, _ in reply.headers] == ["content-type"]
        assert await reply.read() == b'{"a": 1}'
        assert server.requests[0].header("accept-encoding") == "identity"


async def test_a_bomb_is_given_up_at_the_limit(upstream: Upstream) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    async with scripted_server(answer(bomb, headers={"content-encoding": "gzip"})) as server:
        reply = await upstream.open("POST", server.url)
        with pytest.raises(UpstreamError, match="more than 1000000 bytes"):
            await reply.read(1_000_000)
        async with await upstream.open("POST", server.url) as reply:
            async for piece in reply:
                assert len(piece) <= PIECE


async def test_a_compressed_body_that_is_cut_or_broken_is_an_error(upstream: Upstream) -> None:
    body = gzip.compress(bytes(range(256)) * 9)
    headers = {"content-encoding": "gzip"}
    async with scripted_server(
        answer(body[:-9], headers=headers), answer(b"plain", headers=headers), answer(b"", headers=headers)
    ) as server:
        reply = await upstream.open("POST", server.url)
        with pytest.raises(UpstreamError, match="broke off"):
            await reply.read()
        reply = await upstream.open("POST", server.url)
        with pytest.raises(UpstreamError, match="'gzip' that cannot be read"):
            await reply.read()
        reply = await upstream.open("POST", server.url)
        assert await reply.read() == b""


async def test_closing_a_reply_closes_its_connection(upstream: Upstream) -> None:
    async with scripted_server(stream(b"1", end="hang")) as server:
        reply = await upstream.open("POST", server.url)
        assert await anext(reply) == b"1"
        await reply.aclose()
        await server.until(lambda: server.connections_open == 0)
        assert [piece async for piece in reply] == []
        await reply.aclose()


async def test_closing_a_reply_from_outside_ends_the_reading(upstream: Upstream) -> None:
    async def read() -> list[bytes]:
        return [piece async for piece in reply]

    async with scripted_server(stream(b"1", end="hang")) as server, asyncio.timeout(10):
        reply = await upstream.open("POST", server.url)
        reading = asyncio.create_task(read())
        await asyncio.sleep(0.02)
        await reply.aclose()
        assert await reading == [b"1"]
        await server.until(lambda: server.connections_open == 0)


async def test_cancelling_the_reader_closes_the_connection(upstream: Upstream) -> None:
    got = asyncio.Event()

    async def read() -> None:
        async for _ in reply:
            got.set()

    async with scripted_server(stream(b"1", end="hang")) as server:
        reply = await upstream.open("POST", server.url)
        reading = asyncio.create_task(read())
        await got.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await server.until(lambda: server.connections_open == 0)


async def test_no_time_limit_unless_one_is_set() -> None:
    patience = Patience(Limits())
    assert patience.limit() is None
    patience.begun = True
    assert patience.limit() is None


async def test_the_limit_that_comes_first_counts() -> None:
    now = asyncio.get_running_loop().time()

    def wait(limits: Limits, begun: bool) -> int | None:
        patience = Patience(limits)
        patience.begun = begun
        limit = patience.limit()
        when = limit and limit.when()
        return None if when is None else round(when - now)

    assert wait(Limits(first_byte=100, idle=20, total=1000), begun=False) == 100
    assert wait(Limits(first_byte=100, idle=20, total=1000), begun=True) == 20
    assert wait(Limits(first_byte=100, idle=20, total=10), begun=False) == 10
    assert wait(Limits(first_byte=100), begun=True) is None
    assert wait(Limits(idle=20), begun=False) is None

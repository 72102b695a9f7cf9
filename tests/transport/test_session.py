from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import weakref
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from proxy.transport.session import Ticket, new_session, ticket
from tests.support.servers import Exchange, answer, chunk, head, raw, scripted_server, silent, stream

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with new_session(NO_TLS, proxy=None, reuse=True) as client:
        yield client


async def test_a_broken_chunk_ends_the_body(session: aiohttp.ClientSession) -> None:
    chunked = head(200, {"transfer-encoding": "chunked"})
    async with scripted_server(raw(chunked + chunk(b"abc"), b"zz\r\n", end="hang")) as server:
        async with asyncio.timeout(10), session.post(server.url) as response:
            assert await response.content.readany() == b"abc"
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.content.readany()
        await server.until(lambda: server.connections_open == 0)


@pytest.mark.parametrize("framing", [{"content-length": "4000000"}, {}])
async def test_a_slow_reader_gets_what_came_before_a_clean_end(
    session: aiohttp.ClientSession, framing: dict[str, str]
) -> None:
    body = bytes(range(250)) * 16_000
    async with scripted_server(raw(head(200, {"connection": "close", **framing}), body)) as server:
        async with session.post(server.url) as response:
            await asyncio.sleep(0.05)
            pieces = []
            while piece := await response.content.read(65_536):
                pieces.append(piece)
                await asyncio.sleep(0)
        assert b"".join(pieces) == body


async def test_closing_does_not_wait_for_the_request_to_be_taken(session: aiohttp.ClientSession) -> None:
    size = 30_000_000
    taken = asyncio.get_running_loop().create_future()
    go = asyncio.Event()

    async def reads_late(exchange: Exchange) -> None:
        await go.wait()
        taken.set_result(await exchange.until_gone())

    async with scripted_server(reads_late, read_bodies=False) as server:
        task = asyncio.create_task(send_all(session, server.url, size))
        await server.until(lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        async with asyncio.timeout(10):
            assert await taken < size


async def send_all(session: aiohttp.ClientSession, url: str, size: int) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield bytes(size)

    async with session.post(url, data=body(), headers={"content-length": str(size)}):
        raise AssertionError("no answer was sent")


async def test_cookies_are_not_kept(session: aiohttp.ClientSession) -> None:
    async with scripted_server(answer(headers={"set-cookie": "user=one; Path=/"})) as server:
        url = server.url.replace("127.0.0.1", "localhost")  # for an address no client would keep one
        for _ in range(2):
            async with session.post(url) as response:
                await response.read()
        assert server.requests[1].header("cookie") is None


async def test_long_headers_are_read(session: aiohttp.ClientSession) -> None:
    async with (
        scripted_server(answer(headers={"x-long": "x" * 60_000})) as server,
        session.post(server.url) as response,
    ):
        assert len(response.headers["x-long"]) == 60_000


async def test_more_than_a_hundred_at_once(session: aiohttp.ClientSession) -> None:
    async with scripted_server(silent) as server:
        tasks = [asyncio.create_task(post(session, server.url)) for _ in range(120)]
        await server.until(lambda: server.connections_open == 120)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.until(lambda: server.connections_open == 0)


async def post(session: aiohttp.ClientSession, url: str) -> bytes:
    async with session.post(url) as response:
        return await response.read()


@pytest.mark.parametrize(("reuse", "expected"), [(True, [False, True, True]), (False, [False] * 3)])
async def test_reuse_is_told_and_can_be_switched_off(reuse: bool, expected: list[bool]) -> None:
    seen = []
    async with (
        scripted_server(answer(b"{}")) as server,
        new_session(NO_TLS, proxy=None, reuse=reuse) as client,
    ):
        for _ in range(3):
            noted = Ticket()
            ticket.set(noted)
            await post(client, server.url)
            seen.append(noted.kept)
        assert seen == expected
        assert server.connections == (1 if reuse else 3)


async def test_a_kept_connection_that_dies_is_no_complaint_of_the_loop() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    async with (
        scripted_server(stream(b"1"), stream(b"2"), answer(b"3", end="reset"), answer(b"4")) as server,
        new_session(NO_TLS, proxy=None, reuse=True) as client,
    ):
        assert [await post(client, server.url) for _ in range(3)] == [b"1", b"2", b"3"]
        kept = client.connector
        assert kept is not None
        # its end has to be known here, too: else it meets the request, and that is another case
        await server.until(lambda: not any(each.is_connected() for pool in kept._conns.values() for each, _ in pool))
        assert await post(client, server.url) == b"4"
        gc.collect()
    assert complaints == []


async def test_a_kept_connection_does_not_keep_its_responses(session: aiohttp.ClientSession) -> None:
    async with scripted_server(stream(b"1")) as server:
        response = await session.post(server.url)
        assert await response.read() == b"1"
        gone = weakref.ref(response)
        del response
        assert await post(session, server.url) == b"1"
        gc.collect()
        assert gone() is None
        assert server.connections == 1


async def test_silent_peers_are_probed(session: aiohttp.ClientSession) -> None:
    async with scripted_server(stream(b"1", end="hang")) as server, session.post(server.url) as response:
        assert response.connection is not None
        assert response.connection.transport is not None
        sock = response.connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60

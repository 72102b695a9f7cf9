from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import httpx2
import pytest
import pytest_asyncio

from proxy.transport.connections import Connections, hung_up
from tests.support.servers import answer, head, raw, refusing_url, scripted_server, silent, stream

SIZED = {"content-length": "2"}


@pytest_asyncio.fixture
async def connections() -> AsyncIterator[Connections]:
    pool = Connections()
    yield pool
    await pool.aclose()


async def post(connections: Connections, url: str, fresh: bool = False) -> bytes:
    async with await connections.send("POST", url, SIZED, b"{}", tls=False, proxy=None, fresh=fresh) as answered:
        return await answered.content.read()


async def test_a_connection_is_kept(connections: Connections) -> None:
    async with scripted_server(answer(b"{}")) as server:
        for _ in range(5):
            assert await post(connections, server.url) == b"{}"
        assert server.connections == 1


async def test_a_server_that_closes_after_each_stream_does_no_harm(connections: Connections) -> None:
    async with scripted_server(stream(b"data: 1\n\n", end="close")) as server:
        for _ in range(20):
            assert await post(connections, server.url) == b"data: 1\n\n"
        assert len(server.requests) == 20


@pytest.mark.parametrize("end", ["close", "reset"])
async def test_a_request_lost_on_a_kept_connection_goes_again_on_a_new_one(connections: Connections, end: str) -> None:
    lost = raw(end="reset" if end == "reset" else "close")
    async with scripted_server(answer(b"1"), lost, answer(b"2")) as server:
        assert [await post(connections, server.url) for _ in range(2)] == [b"1", b"2"]
        assert [request.body for request in server.requests] == [b"{}"] * 3
        assert server.connections == 2


async def test_the_new_connection_is_not_another_kept_one(connections: Connections) -> None:
    async with scripted_server(answer(b"1"), answer(b"2"), raw(), answer(b"3")) as server:
        await asyncio.gather(post(connections, server.url), post(connections, server.url))
        assert await post(connections, server.url) == b"3"
        assert server.connections == 3


async def test_it_goes_again_only_once(connections: Connections) -> None:
    async with scripted_server(answer(b"1"), raw()) as server:
        await post(connections, server.url)
        with pytest.raises(httpx2.TransportError):
            await post(connections, server.url)
        assert len(server.requests) == 3


@pytest.mark.parametrize("fresh", [True, False])
async def test_a_request_lost_on_a_new_connection_does_not_go_again(connections: Connections, fresh: bool) -> None:
    async with scripted_server(raw()) as server:
        with pytest.raises(httpx2.TransportError):
            await post(connections, server.url, fresh)
        assert len(server.requests) == 1


async def test_a_request_that_was_being_answered_does_not_go_again(connections: Connections) -> None:
    async with scripted_server(answer(b"1"), raw(head(200, {})[:-2])) as server:
        await post(connections, server.url)
        with pytest.raises(httpx2.TransportError):
            await post(connections, server.url)
        assert len(server.requests) == 2


async def test_a_request_that_meets_the_leavings_of_an_earlier_answer_goes_again(connections: Connections) -> None:
    async with scripted_server(answer(b"1"), raw(b"no HTTP at all\r\n\r\n"), answer(b"2")) as server:
        assert await post(connections, server.url) == b"1"
        assert await post(connections, server.url) == b"2"
        assert server.connections == 2
    async with scripted_server(raw(b"no HTTP at all\r\n\r\n")) as server:
        with pytest.raises((httpx2.TransportError, aiohttp.ClientError)):
            await post(connections, server.url)
        assert len(server.requests) == 1


async def test_a_request_that_broke_late_does_not_go_again() -> None:
    connections = Connections(stale_within=0.0)
    async with scripted_server(answer(b"1"), raw()) as server:
        await post(connections, server.url)
        with pytest.raises(httpx2.TransportError):
            await post(connections, server.url)
        assert len(server.requests) == 2
    await connections.aclose()


async def test_a_fresh_connection_is_neither_taken_nor_kept(connections: Connections) -> None:
    async with scripted_server(answer(b"{}")) as server:
        for _ in range(2):
            await post(connections, server.url)
            await post(connections, server.url, fresh=True)
        assert server.connections == 3
        await server.until(lambda: server.connections_open == 1)


async def test_closing_ends_the_connections_in_use_too() -> None:
    connections = Connections()
    async with scripted_server(stream(b"1", end="hang")) as server:
        answered = await connections.send("POST", server.url, {}, b"", tls=False, proxy=None, fresh=False)
        assert await answered.content.readany() == b"1"
        await connections.aclose()
        with pytest.raises(aiohttp.ClientError):
            await answered.content.readany()
        answered.release()
        await server.until(lambda: server.connections_open == 0)


async def test_a_request_lost_by_closing_does_not_go_again() -> None:
    connections = Connections()
    async with scripted_server(answer(b"{}"), silent) as server:
        await post(connections, server.url)
        waiting = asyncio.create_task(post(connections, server.url))
        await server.until(lambda: len(server.requests) == 2)
        await connections.aclose()
        with pytest.raises(httpx2.CloseError):
            await waiting
        await server.until(lambda: server.connections_open == 0)
        assert len(server.requests) == 2


async def test_only_a_hang_up_counts_as_one(connections: Connections) -> None:
    with pytest.raises(httpx2.TransportError) as refused:
        await post(connections, refusing_url())
    assert not hung_up(refused.value)
    assert not hung_up(httpx2.ReadError("without a cause"))

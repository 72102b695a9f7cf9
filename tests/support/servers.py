"""A scripted HTTP server on the test's own event loop, down to the socket: it can misbehave in any way.

    async with scripted_server(answer(b"{}"), stream(b"data: 1\\n\\n", end="reset")) as server:
        ... two requests to server.url ...
        assert server.requests[0].body == b"..."
        await server.until(lambda: server.connections_open == 0)

A script is one step a request, over all connections; the last step goes on for ever. A step is a coroutine function
over one ``Exchange``: what the makers below do not offer is a few lines in the test itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

PATIENCE = 10.0
"""Seconds that a test waits for something that must happen, before it fails."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came: ``target`` as on the request line, header names in lower case."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the socket that it came on. ``connection`` counts the accepted connections from 1."""

    request: Received
    connection: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write now, in a segment of its own."""
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(0.001)

    async def until_gone(self) -> int:
        """Wait until the client closes the connection; what it still sent is thrown away, and counted."""
        count = 0
        with contextlib.suppress(ConnectionError):
            while data := await self.reader.read(65536):
                count += len(data)
        return count

    def close(self) -> None:
        """End the connection as a server does that has said everything."""
        self.writer.close()

    def reset(self) -> None:
        """End the connection as a dying server does: the client gets a TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Step: TypeAlias = Callable[[Exchange], Awaitable[None]]
End: TypeAlias = Literal["keep", "close", "reset", "hang"]


def raw(*pieces: bytes, end: End = "close") -> Step:
    """These bytes, and then: ``keep`` the connection, ``close`` it, ``reset`` it, or ``hang`` until the client goes."""

    async def step(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.send(piece)
        if end == "close":
            exchange.close()
        elif end == "reset":
            exchange.reset()
        elif end == "hang":
            await exchange.until_gone()

    return step


def head(status: int, headers: dict[str, str]) -> bytes:
    """A status line and headers."""
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(
    body: bytes = b"",
    status: int = 200,
    content_type: str = "application/json",
    headers: dict[str, str] | None = None,
    end: End = "keep",
) -> Step:
    """A whole answer with its length."""
    fields = {"content-type": content_type, "content-length": str(len(body)), **(headers or {})}
    return raw(head(status, fields) + body, end=end)


def chunk(data: bytes) -> bytes:
    """``data`` as one piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream(
    *pieces: bytes,
    status: int = 200,
    content_type: str = "text/event-stream",
    headers: dict[str, str] | None = None,
    end: End | Literal["cut"] = "keep",
) -> Step:
    """A chunked answer, a segment for each piece.

    ``keep``: whole. ``close``: whole, then the connection is closed without a word, as llama.cpp does. ``cut``: closed
    before the end was marked. ``reset``, ``hang``: in the midst of it.
    """
    fields = {"content-type": content_type, "transfer-encoding": "chunked", **(headers or {})}
    parts = [head(status, fields), *(chunk(piece) for piece in pieces)]
    if end in ("keep", "close"):
        parts.append(b"0\r\n\r\n")
    return raw(*parts, end="close" if end == "cut" else end)


silent: Step = raw(end="hang")
"""Take the request and say nothing, until the client goes."""


@dataclass(slots=True)
class ScriptedServer:
    """A running server. ``connections`` counts all that were accepted, ``connections_open`` those that still are."""

    script: tuple[Step, ...]
    read_bodies: bool = True
    scheme: str = "http"
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    connections_open: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        """The root, without a slash at the end."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until ``condition`` holds. Raises ``TimeoutError`` if it never does."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.002)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.connections_open += 1
        connection = self.connections
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    request = await read_request(reader, self.read_bodies)
                    self.requests.append(request)
                    step = self.script[min(len(self.requests), len(self.script)) - 1]
                    await step(Exchange(request, connection, reader, writer))
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()
            self.connections_open -= 1

    async def stop(self) -> None:
        """End every connection, whatever its step is doing."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader, with_body: bool) -> Received:
    """The next request. Raises ``IncompleteReadError`` when the client closes the connection instead."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = tuple((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:-2]))
    request = Received(method, target, headers)
    if not with_body:
        return request
    length = int(request.header("content-length") or 0)
    return Received(method, target, headers, await reader.readexactly(length))


@contextlib.asynccontextmanager
async def scripted_server(
    *script: Step, read_bodies: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedServer]:
    """Serve ``script`` on a free port of 127.0.0.1. ``read_bodies`` False leaves the request's body on the wire."""
    scripted = ScriptedServer(script, read_bodies, "https" if tls else "http")
    listener = await asyncio.start_server(scripted.accept, "127.0.0.1", 0, ssl=tls, limit=2**20)
    scripted.port = listener.sockets[0].getsockname()[1]
    try:
        yield scripted
    finally:
        listener.close()
        for _ in range(5):  # what was accepted a moment ago becomes a connection, which can be stopped
            await asyncio.sleep(0)
        await scripted.stop()
        await listener.wait_closed()


def refusing_url() -> str:
    """The root of a server that is not there: a port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"

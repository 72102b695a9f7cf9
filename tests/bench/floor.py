"""The least that a translator in Python does, by hand: ``python -m tests.bench.floor BACKEND_PORT``; prints its port.

It reads and writes HTTP as little as works, over kept connections; it logs nothing and survives nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import orjson
import uvloop

from tests.bench.http1 import JSON_HEAD, LAST_CHUNK, STREAM_HEAD, Message, chunk
from tests.bench.translator import Asked, Tokens, translated, whole

_HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b"
)


class Backend(asyncio.Protocol):
    """A kept connection to the backend."""

    def __init__(self) -> None:
        self.message = Message()
        self.told: Callable[[bytes], None] = print

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.told(self.message.feed(data))


class Client(asyncio.Protocol):
    """A connection of a client."""

    idle: list[Backend] = []  # noqa: RUF012 (one for all)
    port = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._message = Message()
        self._pieces: list[bytes] = []
        self._backend: Backend | None = None
        self._tokens = Tokens()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._backend is not None:
            self._backend.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._pieces.append(self._message.feed(data))
        if not self._message.ended:
            return
        asked: Asked = orjson.loads(b"".join(self._pieces))
        self._message, self._pieces = Message(), []
        self._tokens = Tokens()
        told = self._streamed if asked.get("stream") else self._whole
        if told == self._streamed:
            self._transport.write(STREAM_HEAD)
        body = translated(asked)
        if self.idle:
            self._send(self.idle.pop(), body, told)
        else:
            self._connecting = asyncio.ensure_future(self._connect(body, told))

    async def _connect(self, body: bytes, told: Callable[[bytes], None]) -> None:
        _, backend = await asyncio.get_running_loop().create_connection(Backend, "127.0.0.1", self.port)
        self._send(backend, body, told)

    def _send(self, backend: Backend, body: bytes, told: Callable[[bytes], None]) -> None:
        self._backend, backend.told = backend, told
        backend.transport.write(_HEAD % (len(body), body))

    def _release(self) -> None:
        assert self._backend is not None
        self._backend.message = Message()
        self.idle.append(self._backend)
        self._backend = None

    def _whole(self, data: bytes) -> None:
        self._pieces.append(data)
        assert self._backend is not None
        if self._backend.message.ended:
            body = whole(b"".join(self._pieces))
            self._pieces = []
            self._release()
            self._transport.write(JSON_HEAD % len(body) + body)

    def _streamed(self, data: bytes) -> None:
        out = self._tokens.feed(data)
        if out:
            self._transport.write(chunk(out))
        assert self._backend is not None
        if self._backend.message.ended:
            self._release()
            self._transport.write(LAST_CHUNK)


async def main(port: int) -> None:
    """Serve until killed."""
    Client.port = port
    server = await asyncio.get_running_loop().create_server(Client, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))

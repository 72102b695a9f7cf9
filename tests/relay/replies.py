"""A backend's reply without a backend."""

from __future__ import annotations

import asyncio
from typing import Self, cast

from proxy.core.errors import UpstreamError
from proxy.transport.upstream import UpstreamReply


class FakeReply:
    """Gives ``pieces`` as separate reads; then ends, breaks off, or (``open_ended``) stays silent."""

    def __init__(
        self, *pieces: bytes, content_type: str = "text/event-stream", broken: bool = False, open_ended: bool = False
    ) -> None:
        self.pieces = list(pieces)
        self.closed = False
        self._content_type = content_type
        self._broken = broken
        self._open_ended = open_ended

    def cast(self) -> UpstreamReply:
        return cast(UpstreamReply, self)

    def header(self, name: str) -> str | None:
        return self._content_type if name == "content-type" else None

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self])

    async def receive(self) -> bytes:
        if self.closed:
            return b""
        if self.pieces:
            return self.pieces.pop(0)
        if self._broken:
            raise UpstreamError("broke off")
        if self._open_ended:
            await asyncio.Event().wait()
        return b""

    async def aclose(self) -> None:
        self.closed = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await self.receive()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

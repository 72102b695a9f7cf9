"""A backend's reply: its head, and its body as the bytes arrive."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

import aiohttp

from proxy.core.errors import UpstreamError
from proxy.transport import failures
from proxy.transport.address import Address
from proxy.transport.inflate import ENCODINGS, Inflater

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a whole reply that ``read`` takes, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to wait, None for ever: for the first byte of the body, for more of it, for the whole."""

    first_byte: float | None = None
    idle: float | None = None
    total: float | None = None


class Patience:
    """The time limits of one request, from its start on."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._endless = limits.first_byte is None and limits.idle is None and limits.total is None
        self._awaited, self._seconds = "", 0.0
        self.begun = False

    def limit(self) -> asyncio.Timeout | None:
        """Bounds the next wait: for the head, or the next bytes of the body. None: it may last for ever."""
        if self._endless:
            return None
        waits: list[tuple[float, str, float]] = []
        limits = self._limits
        if limits.total is not None:
            waits.append((self._start + limits.total, "the whole of its reply", limits.total))
        if not self.begun and limits.first_byte is not None:
            waits.append((self._start + limits.first_byte, "the first byte of its reply", limits.first_byte))
        if self.begun and limits.idle is not None:
            waits.append((self._clock() + limits.idle, "more of its reply", limits.idle))
        if not waits:
            return None
        deadline, self._awaited, self._seconds = min(waits)
        return asyncio.timeout_at(deadline)

    def error(self, address: Address) -> UpstreamError:
        """The error for the wait that took too long."""
        return failures.timed_out(address, self._awaited, self._seconds)


_UNDONE = ("content-encoding", "content-length")


class UpstreamReply:
    """A reply: its head, and its body as it arrives.

    ``headers`` are as the backend sent them, except that a content coding which is undone here (gzip and deflate, see
    ``encoding``) is no longer named, nor the length that it led to.
    The body is read once: with ``receive``, which iterating over the reply does, or with ``read``. A ``listener`` is
    told of each piece. Close the reply in any case; as a context manager it does.
    """

    def __init__(self, response: aiohttp.ClientResponse, address: Address, patience: Patience) -> None:
        self.status = response.status
        self._response = response
        self._content = response.content
        self._address = address
        self._patience = patience
        self._closed = False
        self._ended = False
        self.listener: Callable[[bytes], None] | None = None
        self.encoding = (self.header("content-encoding") or "identity").strip().lower()
        self._inflater = Inflater() if self.encoding in ENCODINGS else None
        self._pieces: Iterator[bytes] = iter(())

    @cached_property
    def headers(self) -> list[tuple[str, str]]:
        """All headers, in the order in which they came."""
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._response.raw_headers]
        return [field for field in fields if field[0].lower() not in _UNDONE] if self._inflater else fields

    def header(self, name: str) -> str | None:
        """The first value of the header ``name``."""
        value: str | None = self._response.headers.get(name)
        return value

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """The whole body. Raises ``UpstreamError`` when it breaks off or has more than ``limit`` bytes."""
        declared = "" if self._inflater else self.header("content-length") or ""
        fits = not declared.isdecimal() or int(declared) <= limit
        pieces: list[bytes] = []
        size = 0
        try:
            while fits and (piece := await self.receive()):
                pieces.append(piece)
                size += len(piece)
                fits = size <= limit
                if fits and self._inflater is None and self._content.at_eof():
                    break
        finally:
            await self.aclose()
        if not fits:
            raise failures.too_large(self._address, limit)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def receive(self) -> Coroutine[None, None, bytes]:
        """More of the body, as soon as it is there; empty at its end, and once it is closed.

        Raises ``UpstreamError`` when the reply breaks off.
        """
        if self._closed:
            return _nothing()
        return self._next_inflated(self._inflater) if self._inflater else self._next_chunk(self.listener)

    async def aclose(self) -> None:
        """Let go of the connection: back to the pool if the body was read to its end, else closed at once."""
        if self._closed:
            return
        self._closed = True
        if not self._response.closed:  # it is, once all of it has come
            with contextlib.suppress(aiohttp.ClientError):
                self._response.release()
                await self._response.wait_for_close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await self.receive()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def _next_inflated(self, inflater: Inflater) -> bytes:
        try:
            while not (piece := next(self._pieces, b"")):
                chunk = await self._next_chunk()
                if not chunk:
                    break
                self._pieces = inflater.feed(chunk)
        except zlib.error as exc:
            await self.aclose()
            raise failures.unreadable(self._address, self.encoding) from exc
        if self._ended and not piece and not inflater.complete:
            raise failures.broke_off(self._address)
        if piece and self.listener is not None:
            self.listener(piece)
        return piece

    async def _next_chunk(self, listener: Callable[[bytes], None] | None = None) -> bytes:
        """The next bytes as they came, empty at the end of the body and after ``aclose``. ``listener`` is told."""
        limit = self._patience.limit()
        try:
            if limit is None:
                chunk = await self._content.readany()
            else:
                async with limit:
                    chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as exc:
            if self._closed:
                return b""
            await self.aclose()
            if isinstance(exc, TimeoutError):
                raise self._patience.error(self._address) from None
            raise failures.broke_off(self._address) from exc
        except BaseException:  # cancelled
            await self.aclose()
            raise
        self._patience.begun = True
        if not chunk:
            self._ended = True
            await self.aclose()
        elif listener is not None:
            listener(chunk)
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _nothing() -> bytes:
    return b""

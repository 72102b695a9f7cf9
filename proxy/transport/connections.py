"""The connections to backends: how they are made, kept, and replaced when they turn out to be dead."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import aiohttp
import httpx2

from proxy.transport.session import new_session

STALE_WITHIN = 5.0
"""Seconds in which a dead connection shows itself (a round trip). One that breaks later had taken the request."""

NO_LIMIT = aiohttp.ClientTimeout()

_HANGUPS = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ESHUTDOWN})


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request. ``body`` may be asked for twice; None is none. ``timeout`` is the HTTP client's."""

    method: str
    url: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: Callable[[], Body] = lambda: None
    timeout: aiohttp.ClientTimeout = NO_LIMIT


class _Kind(NamedTuple):
    tls: bool
    proxy: str | None
    fresh: bool


@dataclass(slots=True)
class _Ticket:
    """What became of one request: whether it went out on a connection that had served before."""

    reused: bool = False


Body: TypeAlias = bytes | AsyncIterator[bytes] | None
_ticket: ContextVar[_Ticket] = ContextVar("_ticket")


class Connections:
    """Sends requests on pooled connections, without a limit on their number and without cookies.

    A server may close an idle connection just when a request goes out on it; llama.cpp closes every one after a stream,
    and does not say so. Such a request was not read, so it is sent once more, on a new connection; so is one that meets
    the leavings of an earlier answer, which are no HTTP. A request that broke on a new connection, after any byte of
    the answer, or late is never sent again: the backend may be at work on it.

    ``tls`` is the context for https; by default certificates are verified by the system's store or SSL_CERT_FILE.
    To be used from one event loop.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, stale_within: float = STALE_WITHIN) -> None:
        self._given_tls = tls
        self._stale_within = stale_within
        self._sessions: dict[_Kind, aiohttp.ClientSession] = {}
        self._closed = False

    async def send(self, request: Outgoing, *, tls: bool, proxy: str | None, fresh: bool) -> aiohttp.ClientResponse:
        """Send ``request`` and wait for the head of the answer.

        ``fresh`` never uses a kept connection, nor keeps this one. Raises what the HTTP client raises.
        """
        clock = asyncio.get_running_loop().time
        ticket = _Ticket()
        token = _ticket.set(ticket)
        start = clock()
        try:
            return await self._send(request, _Kind(tls, proxy, fresh))
        except aiohttp.ClientError as exc:
            if not (ticket.reused and hung_up(exc) and clock() - start < self._stale_within):
                raise
        finally:
            _ticket.reset(token)
        return await self._send(request, _Kind(tls, proxy, fresh=True))

    async def _send(self, request: Outgoing, kind: _Kind) -> aiohttp.ClientResponse:
        return await self._session(kind).request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body(),
            timeout=request.timeout,
            allow_redirects=False,
        )

    async def aclose(self) -> None:
        """Close every connection, those in use too. Nothing can be sent any more."""
        self._closed = True
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    def _session(self, kind: _Kind) -> aiohttp.ClientSession:
        if self._closed:
            raise aiohttp.ClientConnectionError("the proxy is shutting down")
        session = self._sessions.get(kind)
        if session is None:
            # Loading the certificates takes a tenth of a second, so only those who need them pay for it. The empty
            # context trusts nobody.
            context = self._tls if kind.tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            session = new_session(context, proxy=kind.proxy, reuse=not kind.fresh, on_reuse=_note_reuse)
            self._sessions[kind] = session
        return session

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx2.create_ssl_context()


def hung_up(exc: aiohttp.ClientError) -> bool:
    """Whether the server closed the connection before the head of its answer had begun, or never began one."""
    if isinstance(exc, aiohttp.ClientResponseError):
        return True  # what came is no HTTP
    if isinstance(exc, aiohttp.ServerDisconnectedError):
        return isinstance(exc.message, str)  # otherwise it is the part of the head that did arrive
    return isinstance(exc, aiohttp.ClientConnectionResetError | aiohttp.ClientOSError) and (
        exc.errno is None or exc.errno in _HANGUPS
    )


def _note_reuse() -> None:
    _ticket.get().reused = True

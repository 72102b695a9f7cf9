"""The connections to backends: how they are made, kept, and replaced when they turn out to be dead."""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import aiohttp
import httpx2
from httpx_aiohttp.httpx2 import AiohttpTransport

from proxy.transport.session import Ticket, new_session, ticket

STALE_WITHIN = 5.0
"""Seconds in which a dead connection shows itself (a round trip). One that breaks later had taken the request."""

_HANGUPS = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ESHUTDOWN})


class _Kind(NamedTuple):
    tls: bool
    proxy: str | None
    fresh: bool


class Answer(NamedTuple):
    """The head of an answer, and its body as it comes."""

    head: httpx2.Response
    content: aiohttp.StreamReader


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
        self._transports: dict[_Kind, AiohttpTransport] = {}
        self._closed = False

    async def send(self, make: Callable[[], httpx2.Request], *, tls: bool, proxy: str | None, fresh: bool) -> Answer:
        """Send what ``make`` gives and wait for the head of the answer. Its stream is to be closed, not to be read.

        ``fresh`` never uses a kept connection, nor keeps this one. Raises what the HTTP client raises.
        """
        clock = asyncio.get_running_loop().time
        noted = Ticket()
        token = ticket.set(noted)
        start = clock()
        try:
            try:
                head = await self._transport(_Kind(tls, proxy, fresh)).handle_async_request(make())
            except (httpx2.TransportError, aiohttp.ClientResponseError) as exc:
                if not (noted.reused and hung_up(exc) and clock() - start < self._stale_within):
                    raise
                head = await self._transport(_Kind(tls, proxy, fresh=True)).handle_async_request(make())
        finally:
            ticket.reset(token)
        assert noted.content is not None  # noqa: S101 (the head has come, and the session notes the body with it)
        return Answer(head, noted.content)

    async def aclose(self) -> None:
        """Close every connection, those in use too. Nothing can be sent any more."""
        self._closed = True
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()

    def _transport(self, kind: _Kind) -> AiohttpTransport:
        if self._closed:
            raise httpx2.CloseError("the proxy is shutting down")
        transport = self._transports.get(kind)
        if transport is None:
            # Loading the certificates takes a tenth of a second, so only those who need them pay for it. The empty
            # context trusts nobody.
            context = self._tls if kind.tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            session = new_session(context, proxy=kind.proxy, reuse=not kind.fresh)
            transport = self._transports[kind] = AiohttpTransport(verify=context, client=session)
        return transport

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx2.create_ssl_context()


def hung_up(exc: httpx2.TransportError | aiohttp.ClientResponseError) -> bool:
    """Whether the server closed the connection before the head of its answer had begun, or never began one."""
    if isinstance(exc, aiohttp.ClientResponseError):
        return True  # what came is no HTTP
    cause = exc.__cause__
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return isinstance(cause.message, str)  # otherwise it is the part of the head that did arrive
    return isinstance(cause, aiohttp.ClientConnectionResetError | aiohttp.ClientOSError) and (
        cause.errno is None or cause.errno in _HANGUPS
    )

"""The connections to backends: how they are made, kept, and replaced when they turn out to be dead."""

from __future__ import annotations

import errno
import ssl
from collections.abc import AsyncIterator, Mapping
from functools import cached_property
from time import monotonic
from typing import NamedTuple

import aiohttp
import httpx2

from proxy.transport.session import Ticket, Transport, new_session

STALE_WITHIN = 5.0
"""Seconds in which a dead connection shows itself (a round trip). One that breaks later had taken the request."""

_HANGUPS = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ESHUTDOWN})


class _Kind(NamedTuple):
    tls: bool
    proxy: str | None
    fresh: bool


class Connections:
    """Sends requests on pooled connections, without a limit on their number and without cookies.

    A server may close an idle connection just when a request goes out on it; llama.cpp closes every one after a stream,
    and does not say so. Such a request was not read, so it is sent once more, on a new connection; so is one that meets
    the leavings of an earlier answer, which are no HTTP. A request that broke on a new connection, after any byte of
    the answer, or late is never sent again: the backend may be at work on it.

    ``tls`` is the context for https; by default certificates are verified by the system's store or SSL_CERT_FILE.
    ``connect_timeout`` is the seconds that it may take to make one. To be used from one event loop.
    """

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        stale_within: float = STALE_WITHIN,
        connect_timeout: float | None = None,
    ) -> None:
        self._given_tls = tls
        self._stale_within = stale_within
        self._connect_timeout = connect_timeout
        self._transports: dict[_Kind, Transport] = {}
        self._closed = False

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | AsyncIterator[bytes],
        *,
        tls: bool,
        proxy: str | None,
        fresh: bool,
    ) -> aiohttp.ClientResponse:
        """Send a request, whose headers tell the body's length, and wait for the head of the answer; close that.

        ``fresh`` never uses a kept connection, nor keeps this one; a body that comes in pieces wants that. Raises what
        the HTTP client raises.
        """
        noted = Ticket()
        start = monotonic()
        try:
            return await self._transport(_Kind(tls, proxy, fresh)).send(method, url, headers, body, noted)
        except (httpx2.TransportError, aiohttp.ClientResponseError) as exc:
            if not (noted.kept and hung_up(exc) and monotonic() - start < self._stale_within):
                raise
            return await self._transport(_Kind(tls, proxy, fresh=True)).send(method, url, headers, body, noted)

    async def aclose(self) -> None:
        """Close every connection, those in use too. Nothing can be sent any more."""
        self._closed = True
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()

    def _transport(self, kind: _Kind) -> Transport:
        if self._closed:
            raise httpx2.CloseError("the proxy is shutting down")
        transport = self._transports.get(kind)
        if transport is None:
            # Loading the certificates takes a tenth of a second, so only those who need them pay for it. The empty
            # context trusts nobody.
            context = self._tls if kind.tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            session = new_session(
                context, proxy=kind.proxy, reuse=not kind.fresh, connect_timeout=self._connect_timeout
            )
            transport = self._transports[kind] = Transport(session, context)
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

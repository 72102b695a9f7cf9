"""aiohttp, set up for model servers: connections that are noticed when they die, and closed when nobody listens."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from types import SimpleNamespace

import aiohttp
from aiohttp.connector import Connection

KEEPALIVE = 60.0
"""Seconds that an idle connection is kept."""

MAX_LINE = 64 * 1024
"""Bytes of the status line, and of one header. aiohttp's own 8,190 are too few for what some gateways send."""


def new_session(
    tls: ssl.SSLContext, *, proxy: str | None, reuse: bool, on_reuse: Callable[[], None]
) -> aiohttp.ClientSession:
    """A session without a limit on connections, without cookies (they would be one user's, sent for the next), and
    without a time limit of its own.

    ``on_reuse`` is called in a request's own context when it goes out on a connection that has served before.
    """

    async def note_reuse(
        session: aiohttp.ClientSession, context: SimpleNamespace, params: aiohttp.TraceConnectionReuseconnParams
    ) -> None:
        on_reuse()

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(note_reuse)
    connector = aiohttp.TCPConnector(
        ssl=tls,
        limit=0,
        force_close=not reuse,
        keepalive_timeout=KEEPALIVE if reuse else None,
        socket_factory=_watched_socket,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        proxy=proxy,
        response_class=_Response,
        trace_configs=[trace],
        max_line_size=MAX_LINE,
        max_field_size=MAX_LINE,
    )


class _Response(aiohttp.ClientResponse):
    """A response that ends when its connection does, and ends its connection at once when it is closed."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head, and watch the connection for as long as the body may come.

        aiohttp 3.14 forgets the body when it cannot parse what comes next (a broken chunk size): it closes the
        connection, and whoever reads the body would wait for ever.
        """
        protocol = connection.protocol
        await super().start(connection)
        closed = protocol.closed if protocol is not None else None
        if closed is None:
            self._fail()
            return self

        def unwatch() -> None:
            closed.remove_done_callback(self._fail)

        closed.remove_done_callback(_retrieve)  # there since an earlier request on this connection
        closed.add_done_callback(_retrieve)
        closed.add_done_callback(self._fail)
        self.content.on_eof(unwatch)
        return self

    def _fail(self, closed: asyncio.Future[None] | None = None) -> None:
        """The connection is gone: end the body with an error, unless it has ended by itself."""
        if not self.content.is_eof() and self.content.exception() is None:
            self.content.set_exception(aiohttp.ClientPayloadError("the connection was closed"))

    def close(self) -> None:
        """Close without waiting until the backend has read what is left of the request."""
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()
        super().close()


def _retrieve(closed: asyncio.Future[None]) -> None:
    """Look at how a connection ended: the event loop complains about a future that nobody looked at."""
    if not closed.cancelled():
        closed.exception()


def _watched_socket(info: aiohttp.AddrInfoType) -> socket.socket:
    """A socket whose peer is probed while it is silent.

    A reply may take many minutes to begin, so silence is no error; but a machine that was switched off or left the
    network would be waited for without end. The kernel's probes tell the two apart, in about two minutes.
    """
    family, kind, protocol, _, _ = info
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock

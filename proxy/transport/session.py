"""aiohttp, set up for model servers: connections that are noticed when they die, and closed when nobody listens."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

KEEPALIVE = 60.0
"""Seconds that an idle connection is kept."""

MAX_LINE = 64 * 1024
"""Bytes of the status line, and of one header. aiohttp's own 8,190 are too few for what some gateways send."""


@dataclass(slots=True)
class Ticket:
    """What becomes of one request: whether it went out on a connection that had served before, and the reply's body."""

    reused: bool = False
    content: aiohttp.StreamReader | None = None


ticket: ContextVar[Ticket] = ContextVar("ticket")
"""Where a request that is sent in this context is noted, if anywhere."""


def new_session(tls: ssl.SSLContext, *, proxy: str | None, reuse: bool) -> aiohttp.ClientSession:
    """A session without a limit on connections, without cookies (they would be one user's, sent for the next), and
    without a time limit of its own. Requests are noted in their ``ticket``.
    """
    connector = _Connector(
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
        max_line_size=MAX_LINE,
        max_field_size=MAX_LINE,
    )


class _Connector(aiohttp.TCPConnector):
    """Notes which requests go out on a connection that has served before, at a fifth of what tracing costs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._served: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 (as aiohttp has it)
    ) -> Connection:
        """A connection for ``req``."""
        connection = await super().connect(req, traces, timeout)
        if connection.protocol in self._served:
            if (noted := ticket.get(None)) is not None:
                noted.reused = True
        elif connection.protocol is not None:
            self._served.add(connection.protocol)
        return connection


class _Response(aiohttp.ClientResponse):
    """A response that ends when its connection does, and ends its connection at once when it is closed."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head, and watch the connection for as long as the body may come.

        aiohttp 3.14 forgets the body when it cannot parse what comes next (a broken chunk size): it closes the
        connection, and whoever reads the body would wait for ever.
        """
        protocol = connection.protocol
        await super().start(connection)
        if (noted := ticket.get(None)) is not None:
            noted.content = self.content
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

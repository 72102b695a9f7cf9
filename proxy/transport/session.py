"""aiohttp, set up for model servers: connections that are noticed when they die, and closed when nobody listens."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass

import aiohttp
from aiohttp.connector import Connection
from httpx_aiohttp.httpx2 import AiohttpTransport
from httpx_aiohttp.httpx2.transport import map_aiohttp_exceptions

KEEPALIVE = 60.0
"""Seconds that an idle connection is kept."""

MAX_LINE = 64 * 1024
"""Bytes of the status line, and of one header. aiohttp's own 8,190 are too few for what some gateways send."""


_SLICE = 64 * 1024
"""Bytes of a body that are written at once. The event loop itself holds no more of them than that."""

_LARGE = 1024 * 1024


@dataclass(slots=True)
class Ticket:
    """What is known of one request beside what aiohttp knows: a ``body`` to be written with its head, and whether it
    goes out on a connection that was ``kept``. None was if one is made for it.
    """

    body: bytes = b""
    kept: bool = True


ticket: ContextVar[Ticket] = ContextVar("ticket")
"""That of the request that is sent in this context, if it has any."""


class Transport(AiohttpTransport):
    """httpx2's transport, with a way for what is ready to be sent: nothing is made of it only to be taken apart again.

    That is half of what a request costs by way of httpx2's own requests and responses. The errors are the same.
    """

    def __init__(self, session: aiohttp.ClientSession, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, client=session)
        self._session = session

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | AsyncIterator[bytes], noted: Ticket
    ) -> aiohttp.ClientResponse:
        """Send a request, whose headers tell the body's length, and wait for the head of the answer.

        Raises what ``handle_async_request`` raises.
        """
        data: bytes | AsyncIterator[bytes] | None = body
        if isinstance(body, bytes):
            if len(body) <= _SLICE:
                noted.body, data = body, None
            elif len(body) > _LARGE:
                data = _slices(body)
        token = ticket.set(noted)
        try:
            return await self._session.request(method, url, headers=headers, data=data, allow_redirects=False)
        except Exception:
            with map_aiohttp_exceptions():
                raise
        finally:
            ticket.reset(token)


def new_session(
    tls: ssl.SSLContext, *, proxy: str | None, reuse: bool, connect_timeout: float | None = None
) -> aiohttp.ClientSession:
    """A session without a limit on connections, without cookies (they would be one user's, sent for the next), and
    without a time limit but ``connect_timeout``: for the name, the socket, TLS and the proxy's tunnel together.
    """
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
        timeout=aiohttp.ClientTimeout(connect=connect_timeout),
        auto_decompress=False,
        request_class=_Request,
        response_class=_Response,
        max_line_size=MAX_LINE,
        max_field_size=MAX_LINE,
    )


class _Request(aiohttp.ClientRequest):
    """A request whose body, if its ticket has one, is written with the head.

    aiohttp makes an object of a body and, before Python 3.12, a task that writes it.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Write the request."""
        noted = ticket.get(None)
        body = b"" if noted is None else noted.body
        if body and conn.protocol is not None and conn.protocol.writing_paused:  # an earlier body is still going out
            self.update_body_from_data(body)
            body = b""
        response = await super().send(conn)
        if body and conn.transport is not None:
            conn.transport.write(body)
        return response


class _Response(aiohttp.ClientResponse):
    """A response that ends when its connection does, and ends its connection at once when it is closed."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Wait for the head, and watch the connection for as long as the body may come.

        aiohttp 3.14 forgets the body when it cannot parse what comes next (a broken chunk size): it closes the
        connection, and whoever reads the body would wait for ever.
        """
        protocol = connection.protocol
        await super().start(connection)
        if self.content.is_eof():  # it came with its head
            return self
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


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    """A large body piece by piece, so that writing it does not hold up everyone else."""
    for start in range(0, len(body), _SLICE):
        yield body[start : start + _SLICE]


def _watched_socket(info: aiohttp.AddrInfoType) -> socket.socket:
    """A socket whose peer is probed while it is silent.

    A reply may take many minutes to begin, so silence is no error; but a machine that was switched off or left the
    network would be waited for without end. The kernel's probes tell the two apart, in about two minutes.
    """
    if (noted := ticket.get(None)) is not None:
        noted.kept = False
    family, kind, protocol, _, _ = info
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock

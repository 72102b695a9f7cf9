"""The HTTP client: one request to a backend.

A reply may take minutes to begin and hours to end, so nothing but making the connection has a time limit unless one is
set. Whoever no longer wants a reply cancels the task or closes the reply: the socket is closed at once, which is what
makes a model server stop generating.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import Self, TypeAlias

import aiohttp
import httpx2

from proxy.transport import failures
from proxy.transport.address import Address, Proxies, locate
from proxy.transport.connections import Connections
from proxy.transport.inflate import ENCODINGS
from proxy.transport.reply import MAX_BODY, Limits, Patience, UpstreamReply

__all__ = ["MAX_BODY", "Upstream", "UpstreamReply"]

Headers: TypeAlias = Mapping[str, str] | Iterable[tuple[str, str]]

_OURS = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade"),
        *("host", "content-length", "transfer-encoding", "expect", "accept-encoding"),
    }
)
"""Headers that belong to a connection, not to the message: those of a client are not sent on."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_LARGE = 1024 * 1024
_SLICE = 64 * 1024


class Upstream:
    """Requests to backends over pooled connections, from one event loop. Close it at the end.

    Times are in seconds, None is no limit: ``connect_timeout`` for making a connection, ``first_byte_timeout`` from the
    request to the first byte of the reply's body, ``idle_timeout`` between bytes, ``total_timeout`` for everything.
    ``tls`` replaces the system's store of certificates, ``proxies`` the environment's.
    """

    def __init__(
        self,
        *,
        connect_timeout: float = 10.0,
        first_byte_timeout: float | None = None,
        idle_timeout: float | None = None,
        total_timeout: float | None = None,
        tls: ssl.SSLContext | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self._connect_timeout = connect_timeout
        self._limits = Limits(first_byte_timeout, idle_timeout, total_timeout)
        self._proxies = Proxies() if proxies is None else proxies
        self._connections = Connections(tls)

    async def open(
        self,
        method: str,
        url: str,
        *,
        headers: Headers = (),
        body: bytes | AsyncIterator[bytes] = b"",
        length: int | None = None,
        fresh: bool = False,
    ) -> UpstreamReply:
        """Send a request and wait for the head of its reply, whatever its status is.

        A body that comes in pieces has ``length`` bytes in all (None: not known); it can be sent only once, so it goes
        on a new connection. A body without a content type is JSON. Credentials in ``url`` are sent unless ``headers``
        have an ``authorization``. The reply is asked for uncompressed. ``fresh`` uses a new connection, for this
        request alone.
        Raises ``UpstreamError`` when there is no reply, or a redirect: these are not followed, since a backend's key
        must not travel. Cancelling the task closes the socket at once.
        """
        address = locate(url)
        proxy = self._proxies.choose(address)
        if isinstance(body, bytes):
            length = len(body)
        else:
            fresh = True
        fields = _fields(headers, address, length)
        plain = all(value.isascii() for _, value in fields)
        # What httpx calls "pool" is aiohttp's "connect": the name, the socket, TLS and the proxy's tunnel together.
        extensions = {"timeout": {"pool": self._connect_timeout}}

        def make() -> httpx2.Request:
            if not isinstance(body, bytes) or len(body) > _LARGE:
                content = _slices(body) if isinstance(body, bytes) else body
                return httpx2.Request(method, address.url, headers=fields, content=content, extensions=extensions)
            stream = httpx2.ByteStream(body)  # given as a stream, so that it is not asked which headers it wants
            request = httpx2.Request(method, address.url, headers=fields, stream=stream, extensions=extensions)
            request.read()
            if plain:
                request.headers.encoding = "ascii"  # else the HTTP client finds out, for each header
            return request

        tls = address.tls or (proxy or "").startswith("https://")
        patience = Patience(self._limits)
        try:
            async with patience.limit() or nullcontext():
                answer = await self._connections.send(make, tls=tls, proxy=proxy, fresh=fresh)
        except TimeoutError:
            raise patience.error(address) from None
        except (httpx2.TransportError, aiohttp.ClientError, OSError, ValueError) as exc:
            raise failures.failed_to_answer(exc, address, proxy, self._connect_timeout) from exc
        reply = UpstreamReply(*answer, address, patience)
        if not 200 <= reply.status <= 599:  # no final status of HTTP: nothing that could be handed on
            await reply.aclose()
            raise failures.no_status(address, reply.status)
        location = reply.header("location")
        if reply.status in _REDIRECTS and location is not None:
            await reply.aclose()
            raise failures.redirected(address, reply.status, location)
        if reply.encoding != "identity" and reply.encoding not in ENCODINGS:
            await reply.aclose()
            raise failures.unreadable(address, reply.encoding)
        return reply

    async def aclose(self) -> None:
        """Close every connection, those of unfinished replies too."""
        await self._connections.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _fields(given: Headers, address: Address, length: int | None) -> list[tuple[bytes, bytes]]:
    """The headers of a request: the caller's, and what they leave open. ``length`` is the body's, None if not known."""
    pairs = given.items() if isinstance(given, Mapping) else given
    fields = [(name.lower(), value) for name, value in pairs]
    fields = [field for field in fields if field[0] not in _OURS]
    named = {name for name, _ in fields}
    fields.append(("accept-encoding", "identity"))
    if "user-agent" not in named:
        fields.append(("user-agent", "toolgraft"))
    if address.authorization and "authorization" not in named:
        fields.append(("authorization", address.authorization))
    if length != 0 and "content-type" not in named:
        fields.append(("content-type", "application/json"))
    if length:
        fields.append(("content-length", str(length)))
    return [(name.encode(), _header_bytes(value)) for name, value in fields]


def _header_bytes(value: str) -> bytes:
    """Latin-1, in which servers hand over what a client sent; UTF-8 for what does not fit, instead of failing."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace")


async def _slices(body: bytes) -> AsyncIterator[bytes]:
    """A large body piece by piece, so that writing it does not hold up everyone else."""
    for start in range(0, len(body), _SLICE):
        yield body[start : start + _SLICE]

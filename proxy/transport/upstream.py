"""The HTTP client: one request to a backend.

A reply may take minutes to begin and hours to end, so nothing but making the connection has a time limit unless one is
set. Whoever no longer wants a reply cancels the task or closes the reply: the socket is closed at once, which is what
makes a model server stop generating.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
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
        self._connections = Connections(tls, connect_timeout=connect_timeout)

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
        sending = self._connections.send(
            method,
            address.text,
            _fields(headers, address, length),
            body,
            tls=address.tls or (proxy is not None and proxy.startswith("https://")),
            proxy=proxy,
            fresh=fresh,
        )
        patience = Patience(self._limits)
        limit = patience.limit()
        try:
            if limit is None:
                answer = await sending
            else:
                async with limit:
                    answer = await sending
        except TimeoutError:
            raise patience.error(address) from None
        except (httpx2.TransportError, aiohttp.ClientError, OSError, ValueError) as exc:
            raise failures.failed_to_answer(exc, address, proxy, self._connect_timeout) from exc
        reply = UpstreamReply(answer, address, patience)
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


def _fields(given: Headers, address: Address, length: int | None) -> dict[str, str]:
    """The headers of a request: the caller's, and what they leave open. ``length`` is the body's, None if not known."""
    fields: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, Mapping) else given:
        name = name.lower()
        if name in _OURS:
            continue
        if not value.isascii():
            value = _as_utf8(value)
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    fields["accept-encoding"] = "identity"
    fields.setdefault("user-agent", "toolgraft")
    if address.authorization:
        fields.setdefault("authorization", address.authorization)
    if length != 0:
        fields.setdefault("content-type", "application/json")
    if length:
        fields["content-length"] = str(length)
    return fields


def _as_utf8(value: str) -> str:
    """What goes out as it came: servers hand over the bytes of a header as Latin-1, and the client writes UTF-8."""
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value.encode("utf-8", "replace").decode("utf-8")

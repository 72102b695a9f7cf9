"""HTTP/1.1 as uvicorn reads it, with bounds on what comes before a body, and errors that are objects.

As it comes, uvicorn has no limit on the length of a request's head or of a chunk's extension, waits for a head for
ever, answers broken HTTP in plain text, does not tell a request that its client has gone while others wait behind it on
the connection, and loses the body of a request that offers to go on in another protocol.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, cast

import httptools
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from proxy.asgi import CLIENT, STOPPING
from proxy.core.errors import ClientError
from proxy.telemetry import RequestLog
from proxy.wire.openai_errors import encode_error

MOST_HEAD = 64 * 1024
"""Bytes of a request's line and headers together, and of whatever else is neither head nor body."""

HEAD_WITHIN = 60.0
"""Seconds in which a request's head must have come, once the connection is there or its first byte is."""

MOST_PIPELINED = 8
"""Requests on one connection that are read while an earlier one is being answered."""

_OFFER = frozenset({b"upgrade", b"http2-settings"})


class _Client:
    """The client of a request that is being answered (``asgi.Client``)."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._call: Callable[[], None] | None = None

    def take_body(self) -> bytes | None:
        """What is left of the body, if all of that has come."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected or cycle.response_complete:
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()
        return body

    def when_gone(self, call: Callable[[], None] | None) -> None:
        """Have ``call`` called when the client goes. What it sends is read on, else that would not be seen."""
        self._call = call
        if call is not None:
            self._cycle.flow.resume_reading()
            if self._cycle.disconnected:
                call()

    def gone(self) -> None:
        """It has gone."""
        if self._call is not None:
            self._call()


class Protocol(HttpToolsProtocol):
    """One connection of a client."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._running: RequestResponseCycle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._in_head = True
        self._unread = 0  # bytes that have come since the parser last completed anything
        self._read = 0  # bytes that came last
        self._most = 0  # those in which the head that is being read stands: it has no more
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is being answered, which need not be the last one that came."""
        self._stop_waiting()
        self._unset_keepalive_if_required()  # left running by uvicorn after a reset, it keeps all of the last request
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
            client: _Client | None = cast(Scope, self._running.scope).get(CLIENT)
            if client is not None:
                client.gone()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The server is being stopped: the answers that have begun may end."""
        if self._running is not None:
            cast(Scope, self._running.scope)[STOPPING] = True
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        """Parse ``data``. Reading goes on behind a request that is being answered, or its leaving would not be seen."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._read = len(data)
        self._unread += self._read
        self._most += self._read
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(ClientError("The request is not valid HTTP/1.1.", code="invalid_http"))
        if self._refused or self.transport.is_closing():
            return
        if self._unread > MOST_HEAD:
            self._refuse_head()
        elif self._in_head and self._deadline is None:
            self._expect_head()
        if self.pipeline and len(self.pipeline) < MOST_PIPELINED and len(self.cycle.body) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def _parse(self, data: bytes) -> None:
        """Parse ``data``, which may hold many requests that offer another protocol."""
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                if not self._offered:
                    return
                data = self._declined(data[offer.args[0] :])
                self._unread = len(data)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        self._most = self._read
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._in_head = False
        self._unread = 0
        self._stop_waiting()
        if self._most > MOST_HEAD and self._head_size > MOST_HEAD:
            self._refuse_head()
        elif not self._offered:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of its body is."""
        self._unread = 0
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it is."""
        self._unread = 0
        if not (self._refused or self._offered):
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        cast(Scope, cycle.scope)[CLIENT] = _Client(cycle)
        super()._start_asgi_task(cycle, app)

    @property
    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    @property
    def _offered(self) -> bool:
        """Whether the request would go on in another protocol; CONNECT, which nothing here knows, does not count."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _declined(self, rest: bytes) -> bytes:
        """A request that offers another protocol (Java's HTTP client does: HTTP/2) as one that does not.

        The parser takes the end of such a head for the end of the request. ``rest`` is what follows the head.
        """
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + self.parser.get_http_version().encode()]
        for name, value in self.headers:
            if name == b"connection":
                kept = [token for token in value.split(b",") if token.strip().lower() not in _OFFER]
                value = b",".join(kept)
            if name not in _OFFER:
                lines.append(name + b": " + value)
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join(lines) + b"\r\n\r\n" + rest

    def _expect_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_WITHIN, self._head_is_late)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _head_is_late(self) -> None:
        self._deadline = None
        if self._answering:
            self._expect_head()
        elif self._unread:
            error = f"The request's head did not come within {HEAD_WITHIN:g} seconds."
            self._refuse(ClientError(error, status=408, code="request_timeout"))
        else:
            self.transport.close()

    @property
    def _answering(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _refuse_head(self) -> None:
        error = f"The request's head is larger than {MOST_HEAD:,} bytes."
        self._refuse(ClientError(error, status=431, code="head_too_large"))

    def _refuse(self, error: ClientError) -> None:
        """End the connection: with the error, unless an answer has begun that it would become a part of."""
        if self._refused:
            return
        self._refused = True
        self._stop_waiting()
        if self._running is None or self._running.response_complete or not self._running.response_started:
            log = RequestLog("req_" + os.urandom(8).hex(), "broken", error=error.code, fault="client")
            log.status, headers, body = encode_error(error)
            lines = [*headers, ("x-request-id", log.id), ("content-length", str(len(body))), ("connection", "close")]
            head = "".join(f"{name}: {value}\r\n" for name, value in lines)
            self.transport.write(STATUS_LINE[log.status] + head.encode("latin-1") + b"\r\n" + body)
            log.write()
        self.transport.close()

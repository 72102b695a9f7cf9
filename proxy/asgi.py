"""One HTTP request and its answer, over bare ASGI: the body, the client's going away, and a response sent just once."""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from functools import partial
from types import TracebackType
from typing import Protocol, TypeAlias, cast

from starlette.types import Message, Receive, Scope, Send

from proxy.apart import apart
from proxy.core.errors import ClientError
from proxy.tape import Tape
from proxy.telemetry import MOST_CONTENT
from proxy.transport.inflate import ENCODINGS, Inflater

Headers: TypeAlias = Iterable[tuple[str, str]]

IDENTITY = "identity"
"""The content coding of a body that is sent as it is."""

STOPPING = "toolgraft.stopping"
"""The entry of a request's scope that is True once the server is being stopped: what has no end of its own ends now."""


CLIENT = "toolgraft.client"
"""The entry of a request's scope that is its ``Client``, where the server knows more of that than ASGI tells."""


class Client(Protocol):
    """The client of one request, as the server knows it: what is there need not be waited for."""

    def take_body(self) -> bytes | None:
        """What is left of the request's body, if all of that has come; it is then no longer received."""

    def when_gone(self, call: Callable[[], None] | None) -> None:
        """Have ``call`` (None: nothing any more) called when the client goes, at once if it has gone."""


class ClientGoneError(Exception):
    """The client closed the connection before its answer was complete."""


class Exchange:
    """A request being answered.

    ``patience`` is how many seconds the client may pause while it sends the body, None for ever. ``refusal`` is why no
    more of the body was read by whoever reads it in pieces. ``extra`` are headers that the answer has, whatever it is.
    ``asked`` and ``kept`` are the request's body and the answer's, as far as they are kept for the log; ``tape`` hears
    the answer. ``status`` is None until it has gone out; from then on an error can only be told inside the answer's
    body. ``ended`` tells whether all of it has gone out.
    ``clock`` tells the event loop's time; ``last_write`` is that of its last bytes, or of the moment when the wait for
    them began.
    ``is_event_stream``: the answer is one, and ``between_events``: another event may be put in now.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, request_id: str, patience: float | None = None
    ) -> None:
        self.scope = scope
        self.client: Client | None = scope.get(CLIENT)
        self.request_id = request_id
        self.clock = asyncio.get_running_loop().time
        self._patience = patience
        self._receive = receive
        self._send = send
        self._gone = False
        self._headers: list[tuple[str, str]] | None = None
        self._first: dict[bytes, bytes] | None = None
        self._received = 0  # bytes of the body
        self._body_read: asyncio.Event | None = None  # while someone else than the watch listens
        self.refusal: ClientError | None = None
        self.extra: list[tuple[str, str]] = []
        self.asked = b""
        self.kept: bytearray | None = None
        self.tape: Tape | None = None
        self.status: int | None = None
        self.ended = False
        self.last_write = 0.0
        self.is_event_stream = False
        self.between_events = True

    @property
    def method(self) -> str:
        """The HTTP method, in upper case."""
        return cast(str, self.scope["method"])

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The request's headers, names in lower case."""
        if self._headers is None:
            self._headers = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in self.scope["headers"]]
        return self._headers

    def header(self, name: str) -> str | None:
        """The first value of the header ``name``, which is in lower case."""
        if self._first is None:
            self._first = dict(reversed(self.scope["headers"]))
        value = self._first.get(name.encode())
        return None if value is None else value.decode("latin-1")

    async def body(self, limit: int) -> bytes:
        """The whole body, inflated. Raises ``ClientError`` and ``ClientGoneError``.

        413 is for more than ``limit`` bytes, on the wire or once inflated, 415 for a coding that is not known.
        """
        self._check(limit, ENCODINGS)
        pieces: list[bytes] = []
        more = True
        while more:
            piece, more = await self._next_piece(limit)
            pieces.append(piece)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return await apart(limit, partial(_inflated, data, limit)) if data and self._coding != IDENTITY else data

    def pieces(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it arrives, for whoever reads it within ``watch``. Raises as ``body``, 415 for any coding."""
        self._body_read = asyncio.Event()
        return self._pieces(limit, self._body_read)

    @property
    def _coding(self) -> str:
        return (self.header("content-encoding") or IDENTITY).strip().lower()

    async def _pieces(self, limit: int, read: asyncio.Event) -> AsyncIterator[bytes]:
        try:
            self._check(limit, frozenset())
            more = True
            while more:
                piece, more = await self._next_piece(limit)
                if piece:
                    yield piece
        except ClientError as error:
            self.refusal = error
            raise
        finally:
            read.set()

    def _check(self, limit: int, codings: Collection[str]) -> None:
        """Raise ``ClientError`` when the head says of the body that it cannot be taken."""
        declared = self.header("content-length") or ""
        if self._coding not in (IDENTITY, *codings):
            raise _unknown_coding(self._coding)
        if declared.isdecimal() and int(declared) > limit:
            raise _too_large(limit)

    async def _next_piece(self, limit: int) -> tuple[bytes, bool]:
        """The next bytes of the body, maybe none, and whether there are more. Raises as ``body``."""
        message = await self._next_message()
        if message["type"] == "http.disconnect":
            self._gone = True
            raise ClientGoneError
        piece: bytes = message.get("body", b"")
        self._received += len(piece)
        if self._received > limit:
            raise _too_large(limit)
        return piece, message.get("more_body", False)

    async def _next_message(self) -> Message:
        rest = None if self.client is None else self.client.take_body()
        if rest is not None:
            return {"type": "http.request", "body": rest, "more_body": False}
        try:
            async with asyncio.timeout(self._patience):
                return await self._receive()
        except TimeoutError:
            raise ClientError(
                f"Nothing more of the request's body came for {self._patience:g} seconds.",
                status=408,
                code="request_timeout",
            ) from None

    async def disconnected(self) -> None:
        """Return when the client has closed the connection. What is left of the body is ignored."""
        if self._body_read is not None:
            await self._body_read.wait()
        while not self._gone:
            self._gone = (await self._receive())["type"] == "http.disconnect"

    def watch(self, tick: Callable[[], Awaitable[None]] | None = None, every: float = 0.0) -> Watch:
        """A block that ends when the client goes away; see ``Watch``."""
        return Watch(self, tick, every)

    async def start(self, status: int, headers: Headers) -> None:
        """Send the status and the headers, the request's id among them under OpenAI's name and Anthropic's."""
        headers = list(headers)
        self.is_event_stream = any(name == "content-type" and "event-stream" in value for name, value in headers)
        await self._begin(status, headers)

    async def write(self, data: bytes) -> None:
        """Send a piece of the body, which is not empty."""
        self._keep(data)
        self.last_write = self.clock()
        self.between_events = data.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self, data: bytes = b"") -> None:
        """Send the last piece of the body."""
        self._keep(data)
        self.ended = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer."""
        await self._begin(status, [*headers, ("content-length", str(len(body)))])
        await self.end(body)

    async def _begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.status = status
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (*headers, *self.extra)]
        name = self.request_id.encode("latin-1")
        raw += (b"x-request-id", name), (b"request-id", name)
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    def _keep(self, data: bytes) -> None:
        if self.tape is not None:
            self.tape.told.add(data)
        if self.kept is not None and len(self.kept) <= MOST_CONTENT:
            self.kept += data


class Watch:
    """Cancels its block when the client goes away; calls ``tick`` when nothing was sent for ``every`` seconds.

    An endpoint that waits for its backend is not told by the server that nobody waits for it any more: something has to
    listen all the time: the server itself, if it offers that, else a task. The block then raises ``ClientGoneError``.
    """

    def __init__(self, exchange: Exchange, tick: Callable[[], Awaitable[None]] | None, every: float) -> None:
        self._exchange = exchange
        self._tick = tick
        self._every = every
        self._gone = False
        self._watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._block = cast("asyncio.Task[object]", asyncio.current_task())
        self._exchange.last_write = self._exchange.clock()
        client = self._exchange.client
        if self._tick is None and client is not None:
            client.when_gone(self._end)
        else:
            self._watcher = asyncio.create_task(self._run())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None  # else the two hold each other until they are found to be garbage
        elif self._exchange.client is not None:
            self._exchange.client.when_gone(None)
        if self._gone:
            self._block.uncancel()
            raise ClientGoneError from None

    async def _run(self) -> None:
        if self._tick is None:
            await self._exchange.disconnected()
        else:
            while not await self._one_silence(self._tick):
                pass
        self._end()

    def _end(self) -> None:
        """The client has gone."""
        if not self._exchange.ended:
            self._gone = True
            self._block.cancel()

    async def _one_silence(self, tick: Callable[[], Awaitable[None]]) -> bool:
        """Wait until the next tick is due, and see whether it still is; True when the client has gone."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._exchange.last_write + self._every):
                await self._exchange.disconnected()
                return True
        if self._exchange.clock() - self._exchange.last_write >= self._every:
            await tick()
        return False


def _too_large(limit: int) -> ClientError:
    return ClientError(f"The request body is larger than {limit:,} bytes.", status=413, code="request_too_large")


def _unknown_coding(coding: str) -> ClientError:
    return ClientError(
        f"The request's body is encoded as {coding!r} (`content-encoding`), which is not read here. Send it as it is.",
        status=415,
        code="unsupported_content_encoding",
    )


def _inflated(data: bytes, limit: int) -> bytes:
    """What a body in gzip or deflate stands for. Raises ``ClientError``, beyond ``limit`` bytes before it has more."""
    inflater = Inflater()
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in inflater.feed(data):
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
    except zlib.error as error:
        raise ClientError(f"The request's body is not what its `content-encoding` says: {error}.") from None
    if not inflater.complete:
        raise ClientError("The request's body breaks off before its `content-encoding` comes to its end.")
    return b"".join(pieces)

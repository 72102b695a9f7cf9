"""A model server that says what it is told to: OpenAI's Chat Completions over loopback, byte for byte as scripted.

    with Backend() as backend:
        backend.script(text("Let me ", "look.", usage=(5, 3)))
        ... requests to backend.url ...
        backend.chats[-1].json["messages"]

It runs its own event loop in a thread, records every request, and knows when the peer hung up. A reply is a coroutine
function over one ``Exchange``, so a test can write any misbehaviour as a few lines of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlsplit

USAGE = (11, 7)
"""Prompt and completion tokens that a scripted reply reports unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it arrived. Header names are in lower case; ``path`` is still percent-encoded."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass(slots=True)
class Exchange:
    """One request and the socket to answer it on."""

    request: Recorded
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    hung_up: threading.Event
    ends_connection: bool = False

    async def head(self, status: int = 200, content_type: str = "application/json", *more: tuple[str, str]) -> None:
        """Status line and headers; unless ``more`` has a content-length the body ends with the connection."""
        lines = [f"HTTP/1.1 {status} Scripted", f"content-type: {content_type}"]
        lines += [f"{name}: {value}" for name, value in more]
        if not any(name.lower() == "content-length" for name, _ in more):
            lines.append("connection: close")
            self.ends_connection = True
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def wait_for_hang_up(self) -> None:
        """Until the peer closes the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(4096):
                pass
        self.hung_up.set()

    def reset(self) -> None:
        """End the connection with a TCP reset instead of a clean close."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Reply: TypeAlias = Callable[[Exchange], Awaitable[None]]


def body(payload: Any, status: int = 200, content_type: str = "application/json", *more: tuple[str, str]) -> Reply:
    """A whole body: bytes as they are, everything else as JSON."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()

    async def reply(exchange: Exchange) -> None:
        await exchange.head(status, content_type, ("content-length", str(len(data))), *more)
        await exchange.write(data)

    return reply


def error(status: int, message: str, **fields: Any) -> Reply:
    """An OpenAI-shaped error."""
    return body({"error": {"message": message, "type": "server_error", "param": None, "code": None, **fields}}, status)


def sse(*pieces: str | bytes, end: str = "close", pause: float = 0.001) -> Reply:
    """A stream written piece by piece, ``pause`` seconds apart so that each is a read of its own.

    ``end``: ``close`` (clean), ``reset``, ``hang`` (silent until the peer goes) or ``repeat`` (the last piece again and
    again until the peer goes).
    """

    async def reply(exchange: Exchange) -> None:
        await exchange.head(200, "text/event-stream")
        for piece in pieces:
            await exchange.write(piece if isinstance(piece, bytes) else piece.encode())
            await asyncio.sleep(pause)
        if end == "reset":
            exchange.reset()
        elif end == "hang":
            await exchange.wait_for_hang_up()
        elif end == "repeat":
            last = pieces[-1]
            gone = asyncio.create_task(exchange.wait_for_hang_up())
            while not gone.done():
                with contextlib.suppress(ConnectionError):
                    await exchange.write(last if isinstance(last, bytes) else last.encode())
                await asyncio.sleep(0.005)
            await gone

    return reply


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **fields: Any) -> str:
    """One Chat Completions chunk as an SSE event."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    head = {"id": "chatcmpl-s", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return f"data: {json.dumps({**head, 'choices': [choice], **fields}, ensure_ascii=False)}\n\n"


DONE = "data: [DONE]\n\n"


def text(
    *pieces: str,
    finish: str = "stop",
    usage: tuple[int, int] | None = USAGE,
    reasoning: Iterable[str] = (),
    pause: float = 0.0,
) -> Reply:
    """What a text model says: streamed in these ``pieces`` or whole, as the request asks."""
    counts = (
        None
        if usage is None
        else {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    )
    thoughts = list(reasoning)

    async def reply(exchange: Exchange) -> None:
        request = exchange.request.json
        if request.get("stream"):
            events = [chunk({"role": "assistant", "content": None})]
            events += [chunk({"reasoning_content": thought}) for thought in thoughts]
            events += [chunk({"content": piece}) for piece in pieces]
            events.append(chunk({}, finish))
            if counts and (request.get("stream_options") or {}).get("include_usage"):
                events.append(chunk(choices=[], usage=counts))
            await sse(*events, DONE, pause=pause)(exchange)
            return
        message: dict[str, Any] = {"role": "assistant", "content": "".join(pieces)}
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        whole: dict[str, Any] = {"id": "chatcmpl-s", "object": "chat.completion", "created": 1, "model": "scripted"}
        whole["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
        if counts:
            whole["usage"] = counts
        await body(whole)(exchange)

    return reply


async def silence(exchange: Exchange) -> None:
    """Accept the request and never answer."""
    await exchange.wait_for_hang_up()


@dataclass(slots=True)
class Backend:
    """The server. ``script`` sets what chat requests get, ``routes`` what other paths get (path without query)."""

    routes: dict[str, Reply] = field(default_factory=dict)
    requests: list[Recorded] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    probe_tokens: tuple[int, int] = (10, 10)
    """Prompt tokens that a ``max_tokens: 1`` probe is told: without and with a tool. Equal: tools are dropped."""
    port: int = 0
    _replies: list[Reply] = field(default_factory=lambda: [text("Hello.")])
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[Recorded]:
        """The chat requests, probes left out."""
        return [request for request in self.requests if _is_chat(request) and not _is_probe(request)]

    @property
    def probes(self) -> list[Recorded]:
        """The chat requests that only asked what the backend can do."""
        return [request for request in self.requests if _is_probe(request)]

    def script(self, *replies: Reply) -> None:
        """Answer the next chat requests with ``replies`` in turn; the last one repeats."""
        self._replies[:] = replies

    def __enter__(self) -> Backend:
        self.routes.setdefault("/v1/models", body({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="scripted backend", daemon=True)
        self._thread.start()
        ready.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        assert self._thread
        self._thread.join(5)

    def _run(self, ready: threading.Event) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", self.port))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        loop.run_forever()
        server.close()
        for task in self._connections:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*self._connections, return_exceptions=True))
        loop.run_until_complete(server.wait_closed())
        loop.run_until_complete(asyncio.sleep(0.01))  # transports that were aborted have yet to hear of it
        loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                exchange = Exchange(request, reader, writer, self.hung_up)
                await self._reply_to(request)(exchange)
                if exchange.ends_connection or writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    def _reply_to(self, request: Recorded) -> Reply:
        route = self.routes.get(request.path.partition("?")[0])
        if route:
            return route
        if _is_probe(request):
            tokens = self.probe_tokens[bool(request.json.get("tools"))]
            return text("x", usage=(tokens, 1), finish="length")
        if _is_chat(request):
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return error(404, f"no such path: {request.path}")


async def _read_request(reader: asyncio.StreamReader) -> Recorded | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines if line)
    headers = tuple((name.strip().lower(), value.strip()) for name, value in pairs)
    named = dict(headers)
    if "chunked" in named.get("transfer-encoding", ""):
        data = b""
        while size := int(await reader.readline(), 16):
            data += (await reader.readexactly(size + 2))[:-2]
        await reader.readline()
    else:
        data = await reader.readexactly(int(named.get("content-length", "0")))
    parts = urlsplit(target)
    return Recorded(method, parts.path + (f"?{parts.query}" if parts.query else ""), headers, data)


def _is_chat(request: Recorded) -> bool:
    return request.method == "POST" and request.path.endswith("/chat/completions")


def _is_probe(request: Recorded) -> bool:
    return _is_chat(request) and b'"max_tokens"' in request.body and request.json.get("max_tokens") == 1

"""A model server that misbehaves as it is told to: bytes on a socket, in every way that was ever seen and some more.

Each request names its case as the model, ``FAULT-SEED``; the same case is the same bytes, cut at the same places.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import re
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Outcome = Literal["answer", "error"]

TEXT = "Let me look: 3 < 4, wörld 日本 🌧.\n"
CALL = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'

GIGABYTE = 1024 * 1024 * 1024


@dataclass(slots=True)
class Peer:
    """The other end of one request. ``random`` decides what the case leaves open."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    stream: bool
    tools: bool
    random: random.Random
    ended: bool = False
    """The connection is not used for another request."""

    async def send(self, *pieces: bytes) -> None:
        """Send ``pieces``, each one at some places in two, with or without a moment between."""
        for piece in pieces:
            cut = self.random.randrange(len(piece) + 1)
            for part in (piece[:cut], piece[cut:]):
                if part:
                    self.writer.write(part)
                    await self.writer.drain()
                if self.random.random() < 0.2:
                    await asyncio.sleep(0)

    def close(self) -> None:
        self.ended = True
        self.writer.close()

    def reset(self) -> None:
        self.ended = True
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    @property
    def words(self) -> list[str]:
        """What the model writes, token by token. Where tools are offered it ends with a call."""
        text = TEXT + CALL if self.tools else TEXT
        return re.findall(r"\s*\S{1,4}|\s+", text)


Script: TypeAlias = Callable[[Peer], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """``outcomes`` are those that are right: ``answer`` is the whole one, ``error`` one that is told."""

    script: Script
    outcomes: frozenset[Outcome]


FAULTS: dict[str, Fault] = {}


def fault(*outcomes: Outcome) -> Callable[[Script], Script]:
    """Enter a script into the table under its name."""

    def enter(script: Script) -> Script:
        FAULTS[script.__name__] = Fault(script, frozenset(outcomes))
        return script

    return enter


def head(status: int | str = 200, content_type: str = "application/json", *more: tuple[str, Any]) -> bytes:
    lines = [f"HTTP/1.1 {status} Chaos", f"content-type: {content_type}", *(f"{name}: {value}" for name, value in more)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def events(peer: Peer) -> list[bytes]:
    """A whole stream, an event each."""
    deltas = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": word}) for word in peer.words)]
    usage = event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}})
    return [*deltas, chunk({}, "stop"), usage, b"data: [DONE]\n\n"]


def whole(peer: Peer) -> bytes:
    message = {"role": "assistant", "content": "".join(peer.words)}
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({**reply, "choices": [choice], "usage": usage}, ensure_ascii=False).encode()


def body(peer: Peer) -> bytes:
    return b"".join(events(peer)) if peer.stream else whole(peer)


def kind(peer: Peer) -> str:
    return "text/event-stream" if peer.stream else "application/json"


def chunked(pieces: Iterable[bytes]) -> list[bytes]:
    return [*(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece), b"0\r\n\r\n"]


async def say(peer: Peer, data: bytes, *more: tuple[str, Any], status: int | str = 200) -> None:
    """``data`` under a right head, and leave the connection open."""
    await peer.send(head(status, kind(peer), ("content-length", len(data)), *more), data)


# What is unusual and still right


@fault("answer")
async def plain(peer: Peer) -> None:
    await say(peer, body(peer))


@fault("answer")
async def slow(peer: Peer) -> None:
    await asyncio.sleep(peer.random.random() / 5)
    await peer.send(head(200, kind(peer), ("transfer-encoding", "chunked")))
    await asyncio.sleep(peer.random.random() / 5)
    pieces = events(peer) if peer.stream else [whole(peer)]
    at = peer.random.randrange(len(pieces))
    for number, piece in enumerate(chunked(pieces)):
        await peer.send(piece)
        await asyncio.sleep(0.1 if number == at else 0)


@fault("answer")
async def until_the_close(peer: Peer) -> None:
    version = peer.random.choice((b"HTTP/1.0", b"HTTP/1.1"))
    await peer.send(head(200, kind(peer), ("connection", "close")).replace(b"HTTP/1.1", version), body(peer))
    peer.close()


@fault("answer")
async def in_odd_chunks(peer: Peer) -> None:
    data = body(peer)
    cuts = sorted(peer.random.sample(range(len(data)), 20))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    *sent, last = chunked(pieces)
    if peer.random.random() < 0.5:
        sent = [piece.replace(b"\r\n", b";name=value\r\n", 1) for piece in sent]
        last = b"0\r\nx-trailer: 1\r\n\r\n"
    await peer.send(head(200, kind(peer), ("transfer-encoding", "chunked")), *sent, last)


@fault("answer")
async def compressed(peer: Peer) -> None:
    coding, pack = peer.random.choice((("gzip", gzip.compress), ("deflate", zlib.compress)))
    await say(peer, pack(body(peer)), ("content-encoding", coding))


@fault("answer")
async def informed_first(peer: Peer) -> None:
    for status in peer.random.choices((100, 102, 103), k=3):
        await peer.send(f"HTTP/1.1 {status} Wait\r\nlink: </x>\r\n\r\n".encode())
    await say(peer, body(peer))


@fault("answer", "error")
async def garbage_behind_the_reply(peer: Peer) -> None:
    await say(peer, body(peer))
    await peer.send(peer.random.randbytes(200))
    peer.ended = True


@fault("answer")
async def odd_events(peer: Peer) -> None:
    if not peer.stream:
        await say(peer, b" \r\n\t" + whole(peer) + b"\n\n")
        return
    end = peer.random.choice((b"\n", b"\r\n", b"\r"))
    first = peer.random.choice((b"", b"\xef\xbb\xbf", b": hello\n\n", b"retry: 10\n\n", b"id: 1\n"))
    sent = b"".join([b": ping\n\n" + each.replace(b"data: ", b"data:", 1) for each in events(peer)])
    await say(peer, first + sent.replace(b"\n", end))


@fault("answer")
async def silent_after_the_finish_reason(peer: Peer) -> None:
    if not peer.stream:
        await say(peer, whole(peer))
        return
    await peer.send(head(200, kind(peer), ("transfer-encoding", "chunked")), *chunked(events(peer)[:-2])[:-1])
    await hang(peer)


@fault("answer")
async def no_done(peer: Peer) -> None:
    data = b"".join(events(peer)[:-2]) if peer.stream else whole(peer)
    await say(peer, data)


@fault("answer")
async def of_the_other_kind(peer: Peer) -> None:
    peer.stream = not peer.stream
    await say(peer, body(peer))


# What ends too early


@fault("error")
async def hung_up(peer: Peer) -> None:
    peer.close()


@fault("error")
async def reset(peer: Peer) -> None:
    peer.reset()


@fault("error")
async def half_a_head(peer: Peer) -> None:
    data = head(200, kind(peer), ("content-length", 100))
    await peer.send(data[: peer.random.randrange(1, len(data) - 2)])
    peer.random.choice((peer.close, peer.reset))()


@fault("error", "answer")
async def cut_anywhere(peer: Peer) -> None:
    framed = peer.random.random() < 0.5
    data = b"".join(chunked([body(peer)])) if framed else body(peer)
    framing = [("transfer-encoding", "chunked")] if framed else [("connection", "close")]
    await peer.send(head(200, kind(peer), *framing), data[: peer.random.randrange(len(data))])
    peer.random.choice((peer.close, peer.reset))()


@fault("error")
async def half_an_event(peer: Peer) -> None:
    told = events(peer)[: peer.random.randrange(1, len(peer.words))]
    data = b"".join(told)[: -peer.random.randrange(3, 40)] if peer.stream else whole(peer)[:-20]
    await peer.send(head(200, kind(peer), ("connection", "close")), data)
    peer.random.choice((peer.close, peer.reset))()


@fault("error")
async def a_longer_content_length(peer: Peer) -> None:
    data = b"".join(events(peer)[:5]) if peer.stream else whole(peer)
    await peer.send(head(200, kind(peer), ("content-length", len(data) + 10)), data)
    peer.close()


@fault("error")
async def a_shorter_content_length(peer: Peer) -> None:
    data = body(peer)
    await peer.send(head(200, kind(peer), ("content-length", len(data) // 3)), data)
    peer.close()


@fault("error")
async def nothing_at_all(peer: Peer) -> None:
    status = peer.random.choice((200, 200, 204))
    await peer.send(head(status, kind(peer), *([("content-length", 0)] if status == 200 else [])))
    if status == 204:
        peer.close()


@fault("error")
async def compressed_and_cut(peer: Peer) -> None:
    data = gzip.compress(body(peer))
    await say(peer, data[: len(data) // 2], ("content-encoding", "gzip"))


# What never ends


async def hang(peer: Peer) -> None:
    """Until the proxy has gone."""
    peer.ended = True
    await peer.reader.read()


@fault("error")
async def silent(peer: Peer) -> None:
    await hang(peer)


@fault("error")
async def silent_in_the_middle(peer: Peer) -> None:
    data = b"".join(events(peer)[:-4]) if peer.stream else whole(peer)[:50]
    await peer.send(head(200, kind(peer), ("content-length", 100_000)), data)
    await hang(peer)


@fault("error")
async def a_line_of_a_gigabyte(peer: Peer) -> None:
    start = b'data: {"choices": [{"index": 0, "delta": {"content": "' if peer.stream else b'{"choices": ["'
    await peer.send(head(200, kind(peer), ("content-length", GIGABYTE)), start)
    await flood(peer, b"a" * 256 * 1024)


@fault("error")
async def a_bomb(peer: Peer) -> None:
    await peer.send(head(200, kind(peer), ("content-encoding", "gzip"), ("transfer-encoding", "chunked")))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b" " * 16 * 1024 * 1024) + packer.flush(zlib.Z_SYNC_FLUSH)
    await flood(peer, b"%x\r\n%b\r\n" % (len(packed), packed))


@fault("error")
async def a_head_without_end(peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 200 Chaos\r\n")
    await flood(peer, peer.random.choice((b"x: " + b"a" * 1000 + b"\r\n", b"a" * 16 * 1024)))


async def flood(peer: Peer, data: bytes) -> None:
    """``data`` again and again until the proxy has gone, or a gigabyte was sent."""
    peer.ended = True
    for _ in range(GIGABYTE // len(data)):
        if peer.writer.transport.is_closing():
            return
        peer.writer.write(data)
        await peer.writer.drain()
        await asyncio.sleep(0)


# What is no reply


@fault("error")
async def garbage_for_a_head(peer: Peer) -> None:
    await peer.send(peer.random.randbytes(100))
    peer.close()


@fault("error")
async def garbage_for_a_body(peer: Peer) -> None:
    await say(peer, peer.random.randbytes(500))


@fault("error")
async def a_page(peer: Peer) -> None:
    data = b"<!doctype html><html><head><title>It works!</title></head><body>nginx</body></html>"
    status = peer.random.choice((200, 200, 404, 500, 502, 503))
    await peer.send(head(status, "text/html", ("content-length", len(data))), data)


@fault("error")
async def a_redirect(peer: Peer) -> None:
    status = peer.random.choice((301, 302, 303, 307, 308))
    where = peer.random.choice(("https://example.com/", "/login", "http://[", "javascript:alert(1)"))
    await say(peer, b"", ("location", where), status=status)


@fault("error")
async def an_odd_status(peer: Peer) -> None:
    await say(peer, b"{}", status=peer.random.choice(("000", "99", "199", "600", "999", "abc", "-1", "2000")))
    peer.close()


@fault("error")
async def a_broken_chunk(peer: Peer) -> None:
    size = peer.random.choice((b"zz", b"-5", b"", b"ffffffffffffffffff", b"5 5", b"0x5"))
    sent = chunked(events(peer)[:3] if peer.stream else [whole(peer)[:20]])[:-1]
    await peer.send(head(200, kind(peer), ("transfer-encoding", "chunked")), *sent, size + b"\r\nhello\r\n0\r\n\r\n")
    peer.close()


@fault("error")
async def a_content_length_that_is_none(peer: Peer) -> None:
    length = peer.random.choice(("-1", "five", "1e3", "99999999999999999999999", "", "5, 6"))
    await peer.send(head(200, kind(peer), ("content-length", length)), body(peer)[:30])
    peer.close()


@fault("error")
async def an_unknown_coding(peer: Peer) -> None:
    await say(peer, b"\x1b\x2f" + body(peer), ("content-encoding", peer.random.choice(("br", "zstd", "gzip", "rot13"))))


@fault("error")
async def an_error(peer: Peer) -> None:
    status = peer.random.choice((400, 401, 403, 404, 408, 413, 422, 429, 500, 501, 502, 503, 504))
    told = {"message": "no, thank you", "type": "server_error", "code": peer.random.choice((None, status, "x"))}
    data = peer.random.choice((b"", b"no", b"{}", b"[1]", json.dumps({"error": told}).encode(), b'{"error": "no"}'))
    await peer.send(head(status, "application/json", ("content-length", len(data))), data)


@fault("error")
async def an_error_instead(peer: Peer) -> None:
    told = {"error": {"message": "out of memory", "type": "server_error", "code": 500}}
    if not peer.stream:
        await say(peer, json.dumps(told).encode())
        return
    before = events(peer)[: peer.random.randrange(len(peer.words))]
    await say(peer, b"".join([*before, event(told), *peer.random.choice(([], [b"data: [DONE]\n\n"]))]))


@fault("error", "answer")
async def of_another_shape(peer: Peer) -> None:
    shapes: list[Any] = [
        *({}, [], None, 1, "text", {"choices": None}, {"choices": []}, {"choices": [None]}, {"choices": {"0": {}}}),
        *({"choices": [{"index": 0, "message": None, "delta": None}]}, {"choices": [{"message": {"content": 5}}]}),
        {"choices": [{"index": "a", "delta": {"content": [1]}, "message": {"tool_calls": "x"}, "finish_reason": 5}]},
        {"choices": [{"index": 10**30, "delta": {"tool_calls": [{"index": -1}]}, "message": {"content": {}}}]},
        {"usage": {"prompt_tokens": "many", "completion_tokens": -1}, "choices": [], "error": None},
    ]
    shape = peer.random.choice(shapes)
    await say(peer, event(shape) * 3 + b"data: [DONE]\n\n" if peer.stream else json.dumps(shape).encode())


@fault("error", "answer")
async def broken_text(peer: Peer) -> None:
    data = bytearray(body(peer))
    for at in [at for at, byte in enumerate(data) if byte >= 128][::2]:
        data[at] = peer.random.randrange(128, 256)
    await say(peer, bytes(data))


@dataclass(slots=True)
class Upstream:
    """The server. ``active`` are the requests that are being answered."""

    port: int = 0
    active: int = 0
    served: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            while await self._serve(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether there may be another."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
        raw = await reader.readexactly(length)
        self.active += 1
        try:
            if "/chat/completions" not in lines[0]:
                await _plain_error(writer)
                return True
            asked = json.loads(raw)
            if asked.get("max_tokens") == 1:
                await _probe(writer, bool(asked.get("tools")))
                return True
            self.served += 1
            name, _, seed = asked["model"].partition("-")
            prompt = json.dumps(asked["messages"])
            peer = Peer(
                reader,
                writer,
                asked.get("stream") is True,
                "tools" in asked or "<tools>" in prompt,
                random.Random(seed),
            )
            await FAULTS[name].script(peer)
            return not peer.ended
        finally:
            self.active -= 1


async def _plain_error(writer: asyncio.StreamWriter) -> None:
    writer.write(head(404, "application/json", ("content-length", 2)) + b"{}")
    await writer.drain()


async def _probe(writer: asyncio.StreamWriter, tools: bool) -> None:
    """Tools are counted: the server seems to call them by itself."""
    usage = {"prompt_tokens": 30 if tools else 10, "completion_tokens": 1}
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "length"}
    data = json.dumps({"choices": [choice], "usage": usage}).encode()
    writer.write(head(200, "application/json", ("content-length", len(data))) + data)
    await writer.drain()

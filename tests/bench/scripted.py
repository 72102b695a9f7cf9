"""A backend that says what it is told to, in its own process: ``python -m tests.bench.scripted``; it prints its port.

The request's ``model`` is the script:

    call          a reply that holds one call, whole
    text-RATE     a stream of ``max_tokens`` tokens, RATE of them a second; each tells when it was sent
    write-SIZE    a stream whose one call has an argument of so many characters, as fast as it is read
"""

from __future__ import annotations

import asyncio
import json

import uvloop

from tests.bench.clocks import now, stamp
from tests.bench.http1 import JSON_HEAD, LAST_CHUNK, STREAM_HEAD, Message, chunk

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}</tool_call>'
LINE = 'print("a line of code")  # and a comment that makes it longer\n'
PIECE = 4
"""Characters of a token of an argument."""

_USAGE = {"prompt_tokens": 600, "completion_tokens": 20, "total_tokens": 620}
_SAME = {"created": 1764500000, "id": "chatcmpl-bench", "model": "bench", "object": "chat.completion.chunk"}
_BEFORE = b'data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":'
_AFTER = b"}}]," + json.dumps(_SAME, separators=(",", ":"))[1:].encode() + b"\n\n"
_END = b'data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],' + _AFTER[4:]
_END += b"data: " + json.dumps({"choices": [], **_SAME, "usage": _USAGE}).encode() + b"\n\ndata: [DONE]\n\n"


def event(text: str) -> bytes:
    """A token of text as a server tells it."""
    return _BEFORE + json.dumps(text).encode() + _AFTER


def whole(text: str) -> bytes:
    """A whole reply."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    reply = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1764500000, "model": "bench"}
    body = json.dumps({**reply, "choices": [choice], "usage": _USAGE}).encode()
    return JSON_HEAD % len(body) + body


def big_call(size: int) -> str:
    """A call with an argument of about ``size`` characters."""
    arguments = {"path": "a.py", "content": LINE * (size // len(LINE))}
    return f"<tool_call>{json.dumps({'name': 'write_file', 'arguments': arguments})}</tool_call>"


class Server(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._message = Message()
        self._body: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._rest: list[bytes] = []

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._body.append(self._message.feed(data))
        if self._message.ended:
            head, body = self._message.head or b"", b"".join(self._body)
            self._message, self._body = Message(), []
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if not head.startswith(b"POST ") or not body or b"/chat/completions" not in head.partition(b"\r\n")[0]:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
            return
        asked = json.loads(body)
        script, _, number = str(asked.get("model")).partition("-")
        if not asked.get("stream"):
            self._transport.write(_WHOLE)
        elif script == "write":
            text = big_call(int(number))
            self._rest = [chunk(event(text[at : at + PIECE])) for at in range(0, len(text), PIECE)]
            self._rest.reverse()
            self._transport.write(STREAM_HEAD)
            self._go_on()
        else:
            self._transport.write(STREAM_HEAD)
            self._every = 1 / float(number)
            self._left = int(asked["max_tokens"])
            self._next = self._loop.time()
            self._token()

    def _token(self) -> None:
        self._transport.write(chunk(_BEFORE + b'" %b"' % stamp(now()).encode() + _AFTER))
        self._left -= 1
        if self._left:
            self._next += self._every
            self._timer = self._loop.call_at(self._next, self._token)
        else:
            self._transport.write(chunk(_END) + LAST_CHUNK)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._go_on()

    def _go_on(self) -> None:
        while self._rest and not self._paused:
            pieces = [self._rest.pop() for _ in range(min(len(self._rest), 256))]
            if not self._rest:
                pieces.append(chunk(_END) + LAST_CHUNK)
            self._transport.write(b"".join(pieces))


_WHOLE = whole(CALL)


async def main() -> None:
    """Serve until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())

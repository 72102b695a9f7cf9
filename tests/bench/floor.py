"""The least that a translator in Python does, by hand: ``python -m tests.bench.floor BACKEND_PORT``; prints its port.

It reads the request's JSON, puts the tools into a system message, sends that on over a kept connection, reads a call
out of the reply's text, and passes on each token of a stream, encoded anew. It checks nothing, logs nothing and
survives nothing: what the product costs more than this is what the product does more.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import orjson
import uvloop

from tests.bench.http1 import JSON_HEAD, LAST_CHUNK, STREAM_HEAD, Message, chunk

OPENER, CLOSER = "<tool_call>", "</tool_call>"
_BEFORE = (
    b'data: {"id":"chatcmpl-floor","object":"chat.completion.chunk","created":0,"model":"floor",'
    b'"choices":[{"index":0,"delta":'
)
_AFTER = b',"finish_reason":null}]}\n\n'
_END = b',"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
_HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b"
)

Asked = dict[str, Any]


def translated(asked: Asked) -> bytes:
    """The request for the backend."""
    tools = asked.pop("tools", None)
    if tools:
        told = b"\n".join(orjson.dumps(tool["function"]) for tool in tools).decode()
        system = {"role": "system", "content": f"# Tools\n<tools>\n{told}\n</tools>\nCall with {OPENER}...{CLOSER}."}
        asked["messages"] = [system, *asked["messages"]]
    return orjson.dumps(asked)


def message(text: str) -> dict[str, object]:
    """An answer, its call told as one."""
    before, opener, rest = text.partition(OPENER)
    if not opener:
        return {"role": "assistant", "content": text}
    call = orjson.loads(rest.partition(CLOSER)[0])
    function = {"name": call["name"], "arguments": orjson.dumps(call["arguments"]).decode()}
    calls = [{"id": "call_1", "index": 0, "type": "function", "function": function}]
    return {"role": "assistant", "content": before or None, "tool_calls": calls}


class Backend(asyncio.Protocol):
    """A kept connection to the backend."""

    def __init__(self) -> None:
        self.message = Message()
        self.told: Callable[[bytes], None] = print

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.told(self.message.feed(data))


class Client(asyncio.Protocol):
    """A connection of a client."""

    idle: list[Backend] = []  # noqa: RUF012 (one for all)
    port = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._message = Message()
        self._pieces: list[bytes] = []
        self._backend: Backend | None = None
        self._rest = b""
        self._text: list[str] = []  # from what may be a call on

    def connection_lost(self, exc: Exception | None) -> None:
        if self._backend is not None:
            self._backend.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._pieces.append(self._message.feed(data))
        if not self._message.ended:
            return
        asked: Asked = orjson.loads(b"".join(self._pieces))
        self._message, self._pieces = Message(), []
        self._rest, self._text = b"", []
        told = self._streamed if asked.get("stream") else self._whole
        if told == self._streamed:
            self._transport.write(STREAM_HEAD)
        body = translated(asked)
        if self.idle:
            self._send(self.idle.pop(), body, told)
        else:
            self._connecting = asyncio.ensure_future(self._connect(body, told))

    async def _connect(self, body: bytes, told: Callable[[bytes], None]) -> None:
        _, backend = await asyncio.get_running_loop().create_connection(Backend, "127.0.0.1", self.port)
        self._send(backend, body, told)

    def _send(self, backend: Backend, body: bytes, told: Callable[[bytes], None]) -> None:
        self._backend, backend.told = backend, told
        backend.transport.write(_HEAD % (len(body), body))

    def _release(self) -> None:
        assert self._backend is not None
        self._backend.message = Message()
        self.idle.append(self._backend)
        self._backend = None

    def _whole(self, data: bytes) -> None:
        self._pieces.append(data)
        assert self._backend is not None
        if self._backend.message.ended:
            reply = orjson.loads(b"".join(self._pieces))
            self._pieces = []
            self._release()
            answer = message(reply["choices"][0]["message"]["content"])
            reason = "tool_calls" if "tool_calls" in answer else "stop"
            body = orjson.dumps({**reply, "choices": [{"index": 0, "message": answer, "finish_reason": reason}]})
            self._transport.write(JSON_HEAD % len(body) + body)

    def _streamed(self, data: bytes) -> None:
        *events, self._rest = (self._rest + data).split(b"\n\n")
        out = b"".join([self._event(event) for event in events])
        if out:
            self._transport.write(chunk(out))
        assert self._backend is not None
        if self._backend.message.ended:
            self._release()
            self._transport.write(LAST_CHUNK)

    def _event(self, event: bytes) -> bytes:
        if event == b"data: [DONE]":
            delta = orjson.dumps(message("".join(self._text))) if self._text else b"{}"
            return _BEFORE + delta + _END
        choices = orjson.loads(event[6:])["choices"]
        text = choices[0]["delta"].get("content") if choices else None
        if not text:
            return b""
        if self._text or "<" in text:
            self._text.append(text)
            return b""
        return _BEFORE + b'{"content":' + orjson.dumps(text) + b"}" + _AFTER


async def main(port: int) -> None:
    """Serve until killed."""
    Client.port = port
    server = await asyncio.get_running_loop().create_server(Client, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))

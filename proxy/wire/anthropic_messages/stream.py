"""Events as the events of a Messages stream.

What clients were seen to depend on: the name of each event both in its ``event:`` line and as its ``type``; one block
after another, counted from 0, each closed before the next; a call's arguments in deltas and not in the block's start;
``message_delta`` and ``message_stop`` at the end, and neither after an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, TypeAlias

from proxy.core.errors import ToolgraftError, UpstreamError
from proxy.core.events import (
    Event,
    Finish,
    FinishReason,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import Json
from proxy.wire import jsonio
from proxy.wire.anthropic_messages.errors import stream_error
from proxy.wire.anthropic_messages.reply import SIGNATURE, input_text, stop_fields, usage_object
from proxy.wire.failures import BROKEN_OFF
from proxy.wire.sse import frame

KEEP_ALIVE = frame(b'{"type":"ping"}', b"ping")
"""Sent in long silences, as the vendor does: clients skip it."""

HELD = 8192
"""Characters of a call's arguments that are held back until the call is complete. Longer ones flow.

What is held can still be told as it is: a cut call not at all, and one that is no JSON object as what the model wrote.
"""

_Prose: TypeAlias = Literal["text", "thinking"]


class StreamEncoder:
    """One reply's stream: ``start()``, ``encode()`` any number of times, then ``done()``, or ``error()`` at any time.

    ``input_tokens`` is an estimate for the first event; the count comes with the last. ``stop_sequences`` are those of
    the request.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 (the wire's own word)
        model: str,
        input_tokens: int = 0,
        stop_sequences: Collection[str] = (),
    ) -> None:
        head = {"id": id, "type": "message", "role": "assistant", "model": model, "content": []}
        usage = {"input_tokens": input_tokens, "output_tokens": 0}
        self._message: Json = {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}
        self._asked = stop_sequences
        self._index = -1  # of the open block, or the last
        self._open: _Prose | Literal["tool_use"] | None = None
        self._before = b""  # of a delta in the open block
        self._blank: list[str] = []  # white space that may begin a block of prose
        self._blank_of: _Prose = "text"
        self._inside_call = False
        self._call: dict[str, Json] = {}  # the start of its block
        self._arguments: list[str] = []
        self._size = 0
        self._called = False
        self._refusal: list[str] = []
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._failed = False

    def start(self) -> bytes:
        """The first event: the message, still empty."""
        return _event("message_start", {"message": self._message})

    def encode(self, events: Iterable[Event]) -> bytes:
        """The events on the wire; empty if none of them shows. ``Finish("error")`` is an error event."""
        return b"".join(map(self._encode, events))

    def done(self) -> bytes:
        """The end: why it stopped, and the usage. A stream without ``Finish`` ends with an error event."""
        if self._failed:
            return b""
        if self._finish is None:
            return self.error(UpstreamError(BROKEN_OFF))
        stop = stop_fields(
            self._reason(self._finish),
            calls=self._called,
            refusal="".join(self._refusal),
            stop_sequence=self._finish.stop_sequence,
            asked=self._asked,
        )
        delta = _event("message_delta", {"delta": stop, "usage": usage_object(self._usage)})
        return self._close() + delta + _event("message_stop", {})

    def error(self, error: ToolgraftError) -> bytes:
        """An error within the stream. Nothing may follow it."""
        self._failed = True
        return stream_error(error)

    def _encode(self, event: Event) -> bytes:
        if self._failed:
            return b""
        match event:
            case TextDelta() if event.text:
                return self._say("text", event.text)
            case ReasoningDelta() if event.text:
                return self._say("thinking", event.text)
            case ToolArgumentsDelta() if event.text:
                return self._hold(event.text)
            case ToolCallStart():
                self._inside_call, self._arguments, self._size = True, [], 0
                self._call = {"id": event.id, "name": event.name, "input": {}}
            case ToolCallEnd():
                return self._end_call()
            case Refusal(text) if text:
                self._refusal.append(text)
                return self._say("text", text)
            case Usage():
                self._usage = event
            case Finish("error", message):
                return self.error(UpstreamError(message or BROKEN_OFF))
            case Finish():
                self._finish = event
        return b""

    def _say(self, kind: _Prose, text: str) -> bytes:
        """More text or reasoning. White space opens no block: a block of nothing else would be an empty one."""
        if self._open == kind:
            return self._before + jsonio.dumps(text) + b"}}\n\n"
        if self._blank_of != kind:
            self._blank, self._blank_of = [], kind
        self._blank.append(text)
        if text.isspace():
            return b""
        text, self._blank = "".join(self._blank), []
        start = self._start_block(kind, {kind: ""} | ({"signature": ""} if kind == "thinking" else {}))
        return start + self._before + jsonio.dumps(text) + b"}}\n\n"

    def _hold(self, text: str) -> bytes:
        """More of a call's arguments: held while they are short, and when they no longer are, all of them."""
        self._arguments.append(text)
        self._size += len(text)
        if self._open == "tool_use":
            return self._before + jsonio.dumps(text) + b"}}\n\n"
        return self._start_call("".join(self._arguments)) if self._size > HELD else b""

    def _start_call(self, arguments: str) -> bytes:
        return self._start_block("tool_use", self._call) + self._before + jsonio.dumps(arguments) + b"}}\n\n"

    def _end_call(self) -> bytes:
        self._called, self._inside_call = True, False
        arguments = "".join(self._arguments)
        told = input_text(arguments)
        data = b""
        if self._open != "tool_use":
            data = self._start_call(told)
        elif told != arguments:
            return self.error(UpstreamError("The model's call of a tool has arguments that are no JSON object."))
        return data + self._close()

    def _start_block(self, kind: _Prose | Literal["tool_use"], fields: dict[str, Json]) -> bytes:
        data = self._close()
        self._index += 1
        self._open = kind
        member = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}[kind]
        delta = "input_json_delta" if kind == "tool_use" else f"{kind}_delta"
        # Only the text differs from delta to delta: a token costs its own escaping and three joined pieces.
        self._before = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
            % (self._index, delta.encode(), member.encode())
        )
        return data + _event("content_block_start", {"index": self._index, "content_block": {"type": kind, **fields}})

    def _close(self) -> bytes:
        """The end of the open block, if there is one."""
        data = b""
        if self._open == "thinking":
            delta = {"type": "signature_delta", "signature": SIGNATURE}
            data = _event("content_block_delta", {"index": self._index, "delta": delta})
        if self._open is not None:
            data += _event("content_block_stop", {"index": self._index})
        self._open = None
        self._blank = []
        return data

    def _reason(self, finish: Finish) -> FinishReason:
        """A call that never ended was cut, whatever the backend says: no client may run it."""
        return "length" if self._inside_call and finish.reason != "content_filter" else finish.reason


def _event(name: str, fields: dict[str, Json]) -> bytes:
    return frame(jsonio.dumps({"type": name, **fields}), name.encode())

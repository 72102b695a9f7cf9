"""Events as the chunks of a Chat Completions stream.

What clients were seen to depend on: ``role`` in the first delta and only there; one ``id``, ``created`` and ``model``
throughout; ``index``, ``id``, ``type`` and ``name`` of a call once; one call in a chunk; one finish reason; a usage
chunk without choices only on request; ``[DONE]`` last, and neither it nor a finish reason after an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from proxy.core.errors import ToolgraftError, UpstreamError
from proxy.core.events import (
    Event,
    Extra,
    Finish,
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
from proxy.wire.arguments import custom_input
from proxy.wire.failures import BROKEN_OFF
from proxy.wire.openai_chat.reply import finish_reason, usage_object
from proxy.wire.openai_errors import error_body
from proxy.wire.sse import DONE, comment, frame

KEEP_ALIVE = comment("keep-alive")
"""Sent in long silences. Only a comment will do: several SDKs fail on any data event that is not a chunk."""


def stream_error(error: ToolgraftError) -> bytes:
    """The error as the last event of a stream."""
    return frame(error_body(error))


class StreamEncoder:
    """One reply's stream: ``start()``, ``encode()`` any number of times, then ``done()``, or ``error()`` at any time.

    ``legacy`` and ``custom`` are those of :func:`proxy.wire.openai_chat.encode_reply`. The text of a custom tool's
    call goes out when the call is complete, since it is inside JSON until then.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 (the wire's own word)
        created: int,
        model: str,
        include_usage: bool = False,
        legacy: bool = False,
        custom: Collection[str] = (),
    ) -> None:
        # Only the delta differs from chunk to chunk: a token costs its own escaping and three joined pieces.
        same = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._head = b"data: " + jsonio.dumps(same)[:-1] + b',"choices":['
        self._before = self._head + b'{"index":0,"delta":'
        self._before_text = self._before + b'{"content":'
        self._after = b',"logprobs":null,"finish_reason":null}]}\n\n'
        self._include_usage = include_usage
        self._legacy = legacy
        self._custom = custom
        self._spoke = False  # text went out
        self._called = False
        self._open = False  # a call has begun and not ended; the next two are about it
        self._bare = True  # no arguments of it came yet
        self._held: list[str] | None = None  # its arguments, if it is a custom one
        self._usage: Usage | None = None
        self._finished = False
        self._failed = False

    def start(self) -> bytes:
        """The first chunk: the role."""
        return self._chunk(b'{"role":"assistant","content":null}')

    def encode(self, events: Iterable[Event]) -> bytes:
        """The chunks of ``events``; empty if none of them shows on the wire. ``Finish("error")`` is an error event."""
        return b"".join(map(self._encode, events))

    def done(self) -> bytes:
        """The end: usage if it was asked for, and ``[DONE]``. A stream without ``Finish`` ends with an error event."""
        if self._failed:
            return b""
        if not self._finished:
            return self.error(UpstreamError(BROKEN_OFF))
        if not self._include_usage:
            return DONE
        return self._head + b'],"usage":' + jsonio.dumps(usage_object(self._usage)) + b"}\n\n" + DONE

    def error(self, error: ToolgraftError) -> bytes:
        """An error within the stream. Nothing may follow it."""
        self._failed = True
        return stream_error(error)

    def _encode(self, event: Event) -> bytes:
        match event:
            case TextDelta() if event.text:
                self._spoke = True
                return self._before_text + jsonio.dumps(event.text) + b"}" + self._after
            case ReasoningDelta() if event.text:
                return self._chunk(b'{"reasoning_content":' + jsonio.dumps(event.text) + b"}")
            case ToolArgumentsDelta() if event.text:
                return self._arguments(event.index, event.text)
            case ToolCallStart():
                return self._start_call(event)
            case ToolCallEnd(index):
                return self._end_call(index)
            case Refusal(text) if text:
                return self._chunk(b'{"refusal":' + jsonio.dumps(text) + b"}")
            case Extra(fields) if fields:
                return self._chunk(jsonio.dumps(dict(fields)))
            case Usage():
                self._usage = event
            case Finish():
                return self._finish(event)
        return b""

    def _chunk(self, delta: bytes) -> bytes:
        return self._before + delta + self._after

    def _start_call(self, call: ToolCallStart) -> bytes:
        self._called = self._open = self._bare = True
        self._held = None
        if self._legacy:
            return self._function_call(call.index, {"name": call.name, "arguments": ""})
        if call.name in self._custom:
            self._held = []
            fields = {"type": "custom", "custom": {"name": call.name, "input": ""}}
        else:
            fields = {"type": "function", "function": {"name": call.name, "arguments": ""}}
        return self._tool_call(call.index, {"id": call.id, **fields})

    def _arguments(self, index: int, text: str) -> bytes:
        self._bare = False
        if self._held is not None:
            self._held.append(text)
            return b""
        if self._legacy:
            return self._function_call(index, {"arguments": text})
        return self._tool_call(index, {"function": {"arguments": text}})

    def _end_call(self, index: int) -> bytes:
        self._open = False
        if self._held is not None:
            return self._tool_call(index, {"custom": {"input": custom_input("".join(self._held))}})
        return self._arguments(index, "{}") if self._bare else b""

    def _tool_call(self, index: int, fields: Mapping[str, Json]) -> bytes:
        return self._chunk(jsonio.dumps({"tool_calls": [{"index": index, **fields}]}))

    def _function_call(self, index: int, fields: Mapping[str, Json]) -> bytes:
        """The older shape has no index: only the first call can be told."""
        return b"" if index else self._chunk(jsonio.dumps({"function_call": fields}))

    def _finish(self, finish: Finish) -> bytes:
        if finish.reason == "error":
            return self.error(UpstreamError(finish.message or BROKEN_OFF))
        self._finished = True
        # A call that never ended was cut, whatever the backend says: no client may run it.
        reason = "length" if self._open and finish.reason != "content_filter" else finish.reason
        word = finish_reason(reason, calls=self._called, legacy=self._legacy)
        delta = b"{}" if self._spoke or self._called else b'{"content":""}'
        return self._before + delta + b',"logprobs":null,"finish_reason":"' + word.encode() + b'"}]}\n\n'

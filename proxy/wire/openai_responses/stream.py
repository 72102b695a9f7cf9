"""Events as the events of a Responses stream.

One item at a time: it is added, its content comes in pieces, it is done; the last event holds the whole response. Each
event has an ``event:`` line, ``type`` and ``sequence_number``. A call that was cut is never done, and no part of the
response: clients run what is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from proxy.core.errors import ToolgraftError, UpstreamError
from proxy.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import Json, ToolCall
from proxy.wire import jsonio
from proxy.wire.failures import BROKEN_OFF
from proxy.wire.openai_responses.builtins import BUILTINS
from proxy.wire.openai_responses.reply import (
    INCOMPLETE,
    Answering,
    Status,
    call_item,
    message_item,
    reasoning_item,
    refusal_part,
    response_object,
    text_part,
)
from proxy.wire.sse import comment, frame

KEEP_ALIVE = comment("keep-alive")
"""Sent in long silences."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of text within an item: the item's type, and the names of its events and of their members."""

    item: str
    prefix: str
    part: str  # the events about the part: response.<part>.added and .done
    text: str  # those about its text: response.<text>.delta and .done
    index: str
    member: str  # of the part and of the last event about its text
    blank: Mapping[str, Json]
    has_logprobs: bool = False


_TEXT = _Kind("message", "msg", "content_part", "output_text", "content_index", "text", text_part(""), True)
_REFUSAL = _Kind("message", "msg", "content_part", "refusal", "content_index", "refusal", refusal_part(""))
_THOUGHT = _Kind(
    "reasoning", "rs", "content_part", "reasoning_text", "content_index", "text", {"type": "reasoning_text", "text": ""}
)
_SUMMARY = _Kind(
    "reasoning",
    "rs",
    "reasoning_summary_part",
    "reasoning_summary_text",
    "summary_index",
    "text",
    {"type": "summary_text", "text": ""},
)

_SAYS = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}
"""By the type of a call's item: the member that says what is called for, and how the events about it are called."""


class StreamEncoder:
    """One reply's stream: ``start()``, ``encode()`` any number of times, then ``done()``, or ``error()`` at any time.

    The input of a custom tool and the arguments of one that the client knows by its type go out when the call is
    complete, since they are inside JSON until then.
    """

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._thinking = _SUMMARY if answering.summarised else _THOUGHT
        self._sequence = 0
        self._output: list[Json] = []  # the items that are done
        self._started = False
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._failed = False
        # the item that is open, if it is made of text
        self._kind: _Kind | None = None
        self._parts: list[Json] = []  # those that are done
        self._pieces: list[str] = []
        self._space = ""  # white space that becomes a message only if words follow
        # the call that is open
        self._call: ToolCallStart | None = None
        # a piece's event around its sequence number and its text
        self._head = self._middle = self._tail = b""

    def start(self) -> bytes:
        """The response as it begins, twice, as OpenAI does."""
        self._started = True
        response = response_object(self._answering, [], running=True)
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def encode(self, events: Iterable[Event]) -> bytes:
        """The events of ``events``; empty if none of them shows. ``Finish("error")`` is a failed response."""
        return b"".join(map(self._encode, events))

    def done(self) -> bytes:
        """The end: the whole response. A stream without ``Finish`` ends as a failed one."""
        if self._failed:
            return b""
        if self._finish is None:
            return self.error(UpstreamError(BROKEN_OFF))
        # A call that never ended was cut, whatever the backend says.
        reason = INCOMPLETE.get(self._finish.reason, INCOMPLETE["length"] if self._call else None)
        out = self._close(cut=reason is not None)
        if reason is None and not any(item["type"] != "reasoning" for item in self._output):
            out += self._open(_TEXT) + self._close()
        response = response_object(self._answering, self._output, self._usage, reason)
        return out + self._event(f"response.{response['status']}", response=response)

    def error(self, error: ToolgraftError) -> bytes:
        """The response as one that failed. Nothing may follow it."""
        self._failed = True
        out = b"" if self._started else self.start()
        response = response_object(self._answering, self._output, error=error)
        return out + self._event("response.failed", response=response)

    def _encode(self, event: Event) -> bytes:
        match event:
            case TextDelta() if event.text:
                return self._text(event.text)
            case ReasoningDelta() if event.text:
                return self._say(self._thinking, event.text)
            case ToolArgumentsDelta() if event.text:
                return self._arguments(event.text)
            case ToolCallStart():
                return self._start_call(event)
            case ToolCallEnd():
                return self._end_call()
            case Refusal(text) if text:
                return self._say(_REFUSAL, text)
            case Usage():
                self._usage = event
            case Finish("error", message):
                return self.error(UpstreamError(message or BROKEN_OFF))
            case Finish():
                self._finish = event
        return b""

    def _text(self, text: str) -> bytes:
        if self._kind is not _TEXT:
            text = self._space + text
            self._space = ""
            if text.isspace():
                self._space = text
                return b""
        return self._say(_TEXT, text)

    def _say(self, kind: _Kind, text: str) -> bytes:
        out = b"" if self._kind is kind else self._open(kind)
        self._pieces.append(text)
        return out + self._piece(text)

    def _piece(self, text: str) -> bytes:
        number = self._sequence
        self._sequence += 1
        return self._head + str(number).encode() + self._middle + jsonio.dumps(text) + self._tail

    def _prepare(self, name: str, where: Mapping[str, Json], logprobs: bool = False) -> None:
        """Only its number and its text differ from one piece's event to the next: a token costs no more than those."""
        self._head = f'event: {name}\ndata: {{"type":"{name}","sequence_number":'.encode()
        self._middle = b"," + jsonio.dumps(where)[1:-1] + b',"delta":'
        self._tail = b',"logprobs":[]}\n\n' if logprobs else b"}\n\n"

    def _event(self, name: str, /, **members: Json) -> bytes:
        number = self._sequence
        self._sequence += 1
        return frame(jsonio.dumps({"type": name, "sequence_number": number, **members}), name.encode())

    def _open(self, kind: _Kind) -> bytes:
        """Begin a part of ``kind``, in the open item if that has such parts, else in a new one."""
        if self._kind is not None and self._kind.item == kind.item:
            out = self._close_part()
        else:
            out = self._close()
            item = self._item(kind, "in_progress")
            out += self._event("response.output_item.added", output_index=len(self._output), item=item)
        self._kind = kind
        where = self._where(kind)
        self._prepare(f"response.{kind.text}.delta", where, kind.has_logprobs)
        return out + self._event(f"response.{kind.part}.added", **where, part=dict(kind.blank))

    def _close_part(self) -> bytes:
        kind = self._kind
        if kind is None:
            return b""
        text = "".join(self._pieces)
        where = self._where(kind)
        part = {**kind.blank, kind.member: text}
        self._pieces = []
        self._parts.append(part)
        logprobs: dict[str, Json] = {"logprobs": []} if kind.has_logprobs else {}
        return self._event(f"response.{kind.text}.done", **where, **{kind.member: text}, **logprobs) + self._event(
            f"response.{kind.part}.done", **where, part=part
        )

    def _close(self, *, cut: bool = False) -> bytes:
        """End the open item of text."""
        kind = self._kind
        if kind is None:
            return b""
        out = self._close_part()
        item = self._item(kind, "incomplete" if cut else "completed")
        self._kind = None
        self._parts = []
        return out + self._add(item)

    def _add(self, item: dict[str, Json]) -> bytes:
        """An item is done."""
        out = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._answering.keep(item)
        return out

    def _item(self, kind: _Kind, status: Status) -> dict[str, Json]:
        item_id = self._answering.item_id(kind.prefix, len(self._output))
        if kind.item == "message":
            return message_item(item_id, self._parts, status)
        return reasoning_item(item_id, "".join(part["text"] for part in self._parts), self._answering.summarised)

    def _where(self, kind: _Kind) -> dict[str, Json]:
        item_id = self._answering.item_id(kind.prefix, len(self._output))
        return {"item_id": item_id, "output_index": len(self._output), kind.index: len(self._parts)}

    def _start_call(self, call: ToolCallStart) -> bytes:
        out = self._close()
        self._call = call
        self._pieces = []
        kind = self._answering.tool(call.name).kind
        return out + self._begin(self._call_item(call)) if kind in ("function", "custom") else out

    def _begin(self, item: dict[str, Json]) -> bytes:
        """A function's or a custom tool's call is added, without what it says."""
        field, words = _SAYS[item["type"]]
        self._prepare(f"response.{words}.delta", {"item_id": item["id"], "output_index": len(self._output)})
        item = item | {field: "", "status": "in_progress"}
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _call_item(self, call: ToolCallStart) -> dict[str, Json]:
        return call_item(ToolCall(call.id, call.name, "".join(self._pieces)), self._answering, len(self._output))

    def _arguments(self, text: str) -> bytes:
        self._pieces.append(text)
        if self._call is None or self._answering.tool(self._call.name).kind != "function":
            return b""
        return self._piece(text)

    def _end_call(self) -> bytes:
        call, self._call = self._call, None
        if call is None:
            return b""
        item = self._call_item(call)
        bare, self._pieces = not self._pieces, []
        where = {"item_id": item["id"], "output_index": len(self._output)}
        out = b""
        if self._answering.tool(call.name).kind in BUILTINS and item["type"] in _SAYS:  # it does not fit its own item
            out, bare = self._begin(item), True
        match item["type"]:
            case "function_call":
                out += self._piece(item["arguments"]) if bare else b""
                out += self._event(
                    "response.function_call_arguments.done",
                    **where,
                    name=item["name"],
                    arguments=item["arguments"],
                )
            case "custom_tool_call":
                out = self._piece(item["input"])
                out += self._event("response.custom_tool_call_input.done", **where, input=item["input"])
            case _:
                out = self._event("response.output_item.added", output_index=len(self._output), item=item)
        return out + self._add(item)

"""The event filters behind the dispatchers: one for text that holds calls, one that passes all."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from proxy.core.callrules import CallRules
from proxy.core.events import (
    Event,
    Finish,
    FinishReason,
    Problem,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.parser import Parser


class XmlReader:
    """Reads calls out of text; those that the upstream parsed by itself join them, each once it is complete."""

    def __init__(self, parser: Parser, rules: CallRules) -> None:
        self._parser = parser
        self._rules = rules
        self._partial: list[Event] = []  # a call of the upstream, not complete
        self._waiting: list[Event] = []  # complete ones, while a call out of the text is open
        self._finished = False

    @property
    def done(self) -> bool:
        """Whether nothing that follows counts."""
        return self._rules.satisfied or self._parser.done

    def feed(self, event: Event) -> list[Event]:
        """Take an event of the upstream."""
        if self._finished:
            return [event] if isinstance(event, Usage) else []
        match event:
            case TextDelta():
                return self._send(self._parser.feed(event.text))
            case Finish():
                return self._end(event.reason, event)
            case ReasoningDelta() | ToolCallStart() | ToolArgumentsDelta() | ToolCallEnd() if self.done:
                return []
            case ReasoningDelta(text):
                return self._send(self._parser.feed_reasoning(text))
            case ToolCallStart() | ToolArgumentsDelta() | ToolCallEnd():
                return self._join(event)
            case _:
                return [event]

    def close(self, finish_reason: FinishReason | None = None) -> list[Event]:
        """End a reply whose ``Finish`` never came (``error``: its stream broke). Nothing, if it did come."""
        return [] if self._finished else self._end(finish_reason)

    def _join(self, event: Event) -> list[Event]:
        self._partial.append(event)
        if not isinstance(event, ToolCallEnd):
            return []
        self._waiting += self._partial
        self._partial = []
        return self._send(())

    def _send(self, events: Iterable[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            out += self._rules.take(event)
        if self._waiting and not self._rules.inside_call:
            waiting, self._waiting = self._waiting, []
            out += [passed for event in waiting for passed in self._rules.take(event)]
        return out

    def _end(self, given: FinishReason | None, told: Finish | None = None) -> list[Event]:
        self._finished = True
        out: list[Event] = []
        finish = told = told or Finish("stop")
        for event in self._parser.close("stop" if self.done else given):
            if type(event) is Finish:
                finish = replace(event, message=event.message or told.message) if event.reason == "error" else event
            else:
                out += self._send([event])
        if self._rules.satisfied:
            return [*out, Finish("tool_calls")]
        if self._partial:
            out.append(Problem("cut", "The reply ended inside a call."))
            finish = Finish("length") if finish.reason in ("stop", "tool_calls") else finish
        elif finish.reason in ("stop", "tool_calls"):
            finish = Finish("tool_calls" if self._rules.calls else "stop", stop_sequence=told.stop_sequence)
        return [*out, *self._rules.end(), finish]


class NativeReader:
    """Passes all events. Its only own word is the ``Finish`` that a backend left out."""

    def __init__(self) -> None:
        self._calls = 0
        self._inside_call = False
        self._finished = False

    @property
    def done(self) -> bool:
        """Never: the backend knows when it is done."""
        return False

    def feed(self, event: Event) -> list[Event]:
        """Take an event of the upstream."""
        match event:
            case ToolCallStart():
                self._calls += 1
                self._inside_call = True
            case ToolCallEnd():
                self._inside_call = False
            case Finish():
                self._finished = True
        return [event]

    def close(self, finish_reason: FinishReason | None = None) -> list[Event]:
        """End a reply whose ``Finish`` never came: inside a call it was cut."""
        if self._finished:
            return []
        self._finished = True
        if finish_reason in (None, "stop", "tool_calls"):
            finish_reason = "length" if self._inside_call else "tool_calls" if self._calls else "stop"
        return [Finish(finish_reason)]

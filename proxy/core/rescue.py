"""Calls that a server with tools of its own has left in the text of its reply: found, or the text is left as it is.

Only whole, valid calls of declared tools count, and none of them is a call before the reply is over: a reply in which
the server itself calls tools is not looked into. What stands before the first call is told as it was written, tags of
reasoning included, so that it does not matter how much of it has gone out by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from msgspec.structs import replace

from proxy.core.bodies.base import RawCall
from proxy.core.events import Event, Finish, FinishReason, Problem, Refusal, TextDelta, ToolCallEnd, ToolCallStart
from proxy.core.machine import Step
from proxy.core.model import Tool, new_call_id
from proxy.core.parser import Parser
from proxy.core.readers import NativeReader
from proxy.core.regions import Region


class _ValidCalls(Parser):
    """Takes invalid calls for text, and knows where the first call begins."""

    def __init__(
        self, tools: Iterable[Tool], *, dialect: str, model: str | None, parallel: bool, new_id: Callable[[], str]
    ) -> None:
        super().__init__(tools, dialect=dialect, model=model, parallel=parallel, whole=True, new_id=new_id)

    def _begin(self) -> None:
        super()._begin()
        self.first: int | None = None
        """How many characters stand before the first call."""
        self.certain = 0
        """How many characters belong to no call, whatever follows."""
        self._wrapper = 0  # characters of the tags around calls that have just been read
        self._wraps = False

    def _step(self, at: int, final: bool) -> Step:
        at, go_on = super()._step(at, final)
        self._place(len(self._pending) - at)
        return at, go_on

    def _place(self, unread: int) -> None:
        if self.first is not None:
            return
        if self._out.calls:
            self.first = self.certain
            return
        if self._region is None and self._tentative is None and not self._wraps:
            self._wrapper = 0
        self._wraps = False
        held = unread + self._wrapper + (len(self._fence_line) if self._mode is type(self)._fence else 0)
        if self._region is not None:
            held += self._region.size
        if self._tentative is not None:
            held += sum(map(len, self._tentative.raw))
        self.certain = self._total - held

    def _no_body(self, region: Region, text: str, at: int, final: bool) -> Step:
        wraps = region.opener in self._grammar.wrappers and not region.form.kept and self._grammar.openers.at(text, at)
        if wraps and self._tentative is None:  # else it is held with the calls that wait
            self._wrapper += region.size
            self._wraps = True
        return super()._no_body(region, text, at, final)

    def _may_wait(self, region: Region, calls: list[RawCall]) -> bool:
        return super()._may_wait(region, calls) and self._all_valid(calls)

    def _believable(self, region: Region, calls: list[RawCall]) -> bool:
        return super()._believable(region, calls) and self._all_valid(calls)


class Rescue:
    """Looks for calls of ``tools`` in the text of one reply; the settings are those of the ``Parser``."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        dialect: str = "auto",
        model: str | None = None,
        parallel: bool = True,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._parser = _ValidCalls(tools, dialect=dialect, model=model, parallel=parallel, new_id=new_id)
        self._blank: list[str] = []  # white space behind what is clear, which belongs to no call either
        self._open: list[str] = []  # what may belong to one
        self._decided = 0  # characters before that
        self.clear = 0
        """How many characters of the text go out as they are, whatever follows."""

    @property
    def held(self) -> str:
        """The text that follows those."""
        return "".join((*self._blank, *self._open))

    def feed(self, text: str) -> str:
        """Read a piece of text; what has become clear of it and of the text before."""
        self._parser.feed(text)
        self._open.append(text)
        more = self._parser.certain - self._decided
        if more <= 0:
            return ""
        joined = "".join(self._open)
        decided, self._open = joined[:more], [joined[more:]]
        self._decided += more
        solid = decided.rstrip()
        if not solid:
            self._blank.append(decided)
            return ""
        clear = "".join((*self._blank, solid))
        self._blank = [decided[len(solid) :]]
        self.clear += len(clear)
        return clear

    def close(self, finish_reason: FinishReason | None) -> list[Event] | None:
        """The rest of the reply, ``Finish`` included, in place of the text that is held; None: there is no call."""
        size = self.clear + len(self.held)
        events = self._parser.close(finish_reason)
        if not any(isinstance(event, ToolCallStart) for event in events):
            return None
        before = self.held[: (size if self._parser.first is None else self._parser.first) - self.clear].rstrip()
        if (self.clear or before) and any(map(_goes_on, pairwise(events))):
            return None
        out: list[Event] = [TextDelta(before)] if before else []
        begun = False
        for event in events:
            if isinstance(event, ToolCallStart):
                begun = True
                out.append(Problem("rescued", "The backend had left this call in its text.", event.index, event.name))
            if begun or (isinstance(event, Problem) and event.call is not None):
                out.append(event)
        return out


def _goes_on(pair: tuple[Event, Event]) -> bool:
    """Whether text follows a call on its line: the call is then what the answer is about."""
    call, text = pair
    return isinstance(call, ToolCallEnd) and isinstance(text, TextDelta) and "\n" not in text.text[:2]


class RescueReader:
    """Passes the events of a server that has tools of its own, calls left in its text as calls."""

    def __init__(self, rescue: Rescue) -> None:
        self._rescue: Rescue | None = rescue
        self._native = NativeReader()

    @property
    def done(self) -> bool:
        """Never: the backend knows when it is done."""
        return False

    def feed(self, event: Event) -> list[Event]:
        """Take an event of the upstream. Text that may be a call waits; the rest passes."""
        match event:
            case TextDelta(text) if self._rescue is not None:
                return _text(self._rescue.feed(text))
            case ToolCallStart() | Refusal():
                return [*self._give_up(), *self._native.feed(event)]
            case Finish(reason):
                rescued = None if self._rescue is None or reason == "error" else self._rescue.close(reason)
                if rescued is None:
                    return [*self._give_up(), *self._native.feed(event)]
                self._end()
                finish = rescued.pop()
                assert isinstance(finish, Finish)  # noqa: S101 (it is the last)
                return [*rescued, replace(finish, stop_sequence=event.stop_sequence)]
            case _:
                return self._native.feed(event)

    def close(self, finish_reason: FinishReason | None = None) -> list[Event]:
        """End a reply whose ``Finish`` never came. Nothing, if it did come."""
        if self._rescue is not None and finish_reason != "error":
            rescued = self._rescue.close(finish_reason)
            if rescued is not None:
                self._end()
                return rescued
        return [*self._give_up(), *self._native.close(finish_reason)]

    def _give_up(self) -> list[Event]:
        """What was held back is text."""
        held = "" if self._rescue is None else self._rescue.held
        self._rescue = None
        return _text(held)

    def _end(self) -> None:
        self._rescue = None
        self._native.feed(Finish("tool_calls"))


def _text(text: str) -> list[Event]:
    return [TextDelta(text)] if text else []

"""What goes out of a reader: events, with text trimmed, calls numbered, and nothing sent twice."""

from __future__ import annotations

from collections.abc import Callable

from proxy.core.calls import Resolved
from proxy.core.events import (
    Event,
    Problem,
    ProblemKind,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    shorten,
)
from proxy.core.visible import Visible


class Output:
    """The events of one reply, in order. ``taken``: some have already been handed over."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.taken = False
        self.calls = 0
        self._behind_call = False
        self.reasoning: list[str] = []
        self._new_id = new_id
        self._events: list[Event] = []
        self._joining: list[str] = []  # text or reasoning that will be one delta
        self._delta: type[TextDelta] | type[ReasoningDelta] = TextDelta
        self._visible = Visible()
        self._reasoned = Visible()

    @property
    def has_text(self) -> bool:
        """Whether any visible text has come."""
        return self._visible.started

    @property
    def empty(self) -> bool:
        """Whether neither text nor a call has come."""
        return not self._visible.started and not self.calls

    @property
    def behind_call(self) -> bool:
        """Whether a call came and no visible text since."""
        return self._behind_call

    def take(self) -> list[Event]:
        """Hand over the events since the last time, neighbouring deltas joined."""
        self._join()
        events, self._events = self._events, []
        self.taken = self.taken or bool(events)
        return events

    def event(self, event: Event) -> None:
        """Add an event as it is."""
        self._join()
        self._events.append(event)

    def _join(self) -> None:
        if self._joining:
            self._events.append(self._delta("".join(self._joining)))
            self._joining.clear()

    def _add(self, delta: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        if delta is not self._delta:
            self._join()
            self._delta = delta
        self._joining.append(text)

    def text(self, text: str) -> None:
        """``text`` is part of the answer."""
        shown = self._visible.take(text)
        if shown:
            self._behind_call = False
            self._add(TextDelta, shown)

    def terminator(self, mark: str) -> None:
        """``mark`` ends the reply; it is part of the answer only if more of it follows."""
        self._visible.hold(mark)

    def reason(self, text: str) -> None:
        """``text`` is reasoning."""
        self.reasoning.append(text)
        shown = self._reasoned.take(text)
        if shown:
            self._add(ReasoningDelta, shown)

    def problem(self, kind: ProblemKind, message: str, detail: str = "") -> None:
        """Note a finding about text; ``detail`` is shortened."""
        self.event(Problem(kind, message, None, shorten(detail)))

    def call(self, call: Resolved) -> None:
        """Send a whole call. ``call`` was resolved for the index ``self.calls``."""
        self._join()
        self._events.extend(call.problems)
        self.start(call.name)
        self.arguments(call.arguments)
        self.end()

    def start(self, name: str) -> None:
        """Send the beginning of a call."""
        self._join()
        self._events.append(ToolCallStart(self.calls, self._new_id(), name))

    def arguments(self, text: str) -> None:
        """Send more of the arguments of the call that has begun."""
        if text:
            self._events.append(ToolArgumentsDelta(self.calls, text))

    def end(self) -> None:
        """The call that has begun is complete."""
        self._events.append(ToolCallEnd(self.calls))
        self.calls += 1
        self._behind_call = True

    def finish_call(self, call: Resolved, sent: str) -> bool:
        """Send the rest of a call whose beginning is out. False: the call does not fit what was sent."""
        self._events.extend(call.problems)
        if not call.arguments.startswith(sent):
            return False
        self.arguments(call.arguments[len(sent) :])
        self.end()
        return True

"""What a request says about calls, kept in the reply: which tools, whether one must come, whether one at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from proxy.core import markup
from proxy.core.events import (
    Event,
    Problem,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)

Numbered = TypeVar("Numbered", ToolCallStart, ToolArgumentsDelta, ToolCallEnd)


class CallRules:
    """A filter of events that also counts the calls: whatever indices come in, those that go out have no gaps.

    ``names``
        The tools whose calls count, None for any. A call of another tool becomes text.
    ``forced``
        A call must come. Text is held back until it does, or until the end.
    ``single``
        The first call that counts is the only one: nothing that follows it goes out.
    """

    def __init__(self, *, names: frozenset[str] | None = None, forced: bool = False, single: bool = False) -> None:
        self.calls = 0
        """How many calls went out."""
        self.inside_call = False
        """Whether a call went out that is not complete."""
        self.satisfied = False
        """Whether the one call that is allowed is complete."""
        self._names = names
        self._single = single
        self._held: list[Event] | None = [] if forced else None
        self._about: list[Problem] = []  # problems of the call that is about to begin
        self._as_text: list[str] | None = None  # the name of a call that does not count, and its arguments so far
        self._spoke = False
        self._apart = False  # the text so far ends with a call that does not count

    def take(self, event: Event) -> list[Event]:
        """``event`` as it goes out, if it does, and what was waiting for it."""
        if self.satisfied:
            return []
        take = _TAKEN.get(type(event))
        return [event] if take is None else take(self, event)

    def end(self) -> list[Event]:
        """What waits when the reply is over: without the call that had to come, that problem first, then the text."""
        out: list[Event] = [replace(problem, call=None) for problem in self._about]
        if self._held is not None:
            out += [Problem("missing_call", "A call was required, but the reply has none that counts."), *self._held]
        return out

    def _problem(self, problem: Problem) -> list[Event]:
        if problem.call is None:
            return [problem]
        if self.inside_call:
            return [replace(problem, call=self.calls - 1)]
        if self._as_text is not None:
            return [replace(problem, call=None)]
        self._about.append(problem)
        return []

    def _start(self, start: ToolCallStart) -> list[Event]:
        about, self._about = self._about, []
        if self._names is not None and start.name not in self._names:
            self._as_text = [start.name]
            return [replace(problem, call=None) for problem in about]
        held, self._held = self._held or [], None
        index = self.calls
        self.calls += 1
        self.inside_call = True
        return [*held, *(replace(problem, call=index) for problem in about), _numbered(start, index)]

    def _arguments(self, more: ToolArgumentsDelta) -> list[Event]:
        if self._as_text is None:
            return [_numbered(more, self.calls - 1)]
        self._as_text.append(more.text)
        return []

    def _end(self, end: ToolCallEnd) -> list[Event]:
        if self._as_text is not None:
            return self._end_as_text(*self._as_text)
        self.inside_call = False
        self.satisfied = self._single
        return [_numbered(end, self.calls - 1)]

    def _end_as_text(self, name: str, *arguments: str) -> list[Event]:
        self._as_text = None
        line = markup.tool_call(name, "".join(arguments))
        out = self._say(TextDelta(f"\n{line}" if self._spoke else line))
        self._apart = True
        return out

    def _say(self, said: TextDelta) -> list[Event]:
        if self._apart and not said.text.startswith("\n"):
            said = TextDelta(f"\n{said.text}")
        self._apart = False
        self._spoke = True
        if self._held is None:
            return [said]
        self._held.append(said)
        return []


_TAKEN: Mapping[type, Callable[[CallRules, Any], list[Event]]] = {
    TextDelta: CallRules._say,
    Problem: CallRules._problem,
    ToolCallStart: CallRules._start,
    ToolArgumentsDelta: CallRules._arguments,
    ToolCallEnd: CallRules._end,
}
"""What becomes of an event, by its type; those of other types pass."""


def _numbered(event: Numbered, index: int) -> Numbered:
    return event if event.index == index else replace(event, index=index)

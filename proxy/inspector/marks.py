"""Where in a model's text its calls stand, and its reasoning, and what was dropped.

The reader tells what it read, not where. So the text is read once more, in small pieces, and what comes out of each is
found again in what went in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from proxy.core.collect import Reply, collect
from proxy.core.events import Event, Problem, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallEnd, ToolCallStart
from proxy.core.grammar import AUTO, grammar
from proxy.core.model import Tool
from proxy.core.parser import Parser

Kind: TypeAlias = Literal["text", "reasoning", "call", "dropped"]

_PIECES = re.compile(r"[^<>\[\]{}()`|\n]*[<>\[\]{}()`|\n]|[^<>\[\]{}()`|\n]+")
"""A call ends at one of these characters, whoever writes it."""

_LEAD = re.compile(r"\s*(?:</[^<>\s]{1,40}>\s*)*")
"""What stands between reasoning or text and a call, and belongs to neither."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a reply was read: the tools that were offered and the settings of the reader."""

    tools: Sequence[Tool] = ()
    dialect: str = AUTO
    model: str | None = None
    starts_in_reasoning: bool = False
    parallel: bool = True


@dataclass(slots=True)
class Segment:
    """A piece of the model's text. ``dropped`` is what no client sees: marks, white space between calls, made-up
    results. ``calls`` are those that were read out of it, ``problems`` what was found there.
    """

    kind: Kind
    text: str
    calls: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def marked(text: str, reading: Reading, finish_reason: str | None = "stop") -> tuple[list[Segment], Reply]:
    """``text`` in segments that together are all of it, and the reply that it is. Never raises on any ``text``."""
    parser = Parser(
        reading.tools,
        dialect=reading.dialect,
        model=reading.model,
        starts_in_reasoning=reading.starts_in_reasoning,
        read_calls=bool(reading.tools),
        parallel=reading.parallel,
        stream_arguments_after=None,
    )
    tracer = _Tracer(text, grammar(reading.dialect, reading.model).openers.marks)
    events: list[Event] = []
    at = 0
    for piece in _PIECES.findall(text):
        at += len(piece)
        told = parser.feed(piece)
        tracer.take(told, at)
        events += told
    told = parser.close(finish_reason)
    tracer.take(told, len(text))
    tracer.end()
    return tracer.segments, collect([*events, *told])


class _Tracer:
    """Finds what was told in the text: each piece of it stands behind the one before."""

    def __init__(self, text: str, openers: Iterable[str]) -> None:
        self.segments: list[Segment] = []
        self._text = text
        self._ends = ("<", *openers)  # what shows that the call before it is over
        self._at = 0
        self._problems: list[Problem] = []
        self._name = ""
        self._arguments: list[str] = []
        self._calls: list[tuple[str, str]] = []

    def take(self, events: list[Event], read: int) -> None:
        """Take what came when ``read`` characters were known."""
        for place, event in enumerate(events):
            match event:
                case TextDelta(shown):
                    self._shown("text", shown, read)
                case ReasoningDelta(shown):
                    self._shown("reasoning", shown, read)
                case Problem():
                    self._problems.append(event)
                case ToolCallStart(name=name):
                    self._name, self._arguments = name, []
                case ToolArgumentsDelta(text=more):
                    self._arguments.append(more)
                case ToolCallEnd():
                    self._called(events[place + 1 :], read)

    def end(self) -> None:
        """All was read: what is left was dropped."""
        self._add("dropped", len(self._text))
        if self._problems:
            if not self.segments:
                self.segments.append(Segment("dropped", ""))
            self.segments[-1].problems += self._problems

    def _shown(self, kind: Kind, shown: str, read: int) -> None:
        start = self._text.find(shown, self._at, read)
        if start < 0:  # it was changed on its way: a lone surrogate, say
            start, end = self._at, read
        else:
            end = start + len(shown)
        self._add("dropped", start)
        self._add(kind, end)

    def _end_of_call(self, rest: list[Event], read: int) -> int:
        """Where the call that has come ends: before the text that came with it, which ends where was read."""
        size = sum(len(event.text) for event in rest if isinstance(event, TextDelta | ReasoningDelta))
        end = max(self._at, read - size)
        told = self._text[self._at : end]
        return end - max(len(mark) if told.endswith(mark) and mark != told else 0 for mark in self._ends)

    def _called(self, rest: list[Event], read: int) -> None:
        self._calls.append((self._name, "".join(self._arguments)))
        if any(isinstance(event, ToolCallStart) for event in rest):
            return  # several in one mark
        end = self._end_of_call(rest, read)
        told = self._text[self._at : end]
        last = self.segments[-1] if self.segments else None
        if last is not None and last.kind == "call" and self._name not in told:  # the one before was told late
            last.text += told
        else:
            lead = _LEAD.match(told)
            if lead and lead.end() < len(told):
                self._add("dropped", self._at + lead.end(), problems=False)
                told = told[lead.end() :]
            last = Segment("call", told)
            self.segments.append(last)
        self._at = end
        last.calls += self._calls
        last.problems += self._problems
        self._calls, self._problems = [], []

    def _add(self, kind: Kind, end: int, *, problems: bool = True) -> None:
        if end <= self._at:
            return
        text = self._text[self._at : end]
        self._at = end
        last = self.segments[-1] if self.segments else None
        if last is not None and last.kind == kind and kind != "call":
            last.text += text
        else:
            last = Segment(kind, text)
            self.segments.append(last)
        if problems:
            last.problems += self._problems
            self._problems = []

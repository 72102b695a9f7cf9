"""The modes of reasoning, and of what stands in front of the answer."""

from __future__ import annotations

import re
from collections.abc import Callable

from proxy.core.callmodes import CallModes
from proxy.core.calls import ToolSet
from proxy.core.forms import Heading
from proxy.core.grammar import Grammar
from proxy.core.machine import BLANK, Step
from proxy.core.scanner import marks_of

_SPACE = re.compile(r"\s*")


class ReasoningModes(CallModes):
    """Tells reasoning from the answer. ``starts_in_reasoning``: see :class:`~proxy.core.parser.Parser`."""

    __slots__ = ("_had_reasoning", "_literal_think", "_source", "_starts_in_reasoning", "_think_closers")

    def __init__(
        self,
        tools: ToolSet,
        grammar: Grammar,
        *,
        starts_in_reasoning: bool,
        read_calls: bool,
        parallel: bool,
        stream_after: int | None,
        new_id: Callable[[], str],
    ) -> None:
        self._starts_in_reasoning = starts_in_reasoning
        self._source: list[str] = []  # all text so far, while a lone think closer could still claim it
        super().__init__(
            tools, grammar, read_calls=read_calls, parallel=parallel, stream_after=stream_after, new_id=new_id
        )
        self._mode = type(self)._head

    def _begin(self) -> None:
        super()._begin()
        self._had_reasoning = False
        self._literal_think = ""  # the opening think mark within the answer, so its closer belongs there too
        self._think_closers = marks_of(frozenset())

    def _head(self, text: str, at: int, final: bool) -> Step:
        at = BLANK.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        if at == len(text):
            return at, False
        if not final and self._grammar.think_openers.may_start(text, at):
            return at, False
        mark = self._grammar.think_openers.at(text, at)
        if mark:
            self._open_reasoning(mark)
            return at + len(mark), True
        if self._starts_in_reasoning:
            self._think_closers = self._grammar.think_closers
            self._had_reasoning = True
            self._mode = type(self)._reasoning
        else:
            self._mode = type(self)._start
        return at, True

    def _start(self, text: str, at: int, final: bool) -> Step:
        """In front of the answer: some openers count only here."""
        if self._out.empty:
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            heads, thinking = self._grammar.heads, self._grammar.think_openers
            if at == len(text) or (not final and (heads.may_start(text, at) or thinking.may_start(text, at))):
                return at, False
            opener = thinking.at(text, at)
            if opener:  # once more, with nothing said in between
                self._out.reason("\n\n")
                self._open_reasoning(opener)
                return at + len(opener), True
            mark = heads.at(text, at)
            if mark:
                return self._open(mark, at)
        self._mode = type(self)._text
        return at, True

    def _heading(self, heading: Heading) -> None:
        self._headed = True
        self._mode = type(self)._text
        if heading.closers:
            self._reason_until(heading.closers)

    def _open_reasoning(self, mark: str) -> None:
        self._reason_until(self._grammar.closers_of[mark])

    def _reason_until(self, closers: tuple[str, ...]) -> None:
        self._think_closers = marks_of(frozenset(closers))
        self._had_reasoning = True
        self._source.clear()
        self._mode = type(self)._reasoning

    def _reasoning(self, text: str, at: int, final: bool) -> Step:
        end, found = self._think_closers.split(text, at, final=final)
        self._out.reason(text[at:end])
        if found is None:
            return end, False
        self._mode = type(self)._start
        return (end if self._grammar.openers.at(found.mark, 0) else found.end), True

    def _quoting(self, text: str, at: int, final: bool) -> Step:
        """A call behind a think mark within a line: a draft if that is closed, and stays text, else a call."""
        closers = marks_of(frozenset(self._grammar.closers_of[self._literal_think]))
        found = closers.find(text, at, final=final)
        if found is None and not final:
            return at, False
        self._literal_think = ""
        self._mode = type(self)._text
        if found is None:
            return at, True
        self._show(text[at : found.end])
        return found.end, True

    def _late_reasoning(self, mark: str, end: int) -> None:
        """A closing think mark without its opener: what stands before it was reasoning, if that can still be said."""
        if self._out.taken:
            self._had_reasoning = True
            self._out.problem(
                "late_reasoning",
                f"The reply closed its reasoning with {mark} but never opened it; what came before went out as text. "
                "Set starts_in_reasoning (--starts-in-reasoning true) for this model.",
            )
            return
        source = "".join(self._source)
        behind = len(self._pending) - end
        self._begin()
        self._had_reasoning = True
        self._source.clear()
        self._out.reason(source[: len(source) - behind].removesuffix(mark))

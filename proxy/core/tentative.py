"""The modes of calls that count only if what follows allows it: those in code, and those without any tag."""

from __future__ import annotations

import re
from abc import abstractmethod

from proxy.core.bare import begins_bare
from proxy.core.bodies.base import RawCall
from proxy.core.code import TICKS
from proxy.core.forms import Form
from proxy.core.machine import Machine, Step
from proxy.core.notations import JSON, PYTHON
from proxy.core.regions import Region, Tentative
from proxy.core.scanner import marks_of

_SPACE = re.compile(r"\s*")
_LONGEST_CODE_LINE = 2_000
_FENCES = ("```", "~~~")


class TentativeModes(Machine):
    """Keeps calls, with all of their text, until it is certain whether they are any."""

    __slots__ = ()

    @abstractmethod
    def _open(self, mark: str, at: int) -> Step:
        """A call begins with ``mark``."""

    @abstractmethod
    def _choose(self, text: str, at: int, final: bool) -> Step:
        """Behind the opener of a call."""

    @abstractmethod
    def _fence(self, text: str, at: int, final: bool) -> Step:
        """Behind the line that opens a fence."""

    @abstractmethod
    def _send(self, raw: RawCall) -> None:
        """``raw`` is a call."""

    def _maybe_bare(self, text: str, at: int, final: bool) -> Step:
        """A bracket at the start of a line: what names a declared tool is a call if it is all, or if a closer follows.

        In a dialect whose calls have no mark it is one wherever it stands.
        """
        head = self._out.empty
        places = text[at] == "{" or (self._code.line_start and head)
        bare: bool | None = False
        if (places or self._grammar.bare) and self._code.outside and not self._headed:
            bare = begins_bare(self._tools, text, at, final=final)
        if bare is None:
            return at, False
        if not bare:
            self._show(text[at])
            return at + 1, True
        if not self._grammar.bare:
            self._tentative = Tentative("whole", [], orphan=not head)
        return self._open_bare(at, ())

    def _open_bare(self, at: int, closers: tuple[str, ...]) -> Step:
        self._region = Region("", Form("", (PYTHON, JSON), closers), bare=True)
        self._mode = type(self)._choose
        return at, True

    def _tentatively(self, text: str, at: int, final: bool) -> Step:
        """Behind tentative calls: white space and terminators decide nothing; the end of the reply, or text, does."""
        held = self._tentative
        assert held is not None  # noqa: S101 (the mode says so)
        if held.rule == "inline":
            return self._inline_ends(held, text, at, final)
        here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        while mark := self._grammar.terminator_marks.at(text, here):
            here = _SPACE.match(text, here + len(mark)).end()  # type: ignore[union-attr]
        held.raw.append(text[at:here])
        self._code.line_start |= "\n" in text[at:here]
        if here == len(text):
            if not final:
                return here, False
            if held.orphan or self._cut:
                self._as_text("")
            else:
                self._accept(held)
            return here, True
        if held.rule == "fence" and held.closed and text.startswith(_FENCES, here):
            return self._another_fence(held, text, here, final)
        if held.rule == "fence" and not held.closed and text.startswith(self._code.fence, here):
            end = TICKS.match(text, here).end()  # type: ignore[union-attr]  # it begins with the fence
            if end == len(text) and not final:
                return here, False
            held.closed = True
            held.raw.append(text[here:end])
            self._code.fence, self._code.line_start = "", False
            return end, True
        closers, openers, sections = self._grammar.closers, self._grammar.openers, self._grammar.section_ends
        if held.rule == "fence" and not held.closed and (mark := sections.at(text, here)):
            held.raw.append(mark)
            return here + len(mark), True
        if held.rule == "whole" and (mark := closers.at(text, here)):
            self._accept(held)
            return here + len(mark), True
        if held.rule == "fence" and not held.closed and (mark := openers.at(text, here)):
            return self._open(mark, here)
        fences = marks_of(frozenset((self._code.fence,) if self._code.fence else _FENCES))
        undecided = (closers, openers, sections, self._grammar.terminator_marks, fences)
        if not final and any(marks.may_start(text, here) for marks in undecided):
            return here, False
        self._as_text("")
        return here, True

    def _another_fence(self, held: Tentative, text: str, at: int, final: bool) -> Step:
        """Behind a fence with calls another one opens: its calls join them."""
        end = TICKS.match(text, at).end()  # type: ignore[union-attr]  # it begins a fence
        line = self._code.opens_fence(text, at, end, final=final)
        if line is None:
            return at, False
        if not line or len(text[end:line].split()) > 1:
            self._as_text("")
            return at, True
        self._code.fence = text[at:end]
        self._fence_line = text[at:line]
        self._mode = type(self)._fence
        return line, True

    def _inline_ends(self, held: Tentative, text: str, at: int, final: bool) -> Step:
        """A call in inline code is text; if the code never closes on its line, it was no code."""
        line = text.find("\n", at)
        for run in TICKS.finditer(text, at, line if line >= 0 else len(text)):
            if run.end() == len(text) and not final:
                return at, False
            if run[0] == "`" * self._code.inline:
                self._as_text("")
                return at, True
        if line >= 0 or final or len(text) - at > _LONGEST_CODE_LINE:
            if self._cut:
                self._as_text("")
            else:
                self._code.inline = 0
                self._accept(held)
            return at, True
        return at, False

    def _accept(self, held: Tentative) -> None:
        self._tentative = None
        self._code.fence = ""
        self._mode = type(self)._text
        for call in held.calls:
            if not self.done:
                self._send(call)

    def _as_text(self, raw: str) -> None:
        """``raw``, and what was held back in front of it, is text after all."""
        held = self._tentative
        self._tentative = None
        self._mode = type(self)._text
        if held is not None:
            self._show("".join(held.raw))
            if held.rule == "whole" and self._code.closes_fence("".join(held.raw[1:]) + raw):
                self._code.fence = ""
        self._show(raw)

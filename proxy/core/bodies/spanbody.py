"""Bodies that are read as a whole: a text up to a closer at which it can be read.

Nothing in such a text says by itself whether a closer in it is the end or a piece of a value. So every closer may be
the end, and the first one is at which what stands before it reads as calls, with every value closed. Only where that
never happens and the closer ends the reply, or the next call follows it, is the text read again forgivingly.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from io import StringIO

from proxy.core.bodies.base import Effort, RawCall, Reading, Status
from proxy.core.bodies.quotes import QUOTES, in_string, stands_in_quotes
from proxy.core.scanner import Marks, marks_of

_SPACE = re.compile(r"\s*")
_TAIL = 64
_SHORT = 256
_LOOK_AHEAD = 64  # characters by which a call that is quoted is told from a tag that is mentioned
_CALL_LIKE = re.compile(r"\s*(?:[{\[<]|[\w.-]{1,50}(?:\s*<|\n))")
_SHORTEST_END = 2  # characters that say nothing of what they begin


class SpanReader(ABC):
    """Finds the end of a body. ``closers`` end it, else ``own_end``, which is then a part of the body.

    ``openers`` begin the next call and so end this one as well. ``finals`` are the texts a whole body may end with.
    With closers, the text behind an ``own_end`` is no part of the body unless it begins with ``goes_on``.
    """

    def __init__(
        self,
        closers: Marks,
        openers: Marks,
        effort: Effort | None,
        *,
        own_end: str,
        finals: tuple[str, ...],
        goes_on: str = "",
    ) -> None:
        self.reading = Reading()
        self._own_end = "" if closers.marks else own_end
        self._soft_end = own_end if closers.marks and goes_on else ""
        self._goes_on = goes_on
        self._closers = closers if closers.marks else marks_of(frozenset((own_end,)))
        self._openers = openers
        self._marks = marks_of(self._closers.marks | openers.marks | ({self._soft_end} - {""}))
        self._finals = finals
        self._text = StringIO()
        self._tail = ""
        self._length = 0
        self._pairing = frozenset(mark.replace("</", "<", 1) for mark in self._closers.marks)
        self._quoted = 0  # openers that stand inside a value, and whose closers so do too
        self._effort = effort or Effort()
        self._in_quotes = False  # the closer at which the body is taken to end stands in quotes
        self._waiting = False  # the body does not end at the closer that comes next, unless what follows it says so

    def in_value(self, text: str) -> bool:
        """Whether a value is open behind ``text``, as far as that can be told."""
        return False

    @abstractmethod
    def _read(self, text: str, *, closed: bool, forgiving: bool) -> list[RawCall] | None:
        """The calls that ``text`` is; None if it is not. ``closed``: the body ends here for certain."""

    def take(self, text: str, at: int, *, final: bool) -> tuple[int, Status]:
        """See :class:`~proxy.core.bodies.base.Body`."""
        while found := self._marks.find(text, at, final=final):
            self._use(text[at : found.start])
            if found.mark in self._closers.marks:
                data = True if self._quoted else in_string(self._tail, text, found.end, final=final)
                if data is None:
                    return found.start, Status.MORE
                if data:
                    last = final and found.end == len(text)  # if anything closes the body, this does
                    if self._quoted and last and self._complete(self._own_end, closed=True):
                        return found.end, Status.DONE
                    self._quoted = max(0, self._quoted - 1)
                    self._use(text[found.start : found.end])
                    at = found.end
                    continue
                in_quotes = stands_in_quotes(self._tail, text, found.end, final=final)
                if in_quotes is None:
                    return found.start, Status.MORE
                self._in_quotes = in_quotes
                if not self._waiting and self._complete(self._own_end, closed=True):
                    return found.end, Status.DONE
                ends = self._ends(text, found.end, final=final)
                self._waiting = ends is None
                if self._waiting:
                    return found.start, Status.MORE
                guess = ends and not self._tail.endswith(QUOTES)
                if guess and self._complete(self._own_end, closed=True, forgiving=True):
                    return found.end, Status.DONE
            elif found.mark == self._soft_end:
                follows = self._text_follows(text, found.end, final=final)
                quoted = in_string(self._tail, text, found.end, final=final)
                if follows is None or quoted is None:
                    return found.start, Status.MORE
                if follows and not quoted and self._complete(found.mark, closed=True):
                    return found.end, Status.DONE
            elif self._length:
                if self._complete("", closed=True):
                    return found.start, Status.DONE
                if found.mark in self._pairing:
                    if len(text) - found.end < _LOOK_AHEAD and not final:
                        return found.start, Status.MORE
                    self._quoted += _CALL_LIKE.match(text, found.end) is not None
            self._use(text[found.start : found.end])
            at = found.end
        hold = self._marks.hold(text, at)
        self._use(text[at:hold])
        if final:
            cut = text[hold:]  # the reply ends within a mark
            if len(cut) > _SHORTEST_END:
                end = self._soft_end if self._soft_end.startswith(cut) else self._own_end
                if self._complete(end, closed=True):
                    return len(text), Status.DONE
            self._use(text[hold:])
            hold = len(text)
        return hold, Status.DONE if final and self._complete("", closed=False) else Status.MORE

    def _use(self, piece: str) -> None:
        if piece:
            self._text.write(piece)
            self._tail = (self._tail + piece[-_TAIL:])[-_TAIL:]
            self._length += len(piece)

    def _ends(self, text: str, at: int, *, final: bool) -> bool | None:
        """Whether the reply, or its next call, goes on at ``at`` as it does behind a call; None: not known yet."""
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        if at == len(text):
            return True if final else None
        if self._openers.at(text, at):
            return True
        return None if not final and self._openers.may_start(text, at) else False

    def _text_follows(self, text: str, at: int, *, final: bool) -> bool | None:
        """Whether something stands at ``at`` that is no part of the body, nor ends it; None: not known yet."""
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        rest = text[at : at + len(self._goes_on)]
        if rest == self._goes_on or self._closers.at(text, at) or self._openers.at(text, at):
            return False
        if final:
            return bool(rest) and not self._closers.may_start(text, at)
        return None if self._goes_on.startswith(rest) or self._marks.may_start(text, at) else True

    def _complete(self, mark: str, *, closed: bool, forgiving: bool = False) -> bool:
        """Whether the text so far, and ``mark``, is a whole body."""
        may_be = forgiving or self._length < _SHORT or (self._tail + mark).rstrip().endswith(self._finals)
        if not may_be or not self._effort.allows(self._length):
            return False
        calls = self._read(self._text.getvalue() + mark, closed=closed, forgiving=forgiving)
        self.reading.items.extend(calls or ())
        return bool(calls)

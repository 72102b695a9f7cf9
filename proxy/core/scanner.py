"""Finding marks in a stream: the earliest one that is there, and the shortest end that may still become one.

Nothing is looked at twice: a caller keeps only what stands from ``Found.start`` (a mark) or from the hold-back index
on, and that is never longer than the longest mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from msgspec import Struct


class Found(Struct, frozen=True):
    """A mark and where it stands: ``text[start:end] == mark``."""

    start: int
    end: int
    mark: str


class Marks:
    """A set of literal marks to look for. When one mark begins with another, the longer one is preferred."""

    def __init__(self, marks: Iterable[str]) -> None:
        self.marks = frozenset(marks)
        self._pattern = re.compile(_alternatives(self.marks) or r"(?!)")
        firsts = re.escape("".join(sorted({mark[0] for mark in self.marks})))
        self._firsts = re.compile(f"[{firsts}]") if firsts else None
        self._prefixes = frozenset(mark[:size] for mark in self.marks for size in range(1, len(mark)))
        self._longest = max(map(len, self.marks), default=0)

    def find(self, text: str, at: int = 0, *, final: bool = True) -> Found | None:
        """The first mark from ``at`` on, None if there is none.

        Unless ``final``, a mark is not found yet while it, or one that begins before it, may still become a longer one
        with what comes next.
        """
        found = self._pattern.search(text, at)
        if found is None:
            return None
        near_end = len(text) - found.start() < self._longest
        if not final and near_end and self.hold(text, at) <= found.start():
            return None
        return Found(found.start(), found.end(), found[0])

    def split(self, text: str, at: int = 0, *, final: bool = True) -> tuple[int, Found | None]:
        """The index from ``at`` on before which no mark can stand, and the mark that is found there.

        Without one it is that of :meth:`hold`, or if ``final`` the end.
        """
        if self._firsts is None or self._firsts.search(text, at) is None:
            return len(text), None
        found = self.find(text, at, final=final)
        if found is not None:
            return found.start, found
        return (len(text) if final else self.hold(text, at)), None

    def at(self, text: str, at: int) -> str | None:
        """The mark that stands at ``at``, None if none does."""
        found = self._pattern.match(text, at)
        return found[0] if found else None

    def may_start(self, text: str, at: int) -> bool:
        """Whether ``text`` from ``at`` to its end is the beginning of a mark, and not yet a whole one."""
        return len(text) - at < self._longest and text[at:] in self._prefixes

    def hold(self, text: str, at: int = 0) -> int:
        """The index from which the end of ``text`` may still become a mark; ``len(text)`` when it cannot."""
        if self._firsts is None:
            return len(text)
        start = max(at, len(text) - self._longest + 1)
        for found in self._firsts.finditer(text, start):
            if text[found.start() :] in self._prefixes:
                return found.start()
        return len(text)


@cache
def marks_of(marks: frozenset[str]) -> Marks:
    """:class:`Marks` of ``marks``, made once: a call must not cost the making of a hundred openers' pattern."""
    return Marks(marks)


def _alternatives(marks: Iterable[str]) -> str:
    """A pattern for the longest of ``marks`` at a place. Common beginnings come once, so few characters are tried."""
    tails: dict[str, set[str]] = {}
    for mark in sorted(marks):
        tails.setdefault(mark[:1], set()).add(mark[1:])
    found = [re.escape(first) + _alternatives(rest) for first, rest in tails.items() if first]
    either = found[0] if len(found) == 1 else "(?:" + "|".join(found) + ")" if found else ""
    return f"(?:{either})?" if either and "" in tails else either

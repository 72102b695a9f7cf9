"""Which result answers which call: by id, then the nearest unanswered call, then position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from proxy.core.model import ToolCall, ToolResult


@dataclass(eq=False, slots=True)
class MadeCall:
    """A call in the history. ``number`` counts from 1 and stands in for a missing id; ``results`` are its answers.

    More than one result is a client's mistake, but none is thrown away.
    """

    number: int
    call: ToolCall
    results: list[ToolResult] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The id to show, the same for every later request of this conversation."""
        return self.call.id or f"call_{self.number}"


@dataclass(frozen=True, slots=True)
class Stray:
    """A result of no call in the turn before it: ``made`` is the earlier call it answers, None if there is none."""

    result: ToolResult
    made: MadeCall | None


class Ledger:
    """The calls of a conversation so far, in order, and which of them wait for a result."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: list[MadeCall] = []
        self._last_of_id: dict[str, MadeCall] = {}

    def add(self, calls: Iterable[ToolCall]) -> list[MadeCall]:
        """Enter the calls of one assistant turn."""
        made = [MadeCall(number, call) for number, call in enumerate(calls, self._count + 1)]
        self._count += len(made)
        self._waiting += made
        self._last_of_id |= {entry.call.id: entry for entry in made if entry.call.id}
        return made

    def pair(self, results: Iterable[ToolResult], current: Sequence[MadeCall]) -> list[Stray]:
        """Enter the results that follow the turn in which ``current`` was made.

        Answers of ``current`` are put into its entries; all others are returned in order. Ids go first, so that a
        result without one cannot take the place of one that has it.
        """
        by_id = [(result, self._answer(result, current, by_id=True)) for result in results]
        strays = []
        for result, made in by_id:
            if made is None:  # a second result for an answered call, or one whose id says nothing
                made = self._last_of_id.get(result.call_id) or self._answer(result, current, by_id=False)
            if made is None or not _in(made, current):
                strays.append(Stray(result, made))
            else:
                made.results.append(result)
        return strays

    def _answer(self, result: ToolResult, current: Sequence[MadeCall], *, by_id: bool) -> MadeCall | None:
        """Take the first fitting call of ``current``, else the latest earlier one, off the waiting list.

        A result whose id no call bears may answer a call of ``current`` (some clients rewrite ids), but is no answer to
        one of an earlier turn: that id's call was more likely cut out of the history.
        """
        fitting = [made for made in self._waiting if _fits(result, made.call, by_id=by_id)]
        here = [made for made in fitting if _in(made, current)]
        if here:
            taken = here[0]
        elif fitting and (by_id or not result.call_id):
            taken = fitting[-1]
        else:
            return None
        self._waiting.remove(taken)
        return taken


def _fits(result: ToolResult, call: ToolCall, *, by_id: bool) -> bool:
    if by_id:
        return bool(result.call_id) and result.call_id == call.id
    return not result.name or result.name == call.name


def _in(made: MadeCall, current: Sequence[MadeCall]) -> bool:
    return bool(current) and made.number >= current[0].number

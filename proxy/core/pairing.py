"""Which result answers which call: by id, then the nearest unanswered call, then position."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from proxy.core.model import ToolCall, ToolResult

_Key: TypeAlias = tuple[str, str]
_ANY: _Key = ("", "")


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


class Stray(Struct, frozen=True):
    """A result of no call in the turn before it: ``made`` is the earlier call it answers, None if there is none."""

    result: ToolResult
    made: MadeCall | None


class _Waiting:
    """Calls in order, found by id, by name, or whichever; those in ``taken`` have their result and are passed over.

    Each is looked at a bounded number of times, so that a history of any length costs linear time.
    """

    def __init__(self, taken: set[int], calls: Iterable[MadeCall] = ()) -> None:
        self._taken = taken
        self._queues: defaultdict[_Key, deque[MadeCall]] = defaultdict(deque)
        self.add(calls)

    def add(self, calls: Iterable[MadeCall]) -> None:
        for made in calls:
            for key in (("id", made.call.id), ("name", made.call.name), _ANY):
                self._queues[key].append(made)

    def first(self, key: _Key) -> MadeCall | None:
        queue = self._queues[key]
        while queue and queue[0].number in self._taken:
            queue.popleft()
        return queue[0] if queue else None

    def last(self, key: _Key) -> MadeCall | None:
        queue = self._queues[key]
        while queue and queue[-1].number in self._taken:
            queue.pop()
        return queue[-1] if queue else None


class Ledger:
    """The calls of a conversation so far, in order, and which of them wait for a result."""

    def __init__(self) -> None:
        self._count = 0
        self._taken: set[int] = set()
        self._entered: list[MadeCall] = []  # those that nobody has looked for by anything but their turn
        self._waiting = _Waiting(self._taken)
        self._last_of_id: dict[str, MadeCall] = {}

    def add(self, calls: Iterable[ToolCall]) -> list[MadeCall]:
        """Enter the calls of one assistant turn."""
        made = [MadeCall(number, call) for number, call in enumerate(calls, self._count + 1)]
        self._count += len(made)
        self._entered += made
        self._last_of_id |= {entry.call.id: entry for entry in made if entry.call.id}
        return made

    def pair(self, results: Sequence[ToolResult], current: Sequence[MadeCall]) -> list[Stray]:
        """Enter the results that follow the turn in which ``current`` was made.

        Answers of ``current`` are put into its entries; all others are returned in order. Ids go first, so that a
        result without one cannot take the place of one that has it.
        """
        if not results:
            return []
        ids = [result.call_id for result in results]
        if ids == [made.call.id for made in current] and all(ids) and len(set(ids)) == len(ids):  # as it should be
            for result, answered in zip(results, current, strict=True):
                answered.results.append(result)
                self._taken.add(answered.number)
            return []
        here = _Waiting(self._taken, current)
        by_id = [(result, self._answer(result, here, by_id=True)) for result in results]
        strays = []
        for result, made in by_id:
            if made is None:  # a second result for an answered call, or one whose id says nothing
                made = self._last_of_id.get(result.call_id) or self._answer(result, here, by_id=False)
            if made is None or not _in(made, current):
                strays.append(Stray(result, made))
            else:
                made.results.append(result)
        return strays

    def _answer(self, result: ToolResult, here: _Waiting, *, by_id: bool) -> MadeCall | None:
        """Take the first fitting call of the current turn, else the latest earlier one, off the waiting list.

        A result whose id no call bears may answer a call of this turn (some clients rewrite ids), but is no answer to
        one of an earlier turn: that id's call was more likely cut out of the history.
        """
        if by_id:
            if not result.call_id:
                return None
            key = "id", result.call_id
        else:
            key = ("name", result.name) if result.name else _ANY
        taken = here.first(key)
        if taken is None and (by_id or not result.call_id):
            self._waiting.add(self._entered)
            self._entered.clear()
            taken = self._waiting.last(key)
        if taken is not None:
            self._taken.add(taken.number)
        return taken


def _in(made: MadeCall, current: Sequence[MadeCall]) -> bool:
    return bool(current) and made.number >= current[0].number

"""What became of the calls of one exchange, in numbers and in one word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from proxy.core.events import Problem
from proxy.inspector.explain import EXPLANATIONS
from proxy.tape import Tape, Turn
from proxy.telemetry import RequestLog

Word: TypeAlias = Literal["running", "error", "refused", "repaired", "right", "text"]

_PASSED_ON = frozenset({"unknown_tool", "invalid_arguments"})
"""Calls that are wrong, and go to the client all the same."""


class Outcome(NamedTuple):
    """``right``, ``repaired`` and ``refused`` (or wrong) calls, those of replies that were not the answer included.

    ``word`` is about the answer: with calls that were right only when the model was asked again it is ``repaired``.
    """

    word: Word
    right: int = 0
    repaired: int = 0
    refused: int = 0


def outcome(log: RequestLog, tape: Tape | None) -> Outcome:
    """The outcome of an exchange that is over; without its ``tape`` nothing is known of its calls but their number."""
    turns = [] if tape is None else [turn for turn in tape.turns if turn.status is not None and turn.status < 300]
    word: Word = "right" if log.calls else "text"
    if log.error is not None or (log.status or 0) >= 400:
        word = "error"
    if not any(turn.problems for turn in turns):
        return Outcome(word, log.calls)
    found = _answer(turns)
    mended = {problem.call for problem in found if _verdict(problem) == "repaired"}
    wrong = {problem.call for problem in found if problem.kind in _PASSED_ON}
    repaired = min(len(mended - wrong), log.calls)
    right = max(0, log.calls - repaired - len(wrong))
    refused = sum([len(_refused(turn.problems)) for turn in turns])
    if word != "error" and _refused(found):
        word = "refused"
    elif word != "error" and (repaired or refused):
        word = "repaired"
    return Outcome(word, right, repaired, refused)


def _answer(turns: Sequence[Turn]) -> list[Problem]:
    """The findings in the reply that the client got: the last one, or the first if that was no better."""
    if not turns:
        return []
    return turns[0].problems if _refused(turns[-1].problems) else turns[-1].problems


def _refused(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if _verdict(problem) == "refused"]


def _verdict(problem: Problem) -> str:
    return EXPLANATIONS[problem.kind].verdict

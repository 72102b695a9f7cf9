from __future__ import annotations

from proxy.core.events import Problem, ProblemKind
from proxy.inspector.outcome import Outcome, outcome
from proxy.tape import Tape
from proxy.telemetry import RequestLog


def of(
    calls: int, *turns: list[tuple[ProblemKind, int | None]], status: int = 200, error: str | None = None
) -> Outcome:
    """The outcome of an exchange with ``calls`` in its answer, and what was found in the reply of each turn."""
    tape = Tape(lambda size: True)
    for turn in turns:
        tape.turn("http://there", b"").status = 200
        for kind, call in turn:
            tape.note(Problem(kind, "…", call))
    return outcome(RequestLog("r1", "chat", calls=calls, status=status, error=error), tape)


def test_calls_as_the_model_wrote_them() -> None:
    assert of(2, []) == Outcome("right", right=2)
    assert of(0, []) == Outcome("text")
    assert of(1, [("dropped_markup", None), ("schema", 0)]) == Outcome("right", right=1)


def test_calls_that_were_mended_count_once() -> None:
    assert of(2, [("repaired", 0), ("coerced", 0), ("coerced", 0)]) == Outcome("repaired", right=1, repaired=1)
    assert of(1, [("rescued", None)]) == Outcome("repaired", repaired=1)


def test_calls_that_the_client_did_not_get_and_those_that_are_wrong() -> None:
    assert of(1, [("unreadable", None)]) == Outcome("refused", right=1, refused=1)
    assert of(2, [("invalid_arguments", 1)]) == Outcome("refused", right=1, refused=1)
    assert of(1, [("repaired", 0), ("unknown_tool", 0)]) == Outcome("refused", refused=1)
    assert of(0, [("cut", None)]) == Outcome("refused", refused=1)


def test_the_answer_is_the_last_reply_if_that_is_better() -> None:
    fault: list[tuple[ProblemKind, int | None]] = [("invalid_arguments", 0)]
    assert of(2, fault, []) == Outcome("repaired", right=2, refused=1)
    assert of(1, fault, fault) == Outcome("refused", refused=2)


def test_a_server_that_did_not_answer_is_no_reply() -> None:
    tape = Tape(lambda size: True)
    tape.turn("http://a", b"").status = 503
    tape.turn("http://b", b"")
    tape.turn("http://c", b"").status = 200
    tape.note(Problem("invalid_arguments", "…", 0))
    assert outcome(RequestLog("r1", "chat", calls=1, status=200), tape) == Outcome("refused", refused=1)


def test_errors() -> None:
    assert of(0, status=400).word == "error"
    assert of(1, [], error="backend_broke_off") == Outcome("error", right=1)


def test_what_is_no_longer_known() -> None:
    assert outcome(RequestLog("r1", "chat", calls=2, status=200), None) == Outcome("right", right=2)

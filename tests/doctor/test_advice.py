from __future__ import annotations

from typing import Any

import pytest

from proxy.backends.probes import Facts
from proxy.config import BackendConfig
from proxy.doctor.advice import GAIN, Advice, advise
from proxy.doctor.examine import Examination
from proxy.trial.run import Outcome

BACKEND = BackendConfig("http://h")


def outcomes(right: int, of: int = 20, **more: Any) -> list[Outcome]:
    """``of`` prompts of which ``right`` are right; no call came for the others."""
    return [Outcome(f"p{number}", "c", True, number < right, number < right, **more) for number in range(of)]


def advice(kind: Any = "llama.cpp", /, *, knows_tools: bool = False, **trial: list[Outcome]) -> Advice:
    facts = Facts(kind, native=knows_tools, source="")
    return advise(BACKEND, Examination((), (), "m", facts), trial)


def levels(given: Advice) -> dict[str, str]:
    return {finding.about: finding.level for finding in given.findings}


def test_what_works_by_itself_needs_no_setting() -> None:
    given = advice(xml=outcomes(18), example=outcomes(19), forced=outcomes(20), always=outcomes(19))
    assert (given.way, given.config, given.example) == ("xml", BACKEND, False)
    assert levels(given) == {"tool calls": "ok"}


@pytest.mark.parametrize(("more", "way"), [(GAIN, "example"), (GAIN - 1, "xml")])
def test_a_setting_has_to_be_clearly_better(more: int, way: str) -> None:
    given = advice(xml=outcomes(10), example=outcomes(10 + more))
    assert (given.way, given.example) == (way, way == "example")
    assert given.config.prompt_example == ("on" if way == "example" else "auto")


def test_constraining_can_be_the_best() -> None:
    given = advice(xml=outcomes(3), example=outcomes(5), always=outcomes(9))
    assert (given.way, given.config.constrain, given.config.prompt_example) == ("always", "always", "auto")
    assert given.example
    assert levels(given) == {"tool calls": "note"}


def test_a_native_server_is_left_to_itself_unless_the_prompt_is_better() -> None:
    same = advice(knows_tools=True, native=outcomes(17), auto=outcomes(17), xml=outcomes(18))
    better = advice(knows_tools=True, native=outcomes(0), auto=outcomes(8), xml=outcomes(18))
    assert (same.way, same.config.dispatcher) == ("auto", "auto")
    assert (better.way, better.config.dispatcher) == ("xml", "xml")


def test_of_a_server_that_nobody_knows_the_best_is_written_down() -> None:
    assert advice("unknown", xml=outcomes(18)).config.dispatcher == "xml"
    given = advice("unknown", native=outcomes(20), xml=outcomes(5))
    assert (given.way, given.config.dispatcher) == ("native", "native")


def test_a_model_that_calls_only_when_forced() -> None:
    given = advice(xml=outcomes(0), example=outcomes(0), forced=outcomes(12))
    assert (given.way, given.config, given.example) == (None, BACKEND, False)
    assert levels(given) == {"tool calls": "note"}
    assert "calls no tool; when it has to, 12 of 20 times" in given.findings[0].said


def test_a_model_that_seldom_calls_unless_forced() -> None:
    given = advice(xml=outcomes(3), forced=outcomes(15))
    assert (given.way, levels(given)) == ("xml", {"tool calls": "note"})
    assert "a tool 3 of 20 times; when it has to, 15 of 20" in given.findings[0].said
    assert "required" in given.findings[0].mend


def test_a_model_that_calls_and_is_wrong() -> None:
    wrong = [Outcome(f"p{number}", "c", True, True, number < 3) for number in range(20)]
    given = advice(xml=wrong, forced=outcomes(20))
    assert levels(given) == {"tool calls": "note"}
    assert "3 right replies of 20" in given.findings[0].said


def test_a_model_that_never_calls() -> None:
    given = advice(xml=outcomes(0), forced=outcomes(0))
    assert levels(given) == {"tool calls": "bad"}
    assert given.findings[0].mend
    assert given.example is None


def test_no_call_where_none_is_due_does_not_make_a_way_good() -> None:
    quiet = [Outcome("p", "no call", False, True, True)] * 5
    assert advice(xml=[*outcomes(0), *quiet]).way is None


def test_errors_and_cuts_are_told() -> None:
    failed = [Outcome("p", "c", True, error="out of memory")]
    given = advice(native=failed, xml=[*outcomes(18), *failed], forced=outcomes(18, cut=True))
    assert levels(given) == {"tool calls": "ok", "native": "note", "xml": "bad", "length": "note"}
    assert any("1 of 21 requests" in each.said and "out of memory" in each.said for each in given.findings)

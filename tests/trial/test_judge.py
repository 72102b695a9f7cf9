from __future__ import annotations

from typing import Any

import pytest

from proxy.trial.judge import Answer, Verdict, judge, matches
from proxy.trial.prompts import Call, Prompt


def tool(name: str, **properties: str) -> Any:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"type": "function", "function": {"name": name, "parameters": {**schema, "required": list(properties)}}}


TOOLS = (tool("weather", city="string"), tool("timer", minutes="integer"))
ROME = ("weather", '{"city": "Rome"}')
OSLO = ("weather", '{"city": "oslo"}')
NOTHING, VALID, RIGHT = Verdict(False, False), Verdict(True, False), Verdict(True, True)


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        ([ROME], RIGHT),
        ([("weather", '{"city": " ROME ", "unit": "C"}')], RIGHT),
        ([OSLO], VALID),
        ([("timer", '{"minutes": 5}')], VALID),
        ([ROME, ROME], VALID),
        ([], NOTHING),
        ([ROME, ("weather", "{}")], NOTHING),
        ([("weather", '{"city": 1}')], NOTHING),
        ([("weather", '{"city": "Rome"')], NOTHING),
        ([("weather", '"Rome"')], NOTHING),
        ([("forecast", '{"city": "Rome"}')], NOTHING),
    ],
)
def test_where_a_call_is_due(calls: list[tuple[str, str]], verdict: Verdict) -> None:
    prompt = Prompt("p", "c", TOOLS, (), (Call("weather", {"city": "Rome"}),))
    assert judge(prompt, Answer("Let me see.", calls)) == verdict


@pytest.mark.parametrize(("calls", "right"), [([ROME, OSLO], True), ([OSLO, ROME], True), ([ROME, ROME], False)])
def test_several_calls_may_come_in_any_order(calls: list[tuple[str, str]], right: bool) -> None:
    due = Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rome"})
    assert judge(Prompt("p", "c", TOOLS, (), due), Answer("", calls)).right is right


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer("It is in JAPAN."), RIGHT),
        (Answer("In China."), VALID),
        (Answer(" \n"), NOTHING),
        (Answer("Japan.", [ROME]), NOTHING),
        (Answer("Japan. <tool_call>{"), NOTHING),
        (Answer("Japan. <tool_result>"), NOTHING),
    ],
)
def test_where_none_is_due(answer: Answer, verdict: Verdict) -> None:
    assert judge(Prompt("p", "c", TOOLS, (), answer=("Nippon", "Japan")), answer) == verdict


def test_where_none_is_due_and_no_word_is_expected() -> None:
    assert judge(Prompt("p", "c", TOOLS, ()), Answer("You are welcome.")) == RIGHT


@pytest.mark.parametrize(
    ("expected", "given", "match"),
    [
        ("Rome", "rome\n", True),
        ("Rome", "Rome, Italy", False),
        ("Straße", "STRASSE", True),
        ("5", 5, False),
        (5, 5.0, True),
        (5, "5", False),
        (1, True, False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, [1], False),
        ({"a": {"b": "x"}}, {"a": {"b": "X"}}, True),
        (["a", {"b": 1}], ["A", {"b": 1, "c": 2}], True),
        (["a"], ["a", "b"], False),
        (["a"], "a", False),
        ({"$any": ["Munich", "München"]}, "münchen", True),
        ({"$any": ["Munich", 3]}, "Berlin", False),
        ({"$has": "late"}, "I am LATE.", True),
        ({"$has": "late"}, ["late"], False),
        ({"$any": [{"$has": "euro"}, "EUR"]}, "Euros", True),
    ],
)
def test_arguments_match(expected: Any, given: Any, match: bool) -> None:
    assert matches(expected, given) is match

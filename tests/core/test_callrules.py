from __future__ import annotations

from collections.abc import Iterable

from proxy.core.callrules import CallRules
from proxy.core.events import (
    Event,
    Problem,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)


def call(index: int, name: str, *arguments: str) -> list[Event]:
    return [
        ToolCallStart(index, f"id{index}", name),
        *(ToolArgumentsDelta(index, piece) for piece in arguments or ("{}",)),
        ToolCallEnd(index),
    ]


def run(rules: CallRules, events: Iterable[Event]) -> list[Event]:
    return [passed for event in events for passed in rules.take(event)]


def said(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_without_rules_all_passes() -> None:
    events = [ReasoningDelta("hm"), TextDelta("a"), *call(0, "x"), TextDelta("b"), *call(1, "y", "{", "}")]
    rules = CallRules()
    assert run(rules, events) == events
    assert rules.end() == []
    assert rules.calls == 2


def test_indices_have_no_gaps_whatever_comes_in() -> None:
    out = run(CallRules(), [*call(4, "x"), *call(0, "y")])
    assert [event.index for event in out if isinstance(event, ToolCallStart)] == [0, 1]
    assert [event.index for event in out if isinstance(event, ToolCallEnd)] == [0, 1]


def test_a_forced_call_lets_the_text_go_that_was_held_for_it() -> None:
    rules = CallRules(names=frozenset({"x"}), forced=True)
    assert run(rules, [TextDelta("let "), ReasoningDelta("hm"), TextDelta("me see")]) == [ReasoningDelta("hm")]
    assert run(rules, call(0, "x")) == [TextDelta("let "), TextDelta("me see"), *call(0, "x")]
    assert run(rules, [TextDelta("so")]) == [TextDelta("so")]
    assert rules.end() == []


def test_a_forced_call_that_never_comes_is_a_problem_before_the_text() -> None:
    rules = CallRules(names=frozenset({"x"}), forced=True)
    assert run(rules, [TextDelta("no")]) == []
    problem, text = rules.end()
    assert isinstance(problem, Problem)
    assert problem.kind == "missing_call"
    assert text == TextDelta("no")


def test_a_call_of_another_tool_is_text() -> None:
    rules = CallRules(names=frozenset({"x"}), forced=True)
    assert run(rules, [TextDelta("look:"), *call(0, "y", '{"a"', ": 1}"), TextDelta("there")]) == []
    out = run(rules, call(1, "x"))
    assert said(out) == 'look:\n<tool_call>{"name": "y", "arguments": {"a": 1}}</tool_call>\nthere'
    assert out[-3:] == [ToolCallStart(0, "id1", "x"), ToolArgumentsDelta(0, "{}"), ToolCallEnd(0)]
    assert rules.calls == 1


def test_calls_as_text_stand_on_lines_of_their_own() -> None:
    line = '<tool_call>{"name": "y", "arguments": {}}</tool_call>'
    assert said(run(CallRules(names=frozenset()), [*call(0, "y"), *call(1, "y")])) == f"{line}\n{line}"
    assert said(run(CallRules(names=frozenset()), [*call(0, "y"), TextDelta("\nthere")])) == f"{line}\nthere"


def test_a_single_call_ends_the_reply() -> None:
    rules = CallRules(single=True)
    assert run(rules, [TextDelta("a"), *call(0, "x"), TextDelta("b"), *call(1, "y")]) == [TextDelta("a"), *call(0, "x")]
    assert rules.satisfied
    assert rules.end() == []


def test_a_call_that_does_not_count_does_not_use_up_the_single_one() -> None:
    rules = CallRules(names=frozenset({"x"}), single=True)
    assert run(rules, [*call(0, "y"), *call(1, "x")])[-1] == ToolCallEnd(0)


def test_problems_follow_their_call() -> None:
    """Before the call, within it, about a call that became text, and about none that ever began."""
    rules = CallRules(names=frozenset({"x"}))
    problem = Problem("repaired", "mended", 7)
    start, arguments, end = call(7, "x")
    out = run(rules, [problem, start, problem, arguments, end])
    assert out[:3] == [Problem("repaired", "mended", 0), ToolCallStart(0, "id7", "x"), Problem("repaired", "mended", 0)]
    start, arguments, end = call(8, "y")
    nobody = Problem("repaired", "mended")
    assert run(rules, [problem, start, problem, arguments, end])[:2] == [nobody, nobody]
    assert run(rules, [problem]) == []
    assert rules.end() == [nobody]
    assert run(rules, [nobody]) == [nobody]

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.model import Tool
from proxy.core.parser import parse
from proxy.inspector.marks import Reading, marked
from proxy.testing import essence
from tests.support.reading import tool

REPLIES = Path(__file__).parents[2] / "fixtures" / "replies"
FIXTURE_TOOLS = tuple(
    Tool(name, parameters=parameters) for name, parameters in json.loads((REPLIES / "tools.json").read_text()).items()
)
FIXTURES = {path.stem: json.loads(path.read_text()) for path in sorted(REPLIES.glob("*.json")) if path.stem != "tools"}
WEATHER = Reading((tool("weather", city="string"), tool("time")))
ONE = '<tool_call>{"name": "weather", "arguments": {"city": "Chur"}}</tool_call>'
TWO = '<tool_call>{"name": "time", "arguments": {}}</tool_call>'


def shown(text: str, reading: Reading = WEATHER, finish: str = "stop") -> list[tuple[str, str]]:
    """The segments of ``text``."""
    return [(segment.kind, segment.text) for segment in marked(text, reading, finish)[0]]


def test_calls_are_marked_in_their_place() -> None:
    assert shown(f"<think>Hm.</think>\nLook: {ONE}\n{TWO} done") == [
        ("dropped", "<think>"),
        ("reasoning", "Hm."),
        ("dropped", "</think>\n"),
        ("text", "Look:"),
        ("dropped", " "),
        ("call", ONE),
        ("dropped", "\n"),
        ("call", TWO),
        ("text", " done"),
    ]


def test_closing_marks_before_a_call_are_no_part_of_it() -> None:
    assert shown(f"<think>Hm.</think>\n{ONE}") == [
        ("dropped", "<think>"),
        ("reasoning", "Hm."),
        ("dropped", "</think>\n"),
        ("call", ONE),
    ]


def test_a_call_tells_what_it_became() -> None:
    text = '<tool_call>{"name": "Weather", "arguments": {"city": "Chur",}}</tool_call>'
    (segment,), reply = marked(text, WEATHER)
    assert segment.calls == [("weather", '{"city": "Chur"}')]
    assert [problem.kind for problem in segment.problems] == ["repaired", "renamed"]
    assert reply.calls[0].name == "weather"


def test_several_calls_in_one_mark() -> None:
    text = '<tool_call>[{"name": "time"}, {"name": "weather", "arguments": {}}]</tool_call>'
    (segment,), _ = marked(text, WEATHER)
    assert [name for name, _ in segment.calls] == ["time", "weather"]


def test_what_shows_that_a_call_is_over_is_no_part_of_it() -> None:
    text = '<|python_tag|>{"name": "get_time", "parameters": {}}'
    assert shown(f"{text}<|eom_id|>", Reading(FIXTURE_TOOLS)) == [("call", text), ("dropped", "<|eom_id|>")]


def test_calls_that_were_not_closed() -> None:
    unclosed = '<tool_call>{"name": "time", "arguments": {}}'
    assert shown(f"{unclosed}\n{unclosed}") == [("call", f"{unclosed}\n"), ("call", unclosed)]


def test_what_the_model_made_up_is_dropped() -> None:
    text = f"{TWO}\n<tool_result>noon</tool_result> It is noon."
    assert shown(text)[0] == ("call", TWO)
    segments, _ = marked(text, WEATHER)
    assert {segment.kind for segment in segments[1:]} == {"dropped"}
    assert [problem.kind for segment in segments for problem in segment.problems] == ["fabricated_result"]


def test_what_cannot_be_read_is_text_with_the_reason() -> None:
    text = '<tool_call>{"name": "weather", "arguments": }{</tool_call>'
    segments, _ = marked(text, WEATHER)
    assert [(segment.kind, segment.text) for segment in segments] == [("text", text)]
    assert [problem.kind for problem in segments[0].problems] == ["unreadable"]


def test_a_problem_of_nothing_visible_is_told_all_the_same() -> None:
    segments, _ = marked('<tool_call>{"name": "wea', WEATHER, "length")
    assert [(segment.kind, [problem.kind for problem in segment.problems]) for segment in segments] == [
        ("dropped", ["cut"])
    ]


def test_without_tools_nothing_is_a_call() -> None:
    assert shown(ONE, Reading()) == [("text", ONE)]


def test_nothing() -> None:
    assert shown("") == []


@pytest.mark.parametrize("fixture", FIXTURES.values(), ids=FIXTURES)
def test_every_fixture_is_all_there(fixture: dict[str, Any]) -> None:
    reading = Reading(FIXTURE_TOOLS, fixture["dialect"], starts_in_reasoning=fixture.get("starts_in_reasoning", False))
    segments, reply = marked(fixture["text"], reading)
    assert "".join(segment.text for segment in segments) == fixture["text"]
    calls = [call for segment in segments for call in segment.calls]
    assert calls == [(call.name, call.arguments) for call in reply.calls]
    for segment in segments:
        assert (segment.kind == "call") == bool(segment.calls)
        assert segment.text.strip() or segment.kind in ("dropped", "text", "reasoning")


MARKS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_result>", "</x>", "```", "`", "<")
PIECES = (*MARKS, ONE, TWO, '{"name": "time"}', "[time()]", "\n", " ", "a", "\ud800")


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(["stop", "length", "error"]))
def test_the_segments_are_the_text_and_the_reading_is_the_parsers(text: str, finish: str) -> None:
    segments, reply = marked(text, WEATHER, finish)
    assert "".join(segment.text for segment in segments) == text
    problems = [problem for segment in segments for problem in segment.problems]
    assert len(problems) == len(reply.problems)
    whole = parse(text, WEATHER.tools, finish_reason=finish)
    if not any(problem.kind == "late_reasoning" for problem in (*whole.problems, *reply.problems)):
        assert essence(reply) == essence(whole)

"""Every row of the dialect table by its fixtures: real ways of writing, read whole and cut anywhere."""

from __future__ import annotations

import pytest

from proxy.core.dialects import DIALECTS, OWN
from proxy.core.grammar import AUTO, grammar
from proxy.core.parser import parse
from proxy.core.protocol import RESULT_MARKS
from tests.support.reading import read_every_way, tool
from tests.support.replies import REPLIES, TOOLS, Fixture, check

SHARED = grammar().openers.marks - grammar().foreign  # openers of our own protocol and its kin
FOREIGN = [
    fixture
    for fixture in REPLIES.values()
    if fixture.get("auto", True) and not any(opener in fixture["text"] for opener in SHARED)
]

WAYS = [
    pytest.param(fixture, dialect, id=f"{name}-{'auto' if dialect == AUTO else 'pinned'}")
    for name, fixture in REPLIES.items()
    for dialect, wanted in ((AUTO, fixture.get("auto", True)), (fixture["dialect"], fixture.get("pinned", True)))
    if wanted
]


@pytest.mark.parametrize(("fixture", "dialect"), WAYS)
def test_reply(fixture: Fixture, dialect: str) -> None:
    check(fixture, dialect)


def test_every_form_has_a_fixture() -> None:
    for row in DIALECTS:
        texts = [fixture["text"] for fixture in REPLIES.values() if fixture["dialect"] == row.name]
        for form in row.forms:
            assert any(form.opener in text for text in texts), (row.name, form.opener)
        for pair in row.reasoning:
            assert any(pair.opener in text and pair.closer in text for text in texts) or pair.opener in OWN_SPELLINGS


OWN_SPELLINGS = ("<thinking>", "<thought>")
"""Other spellings of ``<think>``: read alike, and tested with the reader."""


def test_every_fixture_belongs_to_a_row_and_says_who_writes_so() -> None:
    names = {row.name for row in DIALECTS}
    for fixture in REPLIES.values():
        assert fixture["dialect"] in names
        assert fixture["model"]


def test_rows_are_told_apart_and_sourced() -> None:
    names = [row.name for row in DIALECTS]
    assert len(set(names)) == len(names)
    assert AUTO not in names
    assert set(names) >= OWN
    assert all(row.source for row in DIALECTS)


@pytest.mark.parametrize("opener", sorted(grammar().openers.marks))
def test_an_opener_that_is_talked_about_is_text(opener: str) -> None:
    for text in (f"Such a call begins with {opener} and goes on.", f"It is called `{opener}`.", f"Write {opener}"):
        reply = read_every_way(text, TOOLS)
        assert (reply.content, reply.calls) == (text.strip(), ())


@pytest.mark.parametrize("fixture", FOREIGN)
def test_the_calls_of_other_families_name_a_declared_tool(fixture: Fixture) -> None:
    assert parse(fixture["text"], [tool("other", x="string")]).calls == ()


def test_the_calls_of_other_families_are_valid_unless_their_row_was_asked_for() -> None:
    text = '[TOOL_CALLS]get_weather[ARGS]{"days": 1}'
    assert parse(text, TOOLS).calls == ()
    assert parse(text, TOOLS).content == text
    assert [call.name for call in parse(text, TOOLS, dialect="mistral").calls] == ["get_weather"]
    assert [call.name for call in parse(text, TOOLS, model="mistral-small3.2").calls] == ["get_weather"]


def test_tags_like_no_others_make_a_call_of_any_tool() -> None:
    text = "<tool_call>look<arg_key>at</arg_key><arg_value>it</arg_value></tool_call>"
    assert [call.name for call in read_every_way(text, TOOLS).calls] == ["look"]
    assert read_every_way("<tool_call>look</tool_call>", TOOLS).calls == ()


def test_a_section_around_no_call_is_text() -> None:
    assert parse("<tool_calls> are listed here", TOOLS).content == "<tool_calls> are listed here"


def test_a_closer_of_another_family_is_dropped_only_behind_a_call() -> None:
    assert read_every_way("an </invoke> alone", TOOLS).content == "an </invoke> alone"
    text = '<invoke name="get_time">\n</invoke>\n</function_calls>'
    assert read_every_way(text, TOOLS).content == ""


@pytest.mark.parametrize("name", [row.name for row in DIALECTS])
def test_reasoning_and_the_ends_of_turns_are_read_in_every_row(name: str) -> None:
    reply = read_every_way("<think>Hm.</think>Noon.<|im_end|>", TOOLS, dialect=name)
    assert (reply.reasoning, reply.content) == ("Hm.", "Noon.")


@pytest.mark.parametrize("mark", sorted(grammar().terminators))
def test_the_end_of_a_turn_is_dropped_in_every_row(mark: str) -> None:
    for name in (AUTO, *(row.name for row in DIALECTS)):
        reply = parse(f"Noon.{mark}", TOOLS, dialect=name)
        assert (reply.content, reply.reasoning) == ("Noon.", "")


def test_headings_are_dropped_where_no_call_may_be_read() -> None:
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Noon.<|return|>"
    reply = read_every_way(text, read_calls=False)
    assert (reply.reasoning, reply.content) == ("Hm.", "Noon.")


def test_a_heading_in_code_is_text() -> None:
    text = "It looks like this:\n```\n<|channel|>final<|message|>Noon.\n```\nor `<|channel|>final<|message|>`."
    assert read_every_way(text, TOOLS).content == text


def test_a_reply_cut_in_a_header_shows_nothing_of_it() -> None:
    text = "<|channel|>final<|message|>Noon.<|end|><|start|>assistant to=functions.get_time<|channel|>comm"
    reply = read_every_way(text, TOOLS, finish_reason="length")
    assert (reply.content, reply.calls, reply.finish) == ("Noon.", (), "length")
    assert [problem.kind for problem in reply.problems] == ["cut"]
    assert read_every_way(text, TOOLS).content.endswith("to=functions.get_time<|channel|>comm")


def test_results_do_not_look_like_calls() -> None:
    openers = grammar().openers
    assert not any(openers.at(mark, 0) for mark in RESULT_MARKS)

"""The dialect table turned over: marks of all rows, of one row, and what is merged."""

from __future__ import annotations

import pytest

from proxy.core.dialects import DIALECTS, OWN
from proxy.core.forms import Dialect, Heading
from proxy.core.grammar import families, grammar


def test_auto_holds_every_row_that_may_be_tried() -> None:
    table = grammar()
    for row in DIALECTS:
        for form in row.forms:
            assert form.opener in table.forms or not row.auto


@pytest.mark.parametrize("row", DIALECTS, ids=[row.name for row in DIALECTS])
def test_a_pinned_row_holds_its_own_forms_alone(row: Dialect) -> None:
    table = grammar(row.name)
    assert set(table.forms) == {form.opener for form in row.forms}
    assert table.foreign == frozenset()
    assert set(row.terminators) <= table.terminators
    assert {pair.closer for pair in row.reasoning} <= table.think_closers.marks


def test_an_unknown_row_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown dialect 'klingon'.*auto.*hermes"):
        grammar("klingon")


def test_rows_that_share_an_opener_become_one_form() -> None:
    headings = [body for body in grammar().forms["<|start|>"].bodies if isinstance(body, Heading)]
    assert len({heading.closers for heading in headings}) == 3  # two families' reasoning, and answers
    assert len(headings) == len(set(headings))


def test_only_calls_of_other_families_are_foreign() -> None:
    table = grammar()
    own = {form.opener for row in DIALECTS if row.name in OWN for form in row.forms}
    assert own.isdisjoint(table.foreign)
    assert "[TOOL_CALLS]" in table.foreign
    assert "</tool_call>" in table.stray_closers
    assert "</invoke>" in table.late_closers
    assert table.stray_closers.isdisjoint(table.late_closers)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("mistralai/Devstral-Small-2507", {"mistral"}),
        ("llama3.1:8b", {"llama3"}),
        ("meta-llama/Llama-3.2-3B-Instruct", {"llama3", "pythonic"}),
        ("openai/gpt-oss:120b", {"harmony"}),
        ("granite3.3:2b", {"granite", "granite-3.2"}),
        ("Qwen/Qwen3-8B", set()),  # writes as the protocol does
        ("gpt-4o", set()),
        ("commandline", set()),
        ("", set()),
    ],
)
def test_the_name_of_a_model_tells_its_family(model: str, rows: set[str]) -> None:
    assert families(model) == rows


def test_the_rows_of_a_known_family_are_its_own() -> None:
    table = grammar(model="Mistral-7B")
    assert "[TOOL_CALLS]" not in table.foreign
    assert "<|python_tag|>" in table.foreign
    assert not grammar(model="llama3.1").bare  # a bare call among text is believed of a row that was asked for alone
    assert "Here is my thought process:" in grammar(model="granite-3.2").closers_of
    assert grammar("llama3", "Mistral-7B") is grammar("llama3")


def test_the_name_of_a_model_may_be_anything() -> None:
    assert grammar(model="x" * 10_000_000 + "mistral") is grammar()


def test_openers_that_are_words_count_at_the_head_alone() -> None:
    table = grammar()
    assert "functools" in table.heads.marks
    assert table.heads.marks.isdisjoint(table.openers.marks)
    assert table.heads.marks.isdisjoint(table.marks.marks)


def test_a_mark_that_also_ends_reasoning_tells_nothing_alone() -> None:
    table = grammar()
    assert "<|end_message|>" in table.think_closers.marks
    assert "<|end_message|>" not in table.lone_closers
    assert "</think>" in table.lone_closers


def test_without_calls_only_headings_open_anything() -> None:
    table = grammar()
    assert "<|start|>" in table.plain_marks.marks
    assert "<tool_call>" not in table.plain_marks.marks

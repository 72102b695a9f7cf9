"""The notation: what is written means what it should, read back by an independent reader."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends import gbnf
from tests.support.gbnf import Grammar

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def grammar(expression: str, **rules: str) -> Grammar:
    return Grammar(gbnf.write({"root": expression, **rules}, {}))


@given(ANY_TEXT, ANY_TEXT)
def test_a_literal_is_exactly_its_text(text: str, other: str) -> None:
    written = grammar(gbnf.literal(text))
    assert written.matches(text)
    assert written.matches(other) == (text == other)


@given(st.lists(ANY_TEXT, min_size=1, max_size=8), ANY_TEXT)
def test_one_of_some_texts_is_each_of_them_and_no_other(texts: list[str], other: str) -> None:
    written = grammar(gbnf.one_of(dict.fromkeys(texts, "")))
    assert all(written.matches(text) for text in texts)
    assert written.matches(other) == (other in texts)


def test_one_of_some_texts_goes_on_with_what_belongs_to_each() -> None:
    written = grammar(gbnf.one_of({"get_a": '"1"', "get_b": '"2"', "get": '"3"'}))
    assert [text for text in ("get_a1", "get_b2", "get3", "get_a2", "get1", "get_a") if written.matches(text)] == [
        "get_a1",
        "get_b2",
        "get3",
    ]


def test_texts_that_begin_alike_leave_few_alternatives_open() -> None:
    expression = gbnf.one_of({f"option number {i}": "" for i in range(1000)})
    assert expression.count("option number") == 1
    assert len(expression) < 20_000


def test_texts_within_texts_are_not_nested_without_end() -> None:
    expression = gbnf.one_of({"a" * n: "" for n in range(1, 100)})
    deepest = max(expression[:at].count("(") - expression[:at].count(")") for at in range(len(expression)))
    assert deepest < 40
    assert grammar(expression).matches("a" * 99)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 1), (0, 3), (2, 2), (2, 4)])
def test_repetitions_are_counted(low: int, high: int) -> None:
    written = grammar(f'"[" {gbnf.repeat("x", low, high)} "]"', x='"x"')
    assert [n for n in range(6) if written.matches(f"[{'x' * n}]")] == list(range(low, high + 1))


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (1, 1), (0, 3), (2, 2), (2, 4)])
def test_items_are_separated_and_counted(low: int, high: int) -> None:
    written = grammar(f'"[" {gbnf.separated("x", low, high)} "]"', x='"x"')
    assert [n for n in range(6) if written.matches(f"[{', '.join('x' * n)}]")] == list(range(low, high + 1))


@given(st.text("<>/abx", max_size=12), st.sampled_from(["</a>", "<ab>", "ax"]))
def test_without_a_marker_is_every_text_that_does_not_hold_it(text: str, marker: str) -> None:
    written = Grammar(gbnf.write({"root": "free", **gbnf.without(marker, "free")}, {}))
    for candidate in (text, text + marker, marker + text, text + marker[:-1]):
        assert written.matches(candidate) == (marker not in candidate)


def test_only_the_rules_that_are_needed_are_written_root_first() -> None:
    text = gbnf.write({"a": 'b "c"', "root": "a", "unused": '"u"'}, {"b": r'"\"c [d]"', "c": '"c"'})
    assert text == 'root ::= a\na ::= b "c"\nb ::= "\\"c [d]"\n'


def test_the_cost_counts_repetitions_written_out() -> None:
    assert gbnf.cost('a{0,500} [^{9}] "{9}" b{3}') == len('a{0,500} [^{9}] "{9}" b{3}') + 503


@given(st.integers(0, 2**32))
def test_the_reader_of_these_tests_matches_what_it_makes(seed: int) -> None:
    written = grammar('a{1,3} ("x" | [^a-c"] b)? b*', a='"<" (a | [0-9]) ">"', b='"b" | "bb"')
    text = written.sample(random.Random(seed))
    assert written.matches(text)
    assert not written.matches(text + "\x00")


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "a',
        "root ::= (a",
        "root ::= missing",
        'a ::= "a"',
        'root ::= "a"{2000}',
        'root ::= ("a"{50} "b"){40}',
        'root ::= "a"{3,2}',
        'root ::= root "a"',
        'root ::= "x"? a\na ::= root',
        'root_2 ::= "a"',
        r'root ::= "\q"',
    ],
)
def test_the_reader_of_these_tests_refuses_what_llama_cpp_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Grammar(text)


def test_every_printable_character_survives_in_a_literal_and_a_class() -> None:
    for char in string.printable:
        assert grammar(gbnf.literal(char)).matches(char)
        assert grammar(f"[{gbnf.inside_class(char)}]").matches(char)
        assert not grammar(f"[^{gbnf.inside_class(char)}]").matches(char)

"""The name itself, then the most specific pattern, then the first."""

from __future__ import annotations

import pytest

from proxy.backends.patterns import Patterns, is_pattern

TABLE = Patterns(
    [
        ("*", "any"),
        ("qwen*", "qwen"),
        ("qwen3-*", "qwen3"),
        ("qwen3-??b", "qwen3 of two digits"),
        ("*coder*", "coder"),
        ("[gl]pt-*", "gpt or lpt"),
        ("qwen3-8b", "that one"),
        ("qwen3-8b", "too late"),
        ("llama/*", "llama"),
        ("*llama", "other llama"),
    ]
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("qwen3-8b", "that one"),
        ("qwen3-80b", "qwen3 of two digits"),
        ("qwen3-8b-instruct", "qwen3"),
        ("qwen3-coder", "qwen3"),
        ("qwen2-coder", "coder"),
        ("qwen", "qwen"),
        ("Qwen", "any"),
        ("lpt-2", "gpt or lpt"),
        ("llama/x", "llama"),
        ("llama/llama", "llama"),
        ("a\nb", "any"),
        ("", "any"),
    ],
)
def test_what_speaks_for_a_name(name: str, value: str) -> None:
    assert TABLE.find(name) == value


def test_a_pattern_fits_the_whole_name_or_not_at_all() -> None:
    table = Patterns([("b*", 1), ("a.c", 2)])
    assert table.find("ab") is None
    assert table.find("abc") is None
    assert table.find("a.c") == 2


def test_a_name_made_to_be_slow_is_not() -> None:
    assert Patterns([("*a*a*a*a*a*a*a*b", 1)]).find("a" * 2_000) is None


@pytest.mark.parametrize(("text", "answer"), [("a-b.c/d:e", False), ("a*", True), ("a?", True), ("[ab]", True)])
def test_what_is_a_pattern(text: str, answer: bool) -> None:
    assert is_pattern(text) is answer

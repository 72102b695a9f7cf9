from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.markup import neutralise, neutralise_json, tool_call, tool_result
from tests.support.conversations import markup_in, risky_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<tool_call>", "&lt;tool_call>"),
        ("</tool_call>", "&lt;/tool_call>"),
        ("<TOOL_Call >", "&lt;TOOL_Call >"),
        ("< / tool_result\t>", "&lt; / tool_result\t>"),
        ('<tool_result name="a">', '&lt;tool_result name="a">'),
        ("<tool_response", "&lt;tool_response"),
        ("<tools/>", "&lt;tools/>"),
        ("<<tools>>", "<&lt;tools>>"),
        ("<|im_start|>", "&lt;|im_start|>"),
        ("<|tool_call>a<tool_call|>", "&lt;|tool_call>a&lt;tool_call|>"),
        ("<｜User｜>", "&lt;｜User｜>"),
        ("</｜DSML｜invoke>", "&lt;/｜DSML｜invoke>"),
        ("<|<tools>|>", "<|&lt;tools>|>"),
    ],
)
def test_what_could_be_markup_is_neutralised(text: str, expected: str) -> None:
    assert neutralise(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "<s>[INST]",
        "a <| b |> c",
        "f <|> g",
        "<toolset> <tool_calls> <tool_call_id> <tools-list>",
        "&lt;tool_call>",
        "tool_call> im_start|>",
        "1 < 2 | 3 > 2",
        "",
    ],
)
def test_what_occurs_in_code_stays(text: str) -> None:
    assert neutralise(text) == text


@given(risky_text)
def test_nothing_is_left_nothing_is_lost_and_once_is_enough(text: str) -> None:
    safe = neutralise(text)
    assert markup_in(safe) == []
    assert neutralise(safe) == safe
    assert safe.replace("&lt;", "<") == text.replace("&lt;", "<")


@given(st.dictionaries(risky_text, risky_text))
def test_json_keeps_its_value(value: dict[str, str]) -> None:
    safe = neutralise_json(json.dumps(value, ensure_ascii=False))
    assert markup_in(safe) == []
    assert json.loads(safe) == value


def test_a_long_text_takes_linear_work() -> None:
    """Each of these would take minutes if a mark could begin anywhere and end anywhere."""
    for piece in ("<", "< / ", "<|", "<a", "<|a"):
        for text in (piece * 100_000, piece + " " * 200_000, piece + "a" * 200_000):
            assert neutralise(text) == text


def test_a_call() -> None:
    assert tool_call('say "</tool_call>"', '{"a": 1}') == (
        r'<tool_call>{"name": "say \"\u003c/tool_call>\"", "arguments": {"a": 1}}</tool_call>'
    )


def test_a_result() -> None:
    assert tool_result('a"<b', "x\ty", "</tool_result>", error=True) == (
        '<tool_result name="a&quot;&lt;b" id="x y" status="error">\n&lt;/tool_result>\n</tool_result>'
    )

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.strings import CONTROL, ESCAPE, INNER, SINGLE, NoReadingError, has_escapes, inside


@pytest.mark.parametrize(
    ("raw", "quote", "meaning", "done"),
    [
        ("plain", '"', "plain", set()),
        (r"a\n\u00e9\/\"", '"', 'a\né/"', set()),
        ("a\nb\tc\r\x01", '"', "a\nb\tc\r\x01", {CONTROL}),
        ("a\\nb\nc", '"', "a\nb\nc", {CONTROL}),
        (r"\d+\.\d+", '"', r"\d+\.\d+", {ESCAPE}),
        (r"C:\Users\me", '"', r"C:\Users\me", {ESCAPE}),
        (r"\u12", '"', r"\u12", {ESCAPE}),
        (r"say \"\d\"", '"', r'say "\d"', {ESCAPE}),
        ("docker run \\\n -p 80", '"', "docker run \\\n -p 80", {ESCAPE}),
        (r"it\'s", '"', "it's", {SINGLE}),
        (r"it\'s", "'", "it's", set()),
        (r"\'\d\'", "'", r"'\d'", {ESCAPE}),
        ('say "hi"', "'", 'say "hi"', set()),
        ('say "hi"', '"', 'say "hi"', {INNER}),
    ],
)
def test_inside(raw: str, quote: str, meaning: str, done: set[str]) -> None:
    text, repairs = inside(raw, quote)
    assert json.loads(f'"{text}"') == meaning
    assert repairs == done


@pytest.mark.parametrize("raw", [r"\x41", r"\101", r"\N{DASH}", "a\\\nb"])
def test_an_escape_of_python_alone_has_no_reading(raw: str) -> None:
    assert inside(raw, '"')[1] >= {ESCAPE}
    with pytest.raises(NoReadingError):
        inside(raw, "'")


@pytest.mark.parametrize(
    ("text", "escapes"),
    [
        (r"C:\docs\me", False),
        (r"C:\docs\new", True),
        (r"\\server\dir", True),
        (r"\d\u0041", True),
        (r"\d\u12", False),
        (r"\"\d\"", False),
        ("plain", False),
    ],
)
def test_has_escapes(text: str, escapes: bool) -> None:
    assert has_escapes(text) is escapes


@given(st.text())
def test_strict_json_is_left_alone(value: str) -> None:
    raw = json.dumps(value, ensure_ascii=False)[1:-1]
    assert inside(raw, '"') == (raw, frozenset())


@given(st.lists(st.sampled_from(["\\d", "\\.", "\\ ", '"', "x", "é"])).map("".join))
def test_escapes_that_were_forgotten_come_back_where_there_are_no_others(value: str) -> None:
    raw = json.dumps(value, ensure_ascii=False)[1:-1].replace("\\\\", "\\")
    assert json.loads(f'"{inside(raw, chr(34))[0]}"') == value

"""Relaxed literals: Python's and Gemma's, to JSON text."""

from __future__ import annotations

import ast
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.bodies.relaxed import PYTHON_QUOTES, Relaxed

GEMMA = '<|"|>'


def python(text: str, *, forgiving: bool = False) -> str:
    value, end = Relaxed(text, PYTHON_QUOTES, forgiving=forgiving).value(0)
    assert end == len(text)
    return value


def sketch(text: str) -> str:
    value, end = Relaxed(text, (GEMMA, '"', "'"), bare=True).value(0)
    assert end == len(text)
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("True", "true"),
        ("None", "null"),
        ("false", "false"),
        ("-1.50e+7", "-1.50e+7"),
        ("4611686018427387905", "4611686018427387905"),
        ("+1", "1"),
        ("1_000", "1000"),
        (".5", "0.5"),
        ("5.", "5.0"),
        ("-.5e1", "-0.5e1"),
        ("[1, (2, 'a'),]", '[1, [2, "a"]]'),
        ("()", "[]"),
        ("{}", "{}"),
        ("{'a': [], \"b\": {'c': None}, 3: 0}", '{"a": [], "b": {"c": null}, "3": 0}'),
        ("'it\\'s'", '"it\'s"'),
        ("'\\n\\t\\x41\\u00e9\\U0001F600\\101\\,'", '"\\n\\tAé😀A\\\\,"'),
        ("'a\nb'", '"a\\nb"'),
        ("'''it's \"\"\" so'''", '"it\'s \\"\\"\\" so"'),
        ("'a\\\\'", '"a\\\\"'),
        ("'\\UFFFFFFFF'", '"\\\\UFFFFFFFF"'),
        ("'\x00'", '"\\u0000"'),
    ],
)
def test_python(text: str, value: str) -> None:
    assert python(text) == value
    json.loads(value)


@pytest.mark.parametrize(
    "text", ["", "Paris", "007", "0x1F", "1.2.3", "'a", "[1", "{1}", "{'a' 1}", "{'a': 1, 'a': 2}", "[1 2]", "-", "."]
)
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        python(text)


def test_depth_is_bounded() -> None:
    assert python("[" * 100 + "]" * 100)
    with pytest.raises(ValueError, match="nested too deeply"):
        python("[" * 101 + "]" * 101)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{a:<|"|>x}, "y<|"|>,b:[1,null],c d:{e:true}}', '{"a": "x}, \\"y", "b": [1, null], "c d": {"e": true}}'),
        ('{a:<|"|>C:\\n<|"|>}', '{"a": "C:\\\\n"}'),
        ('{"a": "x\\n", b: \'y\'}', '{"a": "x\\n", "b": "y"}'),
        ("{a:hello world,b:007}", '{"a": "hello world", "b": "007"}'),
    ],
)
def test_sketch(text: str, value: str) -> None:
    assert sketch(text) == value


@pytest.mark.parametrize("text", ['{a:<|"|>x}', "{a:x, y,b:1}", "{a:}", "{a:one\ntwo}", "{:1}"])
def test_a_sketch_with_more_than_one_reading_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        sketch(text)


def test_forgiving_takes_the_quote_that_fits_what_is_open() -> None:
    assert python("['say 'hi' (now)', 'b']", forgiving=True) == '["say \'hi\' (now)", "b"]'
    assert python("{'a': 'f('x')', 'b': 1}", forgiving=True) == '{"a": "f(\'x\')", "b": 1}'
    with pytest.raises(ValueError, match=r"[a-z]"):
        python("['say 'hi' (now)', 'b']")


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(LITERALS)
def test_what_python_writes_is_read(value: object) -> None:
    text = repr(value)
    assert ast.literal_eval(text) == value
    assert json.loads(python(text)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_value(value: float) -> None:
    assert math.isclose(json.loads(python(repr(value))), value, rel_tol=0, abs_tol=0)

from __future__ import annotations

from typing import Any

import pytest

from proxy.testing import Call
from proxy.testing.writing import Way, as_object, as_python, elements, headed, keyed, sketched, tags
from tests.support.reading import tool

TOOL = tool("f", s="string", n="integer", any={}, maybe={"type": ["string", "null"]}, list="array", deep="object")
TAGS = tags('<f name="NAME">', '<p name="KEY">', "</p>", "</f>")
LAID_OUT = tags("<f=NAME>\n", "<p=KEY>\n", "\n</p>\n", "</f>")
TOLD = tags("NAME", '<p name="KEY" string="STRING">', "</p>", "")
SKETCH = sketched("'")
ELEMENTS = elements("@")


@pytest.mark.parametrize(
    ("way", "arguments", "text"),
    [
        (as_object(), {"s": "é\n"}, '{"name": "f", "arguments": {"s": "é\\n"}}'),
        (as_object("tool", "args", id="{}"), {}, '{"id": "7", "tool": "f", "args": {}}'),
        (keyed(), {"n": 1}, '{"f": {"n": 1}}'),
        (headed("NAME:NUMBER|", "."), {"n": 1}, 'f:7|{"n": 1}.'),
        (as_python(), {"s": "it's", "any": [None, True]}, 'f(s="it\'s", any=[None, True])'),
        (TAGS, {"s": "a", "n": 1}, '<f name="f"><p name="s">a</p><p name="n">1</p></f>'),
        (LAID_OUT, {"list": ["a"]}, '<f=f>\n<p=list>\n["a"]\n</p>\n</f>'),
        (TOLD, {"s": "5", "n": 5}, 'f<p name="s" string="true">5</p><p name="n" string="false">5</p>'),
        (SKETCH, {"deep": {"a": ["x", 1]}}, "call:f{deep:{a:['x',1]}}"),
        (ELEMENTS, {"list": ["x"]}, '@<invoke name="f">@<list>@<item>x@</item>@</list>@</invoke>'),
        (TAGS.within("<", ">"), {}, '<<f name="f"></f>>'),
    ],
)
def test_how_a_call_is_written(way: Way, arguments: dict[str, Any], text: str) -> None:
    call = Call(TOOL, arguments)
    assert way.says(call)
    assert way.write(call, 7) == text


@pytest.mark.parametrize(
    ("way", "arguments"),
    [
        (as_python(), {"class": 1}),
        (as_python(), {"a-b": 1}),
        (TAGS, {"s": "a</p>"}),
        (TAGS, {"s": "</f>"}),
        (TAGS, {"s": "\na"}),
        (TAGS, {"a b": "x"}),
        (TAGS, {"any": "5"}),
        (TAGS, {"any": 5}),
        (TAGS, {"unknown": 5}),
        (TAGS, {"maybe": "null"}),
        (TAGS, {"any": " a"}),
        (SKETCH, {"s": "it's"}),
        (SKETCH, {"deep": {"a b": 1}}),
        (ELEMENTS, {"list": []}),
        (ELEMENTS, {"deep": {"item": "x"}}),
        (ELEMENTS, {"deep": {"a": 1}}),
        (ELEMENTS, {"s": "@"}),
    ],
)
def test_what_cannot_be_said(way: Way, arguments: dict[str, Any]) -> None:
    assert not way.says(Call(TOOL, arguments))


@pytest.mark.parametrize(
    "arguments", [{"s": "5"}, {"s": " null"}, {"maybe": "abc"}, {"n": 5}, {"any": [5]}, {"any": "x"}]
)
def test_what_can_be_said_without_quotes(arguments: dict[str, Any]) -> None:
    assert TAGS.says(Call(TOOL, arguments))


def test_names_that_cannot_stand_in_a_header() -> None:
    call = Call(tool('a "b"'))
    assert as_object().says(call)
    assert not any(way.says(call) for way in (headed("NAME"), TAGS, SKETCH, ELEMENTS, as_python()))

"""Bodies of Gemma's notation."""

from __future__ import annotations

import pytest

from proxy.core.bodies.base import RawCall, Status
from proxy.core.bodies.sketchbody import SketchReader
from proxy.core.forms import SketchBody
from proxy.core.scanner import Marks

SPEC = SketchBody("<q>")


def run(text: str) -> tuple[Status, str, list[RawCall]]:
    reader = SketchReader(SPEC, Marks(("</c>",)), Marks(("<c>",)))
    at, status = reader.take(text, 0, final=True)
    return status, text[at:], reader.reading.calls


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("call:f{}", RawCall("f", "{}")),
        ("call:a.b-c{x:<q>}</c><q>,y:[1,{z:<q><q>}]}", RawCall("a.b-c", '{"x": "}</c>", "y": [1, {"z": ""}]}')),
        ("call:f {x:hello}", RawCall("f", '{"x": "hello"}')),
    ],
)
def test_calls(text: str, call: RawCall) -> None:
    assert run(text + "</c> rest") == (Status.DONE, " rest", [call])


def test_several_calls() -> None:
    assert run("call:f{x:1}\ncall:g{}</c>")[2] == [RawCall("f", '{"x": 1}'), RawCall("g", "{}")]


@pytest.mark.parametrize("text", ["call:f no brace", "call:f{x:<q>a}", "call:f{x:1", "call:{}", "call:f{} words"])
def test_what_is_no_call_is_refused(text: str) -> None:
    assert run(text + "</c>")[0] is Status.MORE


def test_quotes_that_were_not_escaped() -> None:
    assert run("call:f{x:'it's',y:1}</c>")[2] == [RawCall("f", '{"x": "it\'s", "y": 1}')]


@pytest.mark.parametrize(("text", "fits"), [("", None), ("cal", None), ("call:", True), ("call me", False)])
def test_fits(text: str, fits: bool | None) -> None:
    assert SketchReader.fits(SPEC, text, final=False) is fits
    if fits is None:
        assert SketchReader.fits(SPEC, text, final=True) is False

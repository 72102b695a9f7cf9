"""Bodies of Python calls."""

from __future__ import annotations

import pytest

from proxy.core.bodies.base import RawCall, Status
from proxy.core.bodies.pythonbody import PythonReader
from proxy.core.notations import PYTHON
from proxy.core.scanner import Marks

END = Marks(("</p>",))
NONE = Marks(())


def run(text: str, closers: Marks = END) -> tuple[Status, str, list[RawCall]]:
    reader = PythonReader(PYTHON, closers, NONE)
    at, status = reader.take(text, 0, final=True)
    return status, text[at:], reader.reading.calls


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[f()]", [("f", "{}")]),
        (" [ f ( a = 1 , ) ] ", [("f", '{"a": 1}')]),
        ("f(a='x')\ng()", [("f", '{"a": "x"}'), ("g", "{}")]),
        ("f(); g(b=[1])", [("f", "{}"), ("g", '{"b": [1]}')]),
        ("[ns.f-x(a={'b': (1, 2)}), g()]", [("ns.f-x", '{"a": {"b": [1, 2]}}'), ("g", "{}")]),
        ('f({"a": 1})', [("f", '{"a": 1}')]),
        ("f(a='</p>')", [("f", '{"a": "</p>"}')]),
    ],
)
def test_calls(text: str, calls: list[tuple[str, str]]) -> None:
    status, rest, found = run(text + "</p> rest")
    assert (status, rest) == (Status.DONE, " rest")
    assert [(call.name, call.arguments) for call in found] == calls
    assert not any(call.repairs for call in found)


@pytest.mark.parametrize(
    "text",
    ["f(1)", "f('x', a=1)", "f(a=1, a=2)", "f(a=b)", "f(a=1", "[f(a=1)", "f(a==1)", "f() and words", "f({'a': 1}, {})"],
)
def test_what_is_no_list_of_calls_is_refused(text: str) -> None:
    assert run(text + "</p>")[0] is Status.MORE


def test_a_list_in_brackets_needs_no_closer() -> None:
    assert run("[f(a=')]'), g()] rest", NONE)[:2] == (Status.DONE, " rest")
    assert run("[f(a=1), g() ]", NONE)[:2] == (Status.DONE, "")


def test_quotes_that_were_not_escaped() -> None:
    status, _, (call,) = run("[run(code='print(max(x, key='k'))', n=1)]</p>")
    assert status is Status.DONE
    assert call.arguments == '{"code": "print(max(x, key=\'k\'))", "n": 1}'
    assert call.repairs == ("quotes inside a string were not escaped",)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", None),
        ("[", None),
        ("get_w", None),
        ("[ get_weather ", None),
        ("get(", True),
        ("[ get (", True),
        ("[1", False),
        ("not a call", False),
        ("{", False),
    ],
)
def test_fits(text: str, fits: bool | None) -> None:
    assert PythonReader.fits(PYTHON, text, final=False) is fits
    if fits is None:
        assert PythonReader.fits(PYTHON, text, final=True) is False

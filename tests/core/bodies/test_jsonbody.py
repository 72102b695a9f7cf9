from __future__ import annotations

import re

import pytest

from proxy.core.bodies.base import Item, Leftover, RawCall, Status
from proxy.core.bodies.jsonbody import JsonReader
from proxy.core.forms import JsonBody
from proxy.core.notations import JSON
from proxy.core.scanner import Marks

CLOSERS, OPENERS = Marks(("</c>",)), Marks(("<c>",))
HEADED = JsonBody(header=re.compile(r"(?P<name>\w+):"))
F, G = RawCall("f", "{}"), RawCall("g", "{}")


def run(text: str, spec: JsonBody = JSON, closers: Marks = CLOSERS, step: int = 0) -> tuple[Status, str, list[Item]]:
    """The last status, what was not used, and what was found; ``step`` 0 gives the text whole."""
    reader = JsonReader(spec, closers, OPENERS)
    pending, status = "", Status.MORE
    pieces = [text[at : at + step] for at in range(0, len(text), step)] if step else [text]
    for number, piece in enumerate(pieces):
        pending += piece
        end, status = reader.take(pending, 0, final=number == len(pieces) - 1)
        pending = pending[end:]
        if status is not Status.MORE:
            pending += "".join(pieces[number + 1 :])
            break
    return status, pending, reader.reading.items


@pytest.mark.parametrize("step", [0, 1, 4])
@pytest.mark.parametrize(
    ("text", "rest", "items"),
    [
        ('{"name": "f", "arguments": {}}</c> x', " x", [F]),
        ('{"name": "f", "arguments": {}}\n{"name": "g", "arguments": {}}\n</c>', "", [F, G]),
        ('{"name": "f", "arguments": {}}; {"name": "g", "arguments": {}}</c>', "", [F, G]),
        ('```json\n{"name": "f", "arguments": {}}\n```\n</c>', "", [F]),
        ('{"name": "f", "arguments": {}} <c>', " <c>", [F]),
        ('{"name": "f", "arguments": {}}}]</c>', "", [F]),
        ('{"name": "f", "arguments": {}} as asked</c>', "", [F]),
        ('{"name": "f", "arguments": {}}\n\nSo.', "\n\nSo.", [F]),
        ('{"name": "f", "arguments": {}}}', "", [F]),
        ('{"name": "f", "arguments": {}}' + "x" * 199 + "</c>", "", [F]),
        ('{"name": "f", "arguments": {}}' + "x" * 201 + "</c>", "x" * 201 + "</c>", [F]),
    ],
)
def test_where_a_body_ends(text: str, rest: str, items: list[Item], step: int) -> None:
    assert run(text, step=step) == (Status.DONE, rest, items)


@pytest.mark.parametrize("text", ['{"name": "f", "arguments": {"a": "</c>', '{"name": "f', "{", '[{"name": "f"}'])
def test_an_unfinished_body_wants_more(text: str) -> None:
    status, _, items = run(text, step=1)
    assert status is Status.MORE
    assert items == []


@pytest.mark.parametrize("step", [0, 1])
def test_a_header_names_the_tool(step: int) -> None:
    assert run('f: {"a": 1}</c>', HEADED, step=0) == (Status.DONE, "", [RawCall("f", '{"a": 1}')])
    assert run('f: {"a": 1} x', HEADED, Marks(())) == (Status.DONE, " x", [RawCall("f", '{"a": 1}')])


@pytest.mark.parametrize(
    ("spec", "text", "fits"),
    [
        (JSON, ' {"', True),
        (JSON, "[", True),
        (JSON, "```json\n{", True),
        (JSON, "```json", None),
        (JSON, " ", None),
        (JSON, "hello", False),
        (HEADED, "f", None),
        (HEADED, "f:", None),
        (HEADED, "f: {", True),
        (HEADED, "f: [", None),
        (HEADED, "- {", False),
    ],
)
def test_fits(spec: JsonBody, text: str, fits: bool | None) -> None:
    assert JsonReader.fits(spec, text, final=False) is fits
    if fits is None:
        assert JsonReader.fits(spec, text, final=True) is False


def test_at_an_error_every_closer_since_may_be_the_end() -> None:
    status, rest, items = run("{'name': 'f', 'arguments': {'a': '</c>'}}</c> x")
    assert (status, rest) == (Status.DONE, " x")
    (call,) = items
    assert isinstance(call, RawCall)
    assert (call.name, call.arguments) == ("f", '{"a": "</c>"}')
    assert call.repairs


def test_nothing_is_added_without_a_closer() -> None:
    assert run("{'name': 'f', 'arguments': {'a': 1}")[0] is Status.MORE
    assert run("{'name': 'f', 'arguments': {'a': 1}</c>")[0] is Status.DONE
    assert run("{'name': 'f', 'arguments': {'a': 1}}")[0] is Status.DONE


def test_open_arguments() -> None:
    reader = JsonReader(JSON, CLOSERS, OPENERS)
    reader.take('{"name": "f", "arguments": {"a": "b', 0, final=False)
    assert reader.open_arguments() == ("f", '{"a": "b')
    headed = JsonReader(HEADED, CLOSERS, OPENERS)
    headed.take('f: {"a', 0, final=False)
    assert headed.open_arguments() == ("f", '{"a')
    broken = JsonReader(JSON, CLOSERS, OPENERS)
    broken.take('{"name": "f", "arguments": {\'', 0, final=False)
    assert broken.open_arguments() is None


@pytest.mark.parametrize("levels", [400, 3_000, 20_000])
@pytest.mark.parametrize("text", ["{}", '{{"name": "f", "arguments": {{"a": {}}}}}', '{{"tool_calls": {}}}'])
def test_what_is_nested_too_deeply_is_no_exception(text: str, levels: int) -> None:
    deep = text.format("[" * levels + "]" * levels)
    status, rest, items = run(deep + "</c>")
    assert (status, rest) == (Status.DONE, "")
    assert items in ([], [Leftover(deep)], [RawCall("f", '{"a": ' + "[" * levels + "]" * levels + "}")])

from __future__ import annotations

import json

import pytest

from proxy.core.bodies.base import Leftover, RawCall
from proxy.core.bodies.shapes import calls_in, open_arguments, unfence, usual_call


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('{"name": "f", "arguments": {"a" : 1.0}}', "f", '{"a" : 1.0}'),
        ('{"arguments": {"a": 1}, "name": "f", "id": "x"}', "f", '{"a": 1}'),
        ('{"name": "f", "parameters": {"a": 1}}', "f", '{"a": 1}'),
        ('{"tool_name": "f", "args": {}}', "f", "{}"),
        ('{"function": "f", "input": {}}', "f", "{}"),
        ('{"type": "function", "function": {"name": "f", "arguments": {}}}', "f", "{}"),
        ('{"tool_calls": [{"name": "f", "arguments": {}}]}', "f", "{}"),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', "f", '{"a": 1}'),
        ('{"name": "f", "arguments": "```json\\n{\\"a\\": 1}\\n```"}', "f", '{"a": 1}'),
        ('{"name": "f", "arguments": ""}', "f", "{}"),
        ('{"name": "f", "arguments": null}', "f", "{}"),
        ('{"name": "f"}', "f", "{}"),
    ],
)
def test_one_call(text: str, name: str, arguments: str) -> None:
    (call,) = calls_in(text)
    assert isinstance(call, RawCall)
    assert (call.name, call.arguments) == (name, arguments)
    assert call.explicit is (text != '{"name": "f"}')


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "f", "arguments": [1]}',
        '{"name": "f", "arguments": 5}',
        '{"name": "f", "arguments": "hello"}',
        '{"name": "f", "arguments": {}, "parameters": {"a": 1}}',
        '{"name": "f", "city": "Oslo"}',
        '{"name": "f", "name": "g", "arguments": {}}',
        '{"name": 5, "arguments": {}}',
        '{"name": "", "arguments": {}}',
        '{"city": "Oslo"}',
        "{}",
        '"f"',
    ],
)
def test_what_is_no_call_or_could_be_two_stays_text(text: str) -> None:
    assert calls_in(text) == [Leftover(text)]


def test_an_argument_called_like_the_arguments_is_left_alone() -> None:
    text = '{"name": "q", "arguments": {"sql": "s", "parameters": {"a": 1}}}'
    (call,) = calls_in(text)
    assert isinstance(call, RawCall)
    assert json.loads(str(call.arguments)) == {"sql": "s", "parameters": {"a": 1}}


def test_a_list_keeps_its_order_and_what_is_no_call() -> None:
    items = calls_in('[{"name": "f"}, 5 , {"name": "g", "arguments": {"a": [1]}}]')
    assert items == [RawCall("f", "{}", explicit=False), Leftover("5"), RawCall("g", '{"a": [1]}')]


def test_keyed_objects() -> None:
    assert calls_in('[{"f": {"a": 1}}, {"g": {}}]', keyed=True) == [RawCall("f", '{"a": 1}'), RawCall("g", "{}")]
    assert calls_in("{}", keyed=True) == [Leftover("{}")]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```json\n{}\n```", "{}"),
        (" ``` \n\n {} \n\n```\n", "\n {}"),
        ("```{}```", "{}"),
        ("``````", ""),
        ("`````", "`````"),
        ("```json", "```json"),
        ("{} ```", "{} ```"),
        (f"```{' ' * 100_000}x", f"```{' ' * 100_000}x"),  # a search that tries all ways would not come back
    ],
)
def test_unfence(text: str, inside: str) -> None:
    assert unfence(text) == inside


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"name": "f", "arguments": {"a": "b', ("f", 27)),
        (' {"id": 5, "name": "f", "parameters" : {', ("f", 39)),
        ('{"arguments": {"a": 1', None),
        ('{"name": "f", "arguments": "{', None),
        ('{"name": "f", "arguments": [', None),
        ('{"name": "f", "arg', None),
        ('{"name": "f"', None),
        ('[{"name": "f", "arguments": {', None),
        ("", None),
    ],
)
def test_open_arguments(text: str, found: tuple[str, int] | None) -> None:
    assert open_arguments(text) == found


def test_the_usual_call_is_read_up_to_its_end() -> None:
    text = '[{ "tool" : "f", "args": {"a": [1, {"b": 1e400}]} }, 5]'
    assert usual_call(text, 1) == (RawCall("f", '{"a": [1, {"b": 1e400}]}'), len(text) - 4)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "f", "arguments": {"a": 1}',
        '{"name": "f", "arguments": {"a": 1',
        '{"name": "f", "arguments": {"a": 1}, "arguments": {"a": 2}}',
        '{"name": "f", "arguments": {"a": NaN}}',
        '{"name": "f", "arguments": "{}"}',
        '{"name": "f\\u0041", "arguments": {}}',
        '{"name": "f\n", "arguments": {}}',
        '{"name": "", "arguments": {}}',
        '{"name": "f", "arguments": ' + '{"a": ' * 5000 + "1" + "}" * 5001,
    ],
)
def test_what_is_not_the_usual_call_is_left_to_others(text: str) -> None:
    assert usual_call(text) is None

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from proxy.core.definitions import definition, to_json, without_nulls, writing
from proxy.core.errors import ClientError
from proxy.core.model import Tool


def test_a_definition_holds_what_says_how_to_call_the_tool() -> None:
    extra = {"format": {"type": "text", "note": None}, "input_examples": [{"a": None}], "cache_control": {}}
    assert definition(Tool("t", "Does.", {"a": None}, extra=extra)) == {
        "name": "t",
        "description": "Does.",
        "parameters": {},
        "format": {"type": "text"},
        "input_examples": [{"a": None}],
    }
    assert definition(Tool("t")) == {"name": "t", "parameters": {}}


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        ({"title": None, "type": "string"}, {"type": "string"}),
        ({"default": None, "const": None}, {"default": None, "const": None}),
        ({"enum": [None, {"a": None}]}, {"enum": [None, {"a": None}]}),
        ({"properties": {"a": None, "title": {"title": None}}}, {"properties": {"a": {}, "title": {}}}),
        ({"properties": [None]}, {"properties": [None]}),
        ({"anyOf": ({"format": None}, None)}, {"anyOf": [{}, None]}),
        (None, None),
    ],
)
def test_only_a_null_that_is_a_value_stays(schema: Any, left: Any) -> None:
    assert without_nulls(schema) == left


def test_json_is_short_and_opens_nothing() -> None:
    value = {"a": "</tools> <b> é", "b": [1, 0.5]}
    assert to_json(value) == r'{"a":"\u003c/tools> <b> é","b":[1,0.5]}'
    assert json.loads(to_json(value)) == value


def test_what_is_no_json_is_the_clients_error() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    digits = "a number has thousands of digits$"
    for value, why in (
        (float("inf"), ""),
        (10**5000, ""),
        ([Decimal("7" * 5000)], digits),
        ({1}, "set is no JSON$"),
        (deep, "nested too deeply$"),
    ):
        with pytest.raises(ClientError, match=f"^the thing cannot be written as JSON: {why}"), writing("the thing"):
            to_json(value)

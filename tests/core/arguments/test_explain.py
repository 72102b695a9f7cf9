from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from proxy.core.arguments.explain import Explanation, compiled
from proxy.core.arguments.jsontext import loads
from proxy.core.arguments.outline import Outline


def _faults(schema: Any, text: str) -> list[str | None]:
    plain = json.loads(text, parse_float=Decimal)
    return list(Explanation(Outline(schema), schema.get("$schema")).faults(loads(text), plain))


POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "text", "faults"),
    [
        ({"type": "object"}, "{}", []),
        ({"required": ["city"]}, "{}", ["the arguments: city is required, but missing"]),
        (
            {"properties": {"days": {"type": "integer"}}},
            '{"days": "three"}',
            ['days: must be integer, not the string "three"'],
        ),
        (
            {"properties": {"a": {"type": ["integer", "null"]}}},
            '{"a": []}',
            ["a: must be integer or null, not the array []"],
        ),
        ({"properties": {"a": {"enum": ["c", 1]}}}, '{"a": "k"}', ['a: must be one of "c", 1, not "k"']),
        ({"properties": {"a": {"const": 1}}}, '{"a": 2}', ["a: must be 1, not 2"]),
        ({"properties": {"a": False}}, '{"a": 2}', ["a: must not be given"]),
        (POINT, '{"x": 1, "y": 2}', ["the arguments: there is no y; there are x"]),
        ({"additionalProperties": False}, '{"y": 2}', ["the arguments: there is no y"]),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            '{"x1": 1, "y": 2}',
            ["the arguments: there is no y"],
        ),
        (
            {"properties": {"l": {"items": POINT}}},
            '{"l": [{"x": 1}, {}, {"x": "1"}]}',
            ["l[1]: x is required, but missing", 'l[2].x: must be number, not the string "1"'],
        ),
        (
            {"properties": {"p": {"anyOf": [POINT, {"type": "null"}]}}},
            '{"p": {"x": true}}',
            ["p.x: must be number, not the boolean true"],
        ),
        (
            {"properties": {"p": {"anyOf": [POINT, {"type": "null"}]}}},
            '{"p": 5}',
            ["p: must be null or object, not the integer 5"],
        ),
        ({"properties": {"s": {"pattern": "^b$"}}}, '{"s": "a"}', ['s: "a" does not match "^b$"']),
        ({"propertyNames": {"maxLength": 1}}, '{"ab": 1}', ["the arguments: the name ab is longer than 1 character"]),
        ({"properties": {"n": {"minimum": 10}}}, '{"n": 5}', ["n: 5 is less than the minimum of 10"]),
        (
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "properties": {"n": {"minimum": 5, "exclusiveMinimum": True}},
            },
            '{"n": 5}',
            ["n: 5 is less than or equal to the minimum of 5"],
        ),
        ({"$ref": "#/$defs/p", "$defs": {"p": POINT}}, "{}", ["the arguments: x is required, but missing"]),
        ({"not": {"required": ["a"]}}, '{"a": 1}', []),  # not what this looks at
    ],
)
def test_faults(schema: Any, text: str, faults: list[str]) -> None:
    assert _faults(schema, text) == faults


def test_a_fault_is_short() -> None:
    schema = {
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x" * 1_000] * 50},
            "c": {"maxLength": 5},
            "d": {"pattern": "z" * 5_000},
        }
    }
    faults = _faults(schema, json.dumps({"a": "y" * 10_000, "b": "y" * 10_000, "c": "y" * 10_000, "d": ""}))
    assert len(faults) == 4
    assert all(fault and len(fault) < 700 for fault in faults)


def test_a_pattern_that_takes_too_long_is_no_fault() -> None:
    assert _faults({"properties": {"a": {"pattern": "(?=a)(a+)+$"}}}, f'{{"a": "{"a" * 5_000}!"}}') == [None]


def test_the_same_schema_is_compiled_once() -> None:
    faults = _faults({"items": {"type": "string"}}, json.dumps(list(range(2_000))))
    assert len(faults) == 2_000


def test_nothing_is_fetched_and_patterns_are_bounded() -> None:
    for schema in (
        {"$ref": "http://127.0.0.1:9/x"},
        {"$ref": "file:///etc/hostname"},
        {"pattern": "(a{100}){100}{100}"},
    ):
        with pytest.raises(ValueError, match=r"."):
            compiled(schema)
    assert compiled({"format": "date", "type": "string"}).is_valid("tomorrow")

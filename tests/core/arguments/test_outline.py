from __future__ import annotations

from typing import Any

import pytest

from proxy.core.arguments.jsontext import Number, loads
from proxy.core.arguments.outline import Outline, equal, item, kind_of, member, resolve
from proxy.core.model import Json

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}}}
CIRCLE = {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind"], "type": "object"}
SQUARE = {"properties": {"kind": {"const": "square"}, "r": {"type": "string"}}, "required": ["kind"], "type": "object"}


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({}, "string number integer boolean null array object"),
        (True, "string number integer boolean null array object"),
        (False, ""),
        ({"type": "integer"}, "integer"),
        ({"type": "number"}, "number integer"),
        ({"type": ["string", "null"]}, "string null"),
        ({"type": "str"}, "string number integer boolean null array object"),
        ({"type": ["integer", "any"]}, "string number integer boolean null array object"),
        ({"type": "string", "nullable": True}, "string null"),
        ({"enum": ["a", 1, 1.5, None, True, [], {}]}, "string number integer null boolean array object"),
        ({"enum": [1, 2]}, "number integer"),
        ({"const": "x"}, "string"),
        ({"type": "string", "enum": ["a", 1]}, "string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string null"),
        ({"oneOf": [{"type": "array"}, {"$ref": "#/$defs/node"}]}, "array object"),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]}, "integer"),
        ({"$ref": "#/$defs/node"}, "object"),
        ({"$ref": "#/$defs/a~1b%20c"}, "boolean"),
        ({"$ref": "#/list/1"}, "array"),
        ({"$ref": "#/list/7"}, "string number integer boolean null array object"),
        ({"$ref": "#/$defs/nobody"}, "string number integer boolean null array object"),
        ({"$ref": "file:///etc/passwd"}, "string number integer boolean null array object"),
        ({"$ref": "#/$defs/loop"}, "string number integer boolean null array object"),
        ({"anyOf": "nonsense", "enum": 5, "allOf": {}, "$ref": 5}, "string number integer boolean null array object"),
    ],
)
def test_kinds(schema: Any, kinds: str) -> None:
    defs = {"node": NODE, "a/b c": {"type": "boolean"}, "loop": {"allOf": [{"$ref": "#/$defs/loop"}]}}
    outline = Outline({"$defs": defs, "list": [{}, {"type": "array"}]})
    assert outline.kinds((schema,)) == set(kinds.split())


@pytest.mark.parametrize(
    ("schema", "text", "admitted"),
    [
        ({"type": "integer"}, "5", True),
        ({"type": "integer"}, "5.0", True),
        ({"type": "integer"}, "5.5", False),
        ({"type": "integer", "minimum": 10}, "5", True),
        ({"type": "integer"}, '"5"', False),
        ({"enum": [1, "2"]}, '"1"', False),
        ({"enum": [1, "2"]}, "1.0", True),
        ({"enum": [True]}, "1", False),
        ({"const": {"a": [1, None]}}, '{"a": [1.0, null]}', True),
        ({"const": {"a": [1, None]}}, '{"a": [1]}', False),
        ({"anyOf": [{"const": "a"}, {"type": "integer"}]}, '"b"', False),
        ({"enum": ["a"], "nullable": True}, "null", True),
    ],
)
def test_admits(schema: Any, text: str, admitted: bool) -> None:
    outline = Outline(schema)
    assert outline.admits(outline.root, loads(text)) is admitted


@pytest.mark.parametrize(
    ("schema", "free"),
    [({}, True), ({"type": "string"}, True), ({"enum": ["a", 1]}, False), ({"type": "integer"}, False)],
)
def test_admits_any_string(schema: Any, free: bool) -> None:
    outline = Outline(schema)
    assert outline.admits_any_string(outline.root) is free


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("5", True), ("-0", True), ("5.000", True), ("5.5", False), ("15e-1", False), ("150e-1", True), ("1.5e1", True),
        ("1e400", True), ("1e-400", False), ("0e-400", True), ("1.25e1", False), ("7" * 5_000, True),
        ("1e" + "9" * 5_000, True), ("1e-" + "9" * 5_000, False), ("0.0e-" + "9" * 5_000, True),
    ],
)  # fmt: skip
def test_what_is_an_integer(text: str, integer: bool) -> None:
    assert kind_of(Number(text)) == ("integer" if integer else "number")


def test_equal() -> None:
    assert equal(Number("0.1"), 0.1)
    assert equal(Number("1e2"), 100)
    assert equal(loads("100000000000000000000001"), 100000000000000000000001)
    assert not equal(Number("1e" + "9" * 30), 1)
    assert not equal(Number("1"), "1")
    assert not equal("1", 1)
    assert not equal(True, 1)
    assert not equal(None, False)
    assert not equal([], {})


def test_members_and_items() -> None:
    node = {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    assert member([node], "a") == ({"type": "string"},)
    assert member([node], "b") == ({"type": "integer"},)
    assert member([{**node, "patternProperties": {"^b": {}}}], "b") == ()
    assert member([{"additionalProperties": False}], "b") == ()
    assert item([{"items": {"type": "string"}}], 7) == ({"type": "string"},)
    assert item([{"prefixItems": [1, 2], "items": 3}], 1) == (2,)
    assert item([{"prefixItems": [1, 2], "items": 3}], 2) == (3,)
    assert item([{"items": [1, 2], "additionalItems": 3}], 1) == (2,)
    assert item([{"items": [1, 2], "additionalItems": 3}], 2) == (3,)


def test_the_branch_that_fits_applies() -> None:
    outline = Outline({"$defs": {"node": NODE}, "anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})
    assert NODE in outline.applied(outline.root, {"v": 1})
    assert NODE not in outline.applied(outline.root, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"kind": "circle"}, [CIRCLE]), ({"kind": "square"}, [SQUARE]), ({"kind": "other"}, []), ({}, [])],
)
def test_alternatives_are_told_apart_by_what_they_list(value: Any, expected: list[Any]) -> None:
    outline = Outline({"oneOf": [CIRCLE, SQUARE]})
    assert outline.applied(outline.root, value)[1:] == expected


def test_a_schema_that_leads_to_itself_comes_to_an_end() -> None:
    doubled = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"} for _ in range(2)]} for n in range(60)}
    for schema in (
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$defs": {**doubled, "d60": {"type": "integer"}}, "$ref": "#/$defs/d0"},
    ):
        outline = Outline(schema)
        outline.applied(outline.root, {"a": 1})
        outline.kinds(outline.root)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", {"$defs": {"a/b~c d": [1, {"x": 2}]}}),
        ("#/$defs/a~1b~0c%20d/1/x", 2),
        ("#/$defs/a~1b~0c%20d/7", True),
        ("#/$defs/missing", True),
        (f"#/$defs/a~1b~0c%20d/{'9' * 5000}", True),
        ("#anchor", {"$defs": {"a/b~c d": [1, {"x": 2}]}}),
        ("https://example.com/schema.json", True),
        ("other.json#/a", True),
    ],
)
def test_a_reference_is_a_pointer_into_the_schema_and_nothing_is_fetched(reference: str, found: Json) -> None:
    assert resolve({"$defs": {"a/b~c d": [1, {"x": 2}]}}, reference) == found

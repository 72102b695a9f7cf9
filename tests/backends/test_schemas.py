"""Schemas taken apart: references, merging, types and bounds of any draft and of none."""

from __future__ import annotations

from decimal import Decimal

import pytest

from proxy.backends import schemas
from proxy.backends.schemas import NoValueError, TooLargeError
from proxy.core.model import Json

NO_CHAIN: frozenset[str] = frozenset()


def test_flattening_follows_references_and_merges_all_of() -> None:
    root = {
        "$defs": {
            "named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "both": {"allOf": [{"$ref": "#/$defs/named"}, {"properties": {"age": {"minimum": 0}}}]},
        }
    }
    flat, chain = schemas.flatten({"$ref": "#/$defs/both", "required": ["age"]}, root, NO_CHAIN)
    assert flat == {
        "type": "object",
        "properties": {"age": {"minimum": 0}, "name": {"type": "string"}},
        "required": ["age", "name"],
    }
    assert chain == {"#/$defs/both", "#/$defs/named"}


def test_a_definition_may_be_used_twice_but_not_within_itself() -> None:
    root = {"a": {"minimum": 1}, "loop": {"allOf": [{"$ref": "#/loop"}]}}
    twice = {"allOf": [{"$ref": "#/a"}, {"$ref": "#/a"}]}
    assert schemas.flatten(twice, root, NO_CHAIN)[0] == {"minimum": 1}
    with pytest.raises(NoValueError):
        schemas.flatten({"$ref": "#/loop"}, root, NO_CHAIN)
    with pytest.raises(NoValueError):
        schemas.flatten({"allOf": [True, False]}, root, NO_CHAIN)


def test_references_that_multiply_are_given_up() -> None:
    root = {f"d{n}": {"allOf": [{"$ref": f"#/d{n + 1}"}] * 2} for n in range(30)}
    with pytest.raises(TooLargeError):
        schemas.flatten({"$ref": "#/d0"}, root, NO_CHAIN)
    large = {"properties": {str(n): True for n in range(5_000)}}
    assert schemas.flatten({"allOf": [large]}, {}, NO_CHAIN)[0] == large
    with pytest.raises(TooLargeError):
        schemas.flatten({"allOf": [large] * 10}, {}, NO_CHAIN)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ({"minimum": 1}, {"minimum": 5}, {"minimum": 5}),
        ({"minimum": 5}, {"minimum": 1}, {"minimum": 5}),
        ({"maxLength": 5}, {"maxLength": 9}, {"maxLength": 5}),
        ({"minItems": "x"}, {"minItems": 2}, {"minItems": 2}),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        ({"required": True}, {"required": ["b"]}, {"required": ["b"]}),
        ({"type": ["integer", "string"]}, {"type": "number"}, {"type": ["integer"]}),
        ({"type": "number"}, {"type": "number"}, {"type": ["number"]}),
        ({"type": "whatever"}, {"type": "string"}, {"type": ["string"]}),
        ({"enum": [1, "a", True]}, {"enum": ["a", 1]}, {"enum": [1, "a"]}),
        ({"items": True}, {"items": {"type": "string"}}, {"items": {"type": "string"}}),
        ({"items": {"minimum": 1}}, {"items": {"maximum": 2}}, {"items": {"allOf": [{"minimum": 1}, {"maximum": 2}]}}),
        ({"title": "A"}, {"title": "B"}, {"title": "B"}),
        ({"anyOf": [1]}, {"anyOf": [2]}, {"anyOf": [1], "allOf": [{"anyOf": [2]}]}),
    ],
)
def test_merging_asks_for_what_both_do(first: Json, second: Json, merged: Json) -> None:
    assert schemas.merge(first, second) == merged


def test_merged_members_obey_what_the_other_side_says_of_undeclared_ones() -> None:
    closed = {"properties": {"a": True}, "additionalProperties": False}
    merged = schemas.merge(closed, {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})
    assert merged["properties"] == {"a": {"type": "string"}, "b": {"allOf": [False, {"type": "string"}]}}
    assert merged["additionalProperties"] is False


def test_types_that_exclude_each_other_leave_no_value() -> None:
    with pytest.raises(NoValueError):
        schemas.merge({"type": "string"}, {"type": "integer"})


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ["string"]),
        ({"type": ["string", "null"]}, ["string", "null"]),
        ({"type": "STRING"}, ["string"]),
        ({"type": "str"}, ["string"]),
        ({"type": "dict"}, ["object"]),
        ({"type": "float", "nullable": True}, ["number", "null"]),
        ({"type": "any"}, None),
        ({"type": 5}, None),
        ({}, None),
        ({"nullable": True}, None),
        ({"properties": {}}, ["object"]),
        ({"items": {}}, ["array"]),
        ({"pattern": "x"}, ["string"]),
        ({"minimum": 1}, ["number"]),
    ],
)
def test_types_are_read_as_they_are_meant(schema: Json, types: list[str] | None) -> None:
    assert schemas.types(schema) == types


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "integer"),
        (1.0, "integer"),
        (1.5, "number"),
        ("1", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_the_type_of_a_value(value: Json, name: str) -> None:
    assert schemas.type_of(value) == name
    assert schemas.is_type(value, [name])
    assert schemas.is_type(value, ["number"]) is (name in ("integer", "number"))


def test_numbers_are_read_exactly_and_what_is_none_is_none() -> None:
    assert schemas.number(0.1) == Decimal("0.1")
    assert schemas.number(10**5000) == 10**5000
    assert [schemas.number(value) for value in (True, None, "5", float("inf"), float("nan"))] == [None] * 5


def test_counts_and_lists_of_strings_are_read_leniently() -> None:
    assert [schemas.count(value, 7) for value in (3, 3.0, -1, True, "3", None, 10**9)] == [3, 3, 7, 7, 7, 7, 10**6]
    assert [schemas.strings(value) for value in (["a", 1, "b"], True, None, "a")] == [["a", "b"], [], [], []]


def test_alternatives_keep_what_is_said_beside_them() -> None:
    plain: dict[str, Json] = {"title": "x", "anyOf": [], "oneOf": [{"type": "string"}]}
    assert list(schemas.branches(plain) or ()) == [{"type": "string"}]
    assert plain == {"title": "x"}
    both: dict[str, Json] = {"anyOf": [True], "oneOf": [False]}
    assert list(schemas.branches(both) or ()) == [{"allOf": [{"oneOf": [False]}, True]}]
    assert schemas.branches({"anyOf": "nonsense"}) is None


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"enum": [1, 2], "const": 3}, [1, 2]),
        ({"enum": "nonsense", "const": 3}, [3]),
        ({"enum": ["a"], "nullable": True}, ["a", None]),
        ({"const": None}, [None]),
        ({"enum": [], "nullable": True}, []),
        ({}, []),
    ],
)
def test_values_that_are_listed(schema: dict[str, Json], values: list[Json]) -> None:
    assert schemas.listed(schema) == values


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"items": {"type": "string"}}, ([], {"type": "string"})),
        ({"prefixItems": [True], "items": False}, ([True], False)),
        ({"items": [True], "additionalItems": False}, ([True], False)),
        ({"prefixItems": "nonsense"}, ([], None)),
    ],
)
def test_items_of_every_draft(schema: dict[str, Json], found: tuple[list[Json], Json]) -> None:
    assert schemas.items(schema) == found


def test_a_member_that_cannot_be_is_not_required() -> None:
    said = {"properties": {"a": {}}, "required": ["a", "b", 5]}
    assert schemas.required(said) == ["a", "b"]
    assert schemas.required({**said, "additionalProperties": False}) == ["a"]

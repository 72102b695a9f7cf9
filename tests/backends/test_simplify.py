"""Schemas in few words: nothing that they let through is wrong, and what is usual still fits."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from proxy.backends.grammar import forced
from proxy.backends.schemas import NoValueError, TooLargeError
from proxy.backends.simplify import Schema, Simplifier, is_plain
from proxy.core.model import Json, Tool
from proxy.core.parser import parse
from tests.support.gbnf import Grammar

WORDS = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum", "anyOf",
    "minLength", "maxLength", "minimum", "maximum", "format",
})  # fmt: skip


def simple(schema: Json, *, longest_string: int = 1999, bounded: int = 50_000) -> Schema:
    simplifier = Simplifier(max_steps=10_000, longest_string=longest_string, bounded=bounded)
    return simplifier.rewrite(schema, schema)


def words(schema: Json) -> set[str]:
    """The words of ``schema``; names of members and values are none."""
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for inner in [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]:
        found |= words(inner)
    return found | words(schema.get("items")) | words(schema.get("additionalProperties"))


NODE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    "required": ["v"],
}
TREE = {"$ref": "#/$defs/node", "$defs": {"node": NODE}}
LIST = {
    "type": "object",
    "properties": {"n": {"$ref": "#/properties/deeper"}, "deeper": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
}
USUAL: list[tuple[Json, list[Json], list[Json]]] = [
    (
        {
            "type": "object",
            "properties": {
                "city": {"$ref": "#/$defs/city"},
                "days": {"type": "integer", "minimum": 1, "exclusiveMaximum": 15},
                "unit": {"enum": ["c", "f"]},
                "kind": {"const": "forecast"},
            },
            "required": ["city"],
            "additionalProperties": False,
            "$defs": {"city": {"type": "string", "minLength": 2, "maxLength": 5}},
        },
        [{"city": "Oslo"}, {"city": "Oslo", "days": 14, "unit": "f", "kind": "forecast"}],
        [{}, {"city": "O"}, {"city": "London"}, {"city": "Oslo", "days": 15}, {"city": "Oslo", "x": 1}],
    ),
    (
        {"properties": {"tags": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 2}}},
        [{}, {"tags": None}, {"tags": ["a", "b"]}],
        [{"tags": "a"}, {"tags": [1]}, {"tags": ["a", "b", "c"]}],
    ),
    (
        {"allOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["a"]}]},
        [{"a": 1}],
        [{}, {"a": "1"}],
    ),
    (
        {
            "type": "object",
            "oneOf": [
                {"properties": {"path": {"type": "string"}}, "required": ["path"]},
                {"properties": {"url": {"type": "string"}}, "required": ["url"]},
            ],
        },
        [{"path": "a"}, {"url": "b"}],
        [{}, {"path": 1}],
    ),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1, "b": 2}], [{"a": "1"}]),
    ({"type": "object", "properties": {"any": {}}}, [{"any": 1}, {"any": "x"}, {"any": [None, {}]}], [{"other": 1}]),
    (TREE, [{"v": 1}, {"v": 1, "kids": [{"v": 2}, {"v": 3, "kids": []}]}], [{}, {"v": 1, "kids": [{}]}]),
    (LIST, [{}, {"n": None}, {"n": {"n": None}}], [{"n": 1}]),
    (
        {"properties": {"at": {"type": "string", "format": "date", "pattern": "^2"}}},
        [{"at": "2026-01-02"}],
        [{"at": 1}],
    ),
]


@pytest.mark.parametrize(("schema", "good", "bad"), USUAL)
def test_what_is_usual_is_said(schema: Json, good: list[Json], bad: list[Json]) -> None:
    written = simple(schema)
    check = validator_for(written, validate_formats=True).is_valid
    assert [value for value in good if not check(value)] == []
    assert [value for value in bad if check(value)] == []
    assert words(written) <= WORDS


@given(st.sampled_from([schema for schema, _, _ in USUAL]), st.integers(0, 2**32))
def test_nothing_that_is_let_through_is_wrong(schema: Json, seed: int) -> None:
    tool = Tool("t", parameters=simple(schema))
    text = forced([tool])
    assert text is not None
    written = Grammar(text).sample(random.Random(seed))
    (call,) = parse(written, [tool]).calls
    patternless = json.loads(json.dumps(schema).replace('"pattern"', '"description"'))
    assert validator_for(patternless).is_valid(json.loads(call.arguments))


def test_strings_are_bounded_as_long_as_all_of_them_are_within_a_bound() -> None:
    members = {f"m{n}": {"type": "string"} for n in range(5)} | {"short": {"type": "string", "maxLength": 9}}
    written = simple({"properties": members}, bounded=4_500)["properties"]
    assert [each.get("maxLength") for each in written.values()] == [1999, 1999, None, None, None, 9]


def test_a_string_may_be_longer_than_the_longest_that_is_bounded() -> None:
    text: Json = {"type": "string", "minLength": 300}
    assert simple(text, longest_string=200) == {"type": "string"}
    assert simple({"type": "string", "maxLength": 100}, longest_string=200) == {"type": "string", "maxLength": 100}


@pytest.mark.parametrize("value", ['"', "\\", "a\nb", "\x7f", "\ud800", "😀"])
def test_what_some_servers_copy_wrongly_is_not_written(value: str) -> None:
    assert not is_plain(value)
    assert simple({"enum": [value, "b"]}) == {"type": "string"}
    assert simple({"properties": {value: {"type": "string"}}}) == {"type": "object"}


@pytest.mark.parametrize("value", ["é", "中 文", "it's", "a/b", 1.5, True, None, ["a"], {"a": 1}])
def test_what_they_copy_faithfully_is(value: Json) -> None:
    assert simple({"const": value}) == {"enum": [value]}


@pytest.mark.parametrize("bound", [0.5, 10**18, -(10**400), "1", True])
def test_a_bound_that_servers_may_misread_is_left_to_validation(bound: Json) -> None:
    assert simple({"type": "integer", "minimum": bound}) == {"type": "integer"}


def test_a_tuple_becomes_a_list_of_anything() -> None:
    written = simple({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]})
    assert validator_for(written).is_valid(["a", 1])


# --- hostile schemas ---


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"$ref": "#"},
        {"type": "array", "minItems": 10**9},
        {"type": "object", "properties": {"self": {"$ref": "#"}}, "required": ["self"]},
        {"enum": ["a"], "type": "integer"},
        {"type": "array", "items": False, "minItems": 1},
    ],
)
def test_what_has_no_value_or_none_that_ends_says_so(schema: Json) -> None:
    with pytest.raises(NoValueError):
        simple(schema)


def nested(depth: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        nested(300),
        {"enum": [f"value {n}" for n in range(9_000)]},
        {"type": "string", "pattern": "(a+)+$", "minLength": 10**30, "maxLength": 10**40},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "#/nowhere"},
    ],
    ids=["depth", "enum", "pattern", "remote", "dangling"],
)
def test_what_is_too_much_is_loosened(schema: Json) -> None:
    assert len(json.dumps(simple(schema))) < 2_000


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {f"p{n}": {"type": "string"} for n in range(20_000)}},
        {**{f"d{n}": {"properties": {"a": {"$ref": f"#/d{n + 1}"}, "b": {"$ref": f"#/d{n + 1}"}}} for n in range(60)},
         "$ref": "#/d0"},
        {**{f"d{n}": {"anyOf": [{"$ref": f"#/d{n + 1}", "minimum": 0}] * 3} for n in range(60)}, "$ref": "#/d0"},
    ],
    ids=["members", "references", "anyOf"],
)  # fmt: skip
def test_what_would_never_end_is_given_up(schema: Json) -> None:
    with pytest.raises(TooLargeError):
        simple(schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*sorted(WORDS), "$ref", "allOf", "oneOf", "const", "prefixItems", "nullable", "pattern", "x"]
            ),
            inner | st.sampled_from(["object", "array", "string", "integer", "#", "#/properties/x"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_stands_in_the_place_of_a_schema_few_words_come_out(schema: Json) -> None:
    try:
        written = simple(schema)
    except (NoValueError, TooLargeError):
        return
    assert words(written) <= WORDS
    json.dumps(written).encode()

"""Schemas to rules: what each word of a schema does to the grammar, and what hostile schemas cannot do."""

from __future__ import annotations

import pytest

from proxy.backends import gbnf, json_rules
from proxy.backends.schemas import NoValueError, TooLargeError
from proxy.backends.translate import Translator
from proxy.core.model import Json
from tests.support.gbnf import Grammar


def translate(schema: Json, max_steps: int = 5_000, max_size: int = 65_536) -> str:
    translator = Translator(schema, "t", max_steps=max_steps, max_size=max_size)
    expression = translator.value(schema)
    return gbnf.write({"root": expression, **translator.rules}, json_rules.RULES)


LETTERS = {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"}}
NODE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["value"],
        }
    },
    "$ref": "#/$defs/node",
}
CASES: list[tuple[str, Json, list[str], list[str]]] = [
    (
        "no schema is any value",
        True,
        ["1", '"x"', "null", '{"a": [1, 2]}', '[{"a": 1}]'],
        ["", "[[[1]]]", '{"a": [1, [2]]}'],
    ),
    (
        "members come in the order declared, and what is not required may be left out",
        {"type": "object", "properties": LETTERS},
        ["{}", '{"a": ""}', '{"b": 1}', '{"c": true}', '{"a": "", "c": false}', '{"a": "", "b": 1, "c": true}'],
        ['{"b": 1, "a": ""}', '{"a": "", "a": ""}', '{"d": 1}', '{"a": 1}', '{"a": "",}', "[]"],
    ),
    (
        "what is required is there",
        {"type": "object", "properties": LETTERS, "required": ["b"]},
        ['{"b": 1}', '{"a": "", "b": 1}', '{"b": 1, "c": true}', '{"a": "", "b": 1, "c": true}'],
        ["{}", '{"a": ""}', '{"a": "", "c": true}'],
    ),
    (
        "what is required but not declared may be anything",
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["z"]},
        ['{"z": 1}', '{"a": null, "z": [true]}'],
        ['{"a": null}', '{"z": 1, "a": null}'],
    ),
    (
        "a member that cannot be is left out",
        {"type": "object", "properties": {"a": False, "b": {"type": "null"}}},
        ["{}", '{"b": null}'],
        ['{"a": 1}', '{"a": 1, "b": null}'],
    ),
    (
        "no members are an empty object",
        {"type": "object", "properties": {}},
        ["{}"],
        ['{"a": 1}'],
    ),
    ("an object without declarations is open", {"type": "object"}, ["{}", '{"a": 1, "b": {"c": null}}'], ["[]"]),
    (
        "undeclared members come last, under other names",
        {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
        ["{}", '{"id": 1}', '{"id": 1, "note": "x", "ide": "y"}', '{"note": "x"}'],
        ['{"id": "x"}', '{"note": 1}', '{"note": "x", "id": 1}', '{"\\u0069d": "x"}'],
    ),
    (
        "a map has keys and values of its own",
        {
            "type": "object",
            "propertyNames": {"enum": ["x", "y"]},
            "additionalProperties": {"type": "integer"},
            "minProperties": 1,
        },
        ['{"x": 1}', '{"y": 2, "x": 1}'],
        ["{}", '{"z": 1}', '{"x": "1"}'],
    ),
    (
        "members whose names match a pattern",
        {"type": "object", "patternProperties": {"^x-": {"type": "integer"}}},
        ["{}", '{"x-a": 1}'],
        ['{"x-a": "1"}'],
    ),
    (
        "items are counted",
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        ["[1]", "[1, 2, 3]"],
        ["[]", "[1, 2, 3, 4]", '["1"]', "[1,2]"],
    ),
    (
        "a tuple has all its items, and more only where that is said",
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        ['[1, "a"]'],
        ["[1]", '["a", 1]', '[1, "a", 2]'],
    ),
    (
        "a tuple with more",
        {"items": [{"type": "integer"}], "additionalItems": {"type": "string"}, "minItems": 2},
        ['[1, "a"]', '[1, "a", "b"]'],
        ["[1]", "[1, 2]"],
    ),
    ("a list that has to be empty", {"type": "array", "items": False}, ["[]"], ["[1]", "[null]"]),
    (
        "strings have their length",
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"ab"', '"é中😀"'],
        ['"a"', '"abcd"'],
    ),
    ("escapes count as one character", {"type": "string", "maxLength": 1}, ['"\\n"', '"\\u00e9"'], ['"\\n\\n"']),
    (
        "integers have their bounds",
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 12},
        ["1", "11"],
        ["0", "12", "-1", "1.0"],
    ),
    ("bounds of draft 4", {"type": "integer", "minimum": 0, "exclusiveMinimum": True}, ["1"], ["0"]),
    (
        "numbers have their bounds",
        {"type": "number", "minimum": 0, "maximum": 1},
        ["0", "0.5", "1", "1.0"],
        ["1.01", "-0.5", "2"],
    ),
    (
        "an enum is its values",
        {"enum": ["c", "f", 1, None, {"a": [1, 2]}]},
        ['"c"', "1", "null", '{"a": [1, 2]}'],
        ['"d"', "c"],
    ),
    ("an enum keeps to its type", {"type": "string", "enum": ["a", None]}, ['"a"'], ["null"]),
    ("a nullable enum", {"type": "string", "enum": ["a"], "nullable": True}, ['"a"', "null"], ['"b"']),
    ("a constant", {"const": 'say "hi"\n'}, ['"say \\"hi\\"\\n"'], ['"say"']),
    ("several types", {"type": ["integer", "null"], "minimum": 5}, ["5", "null"], ["4", '"5"']),
    ("nullable", {"type": "boolean", "nullable": True}, ["true", "null"], ["1"]),
    ("a type that nobody knows is any value", {"type": "whatever"}, ["1", "{}"], []),
    (
        "types as people write them",
        {"type": "dict", "properties": {"a": {"type": "int"}}},
        ['{"a": 1}'],
        ['{"a": "1"}'],
    ),
    ("one of several", {"anyOf": [{"type": "integer"}, {"const": "auto"}, False]}, ["1", '"auto"'], ['"1"', "null"]),
    (
        "one of several, with what holds for all",
        {"type": "object", "properties": LETTERS, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a": ""}', '{"b": 1}', '{"a": "", "c": true}'],
        ["{}", '{"c": true}'],
    ),
    (
        "all of several",
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"minimum": 1}}},
                {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            ]
        },
        ['{"a": 1}'],
        ["{}", '{"a": 0}', '{"a": 1.5}'],
    ),
    ("a reference that leads nowhere is any value", {"$ref": "#/nowhere"}, ["1", "{}"], []),
    (
        "a definition within itself",
        NODE,
        [
            '{"value": 1}',
            '{"value": 1, "children": [{"value": 2, "children": []}], "next": {"value": 3, "next": null}}',
        ],
        ["{}", '{"value": 1, "next": {}}', '{"value": 1, "children": [1]}'],
    ),
    (
        "the whole within itself",
        {"type": "object", "properties": {"not": {"$ref": "#"}}, "additionalProperties": False},
        ["{}", '{"not": {"not": {}}}'],
        ['{"not": 1}'],
    ),
    (
        "a choice that may be itself",
        {
            "$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "array", "items": {"$ref": "#/$defs/x"}}]}},
            "$ref": "#/$defs/x",
        },
        ["[]", "[[], [[]]]"],
        ["1", "[1]"],
    ),
    (
        "words that are misused say nothing",
        {"type": "object", "properties": [], "required": True, "anyOf": {}},
        ["{}", '{"a": 1}'],
        [],
    ),
]


@pytest.mark.parametrize(("schema", "fit", "differ"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_grammar_says_what_the_schema_does(schema: Json, fit: list[str], differ: list[str]) -> None:
    written = Grammar(translate(schema))
    assert [text for text in fit if not written.matches(text)] == []
    assert [text for text in differ if written.matches(text)] == []


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"anyOf": [False, {"not a": 1, "allOf": [False]}]},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "array", "minItems": 65},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "object", "properties": {}, "minProperties": 1},
        {"type": "string", "enum": [1, 2]},
        {"enum": [float("nan")]},
        {"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}, "$ref": "#/$defs/x"},
    ],
)
def test_a_schema_that_no_value_can_fit_is_told(schema: Json) -> None:
    with pytest.raises(NoValueError):
        translate(schema)


def test_a_definition_that_proves_impossible_leaves_a_grammar_that_can_be_read() -> None:
    inside = {"type": "object", "properties": {"again": {"$ref": "#/$defs/x"}, "never": False}, "required": ["never"]}
    root = {"$defs": {"x": {"anyOf": [inside, {"type": "null"}]}}, "type": "array", "items": {"$ref": "#/$defs/x"}}
    assert Grammar(translate(root)).matches("[null]")


# --- hostile schemas ---


def doubling(levels: int) -> Json:
    pair = {
        f"d{n}": {"type": "object", "properties": {k: {"$ref": f"#/d{n + 1}"} for k in "ab"}} for n in range(levels)
    }
    return {**pair, f"d{levels}": {"type": "null"}, "$ref": "#/d0"}


def nested(levels: int) -> Json:
    schema: Json = {"type": "null"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def test_definitions_that_are_used_twice_each_are_written_once() -> None:
    assert len(translate(doubling(20))) < 5_000


def test_alternatives_that_multiply_are_given_up() -> None:
    root = {f"d{n}": {"anyOf": [{"minimum": 1, "$ref": f"#/d{n + 1}"}] * 2} for n in range(40)}
    with pytest.raises(TooLargeError):
        translate({**root, "$ref": "#/d0"}, max_steps=1_000)


def test_a_schema_nested_without_end_is_given_up() -> None:
    assert len(translate(nested(30))) < 5_000
    for levels in (100, 5_000):
        with pytest.raises(TooLargeError):
            translate(nested(levels))


def test_more_text_than_wanted_is_given_up() -> None:
    schema = {"type": "object", "properties": {f"member {n}": {"const": n} for n in range(200)}}
    with pytest.raises(TooLargeError):
        translate(schema, max_size=1_000)


def test_a_huge_enum_only_tells_its_types() -> None:
    text = translate({"enum": [*(f"value number {n}" for n in range(10_000)), 1]})
    assert len(text) < 1_000
    assert [value for value in ('"other"', "7", "null") if Grammar(text).matches(value)] == ['"other"', "7"]


def test_a_large_enum_is_kept() -> None:
    written = Grammar(translate({"enum": [f"value number {n}" for n in range(500)]}))
    assert written.matches('"value number 499"')
    assert not written.matches('"value number 500"')

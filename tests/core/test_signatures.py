from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.definitions import definition, to_json
from proxy.core.model import Json, Tool
from proxy.core.signatures import DEEPEST, signature
from tests.support.conversations import markup_in, risky_text
from tests.support.tools import CATALOGUE


def written(parameters: Json, name: str = "t", description: str = "") -> str:
    return signature(definition(Tool(name, description, parameters)))


def member(schema: Json, **root: Json) -> str:
    """The lines for one optional property ``p`` of ``schema``, without what stands around it."""
    lines = written({"type": "object", "properties": {"p": schema}, **root})
    return lines.removeprefix("function t(arguments: {").removesuffix("})").removesuffix(",\n").strip()


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({"type": "string"}, "p?: string"),
        ({"type": "integer", "default": 5}, "p?: integer = 5"),
        ({"type": "number", "default": 1.50}, "p?: number = 1.5"),
        ({"type": ["boolean", "null"]}, "p?: boolean | null"),
        ({"type": "string", "nullable": True}, "p?: string | null"),
        ({}, "p?: any"),
        (True, "p?: any"),
        (False, "p?: never"),
        ({"type": "object"}, "p?: object"),
        ({"type": "object", "properties": {}}, "p?: {}"),
        ({"type": "object", "additionalProperties": False}, "p?: {}"),
        ({"properties": {"a": {"type": "string"}, "b c": {}}, "required": ["a"]}, 'p?: {a: string, "b c"?: any}'),
        ({"additionalProperties": {"type": "integer"}}, "p?: {[key: string]: integer}"),
        ({"properties": {"a": {}}, "additionalProperties": True}, "p?: {a?: any, [key: string]: any}"),
        ({"type": "array"}, "p?: any[]"),
        ({"items": {"type": "string"}}, "p?: string[]"),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "p?: (string | null)[]"),
        ({"items": {"type": "array", "items": {"properties": {"a": {}}}}}, "p?: {a?: any}[][]"),
        ({"prefixItems": [{"type": "string"}, {}], "items": False}, "p?: [string, any]"),
        ({"prefixItems": [{"type": "string"}]}, "p?: [string, ...any[]]"),
        ({"items": [{"type": "null"}], "additionalItems": {"enum": [1, 2]}}, "p?: [null, ...(1 | 2)[]]"),
        ({"enum": ["a", 'b"', 1, None, [1], {"c": "d"}]}, 'p?: "a" | "b\\"" | 1 | null | [1] | {"c":"d"}'),
        ({"type": "string", "enum": ["a"]}, 'p?: "a"'),
        ({"type": ["string", "null"], "enum": ["a", None], "default": None}, 'p?: "a" | null = null'),
        ({"const": {"a": 1}}, 'p?: {"a":1}'),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}, "p?: string | any[]"),
        ({"oneOf": [{"enum": [1, 2]}, {"type": "null"}]}, "p?: 1 | 2 | null"),
        ({"allOf": [{"type": "object"}, {"anyOf": [{"type": "a"}, {"type": "b"}]}]}, "p?: object & (a | b)"),
        ({"type": "str"}, "p?: str"),
        ({"title": "P", "$schema": "http://json-schema.org/draft-07/schema#"}, "p?: any"),
    ],
)
def test_what_a_type_says(schema: Json, line: str) -> None:
    assert member(schema) == line


@pytest.mark.parametrize(
    ("schema", "lines"),
    [
        ({"type": "string", "description": "A town.\nOr a village"}, "// A town.\n// Or a village\np?: string"),
        ({"type": "string", "format": "date", "x-a": {"b": [1]}}, '// format: "date", "x-a": {"b":[1]}\np?: string'),
        ({"description": {"a": 1}, "title": "Other"}, '// description: {"a":1}, title: "Other"\np?: any'),
        ({"type": "integer", "enum": ["a"]}, '// type: "integer"\np?: "a"'),
        ({"type": "boolean", "enum": [0]}, '// type: "boolean"\np?: 0'),
        ({"enum": []}, "// enum: []\np?: any"),
        ({"type": "dict", "properties": {"a": {}}}, '// type: "dict"\np?: {a?: any}'),
        ({"type": 5}, "// type: 5\np?: any"),
        ({"type": 5, "enum": [1]}, "// type: 5\np?: 1"),
        ({"type": "a b"}, '// type: "a b"\np?: any'),
        ({"type": ["string", {}]}, '// type: ["string",{}]\np?: any'),
        ({"type": "string", "required": True}, "// required: true\np?: string"),
        ({"properties": {"a": {}}, "required": ["a", "z"]}, '// required: ["a","z"]\np?: {a: any}'),
        ({"properties": {"a": {}}, "required": ["a", 5]}, '// required: ["a",5]\np?: {a: any}'),
        ({"properties": ["a"], "required": ["a"]}, '// properties: ["a"], required: ["a"]\np?: object'),
        ({"properties": {}, "additionalProperties": "no"}, '// additionalProperties: "no"\np?: {}'),
        ({"items": "string"}, '(\n// schema: "string"\nany\n)[]'),
        ({"items": {"type": "string", "maxLength": 3}}, "p?: (\n// maxLength: 3\nstring\n)[]"),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, '// anyOf: [{"required":["a"]}]\np?: object'),
        ({"anyOf": "x", "oneOf": []}, '// anyOf: "x", oneOf: []\np?: any'),
        (
            {"anyOf": [{"type": "string", "format": "date"}, {"properties": {"a": {"minimum": 1}}}]},
            'p?:\n// format: "date"\n| string\n| {\n// minimum: 1\na?: any,\n}',
        ),
        ({"anyOf": [{"type": "string", "default": "a"}, {"type": "null"}]}, 'p?:\n| string = "a"\n| null'),
        ({"$ref": "#"}, '// $ref: "#"\np?: any'),
        ({"$ref": "https://example.com/a"}, '// $ref: "https://example.com/a"\np?: any'),
        ("string", '// schema: "string"\np?: any'),
        ([1], "// schema: [1]\np?: any"),
    ],
)
def test_what_a_type_cannot_say_is_a_comment(schema: Json, lines: str) -> None:
    assert member(schema).endswith(lines)


def test_a_tool_is_a_function() -> None:
    parameters = {"type": "object", "description": "All of it.", "minProperties": 1, "properties": {"a": {}}}
    assert written(parameters, "get-x.y", "Gets.\n\nAlways.") == (
        "// Gets.\n//\n// Always.\n// All of it.\n// minProperties: 1\nfunction get-x.y(arguments: {a?: any})"
    )
    assert written({"properties": {"a": {}}, "default": {"a": 1}}, 'a "tool"') == (
        r'function "a \"tool\""(arguments: {a?: any} = {"a":1})'
    )
    extra = {"format": {"type": "text"}, "input_examples": [{"a": None}]}
    assert signature(definition(Tool("t", "D.", extra=extra))) == (
        '// D.\n// format: {"type":"text"}, input_examples: [{"a":null}]\nfunction t()'
    )


@pytest.mark.parametrize(
    ("parameters", "lines"),
    [
        (None, "function t()"),
        ({}, "function t()"),
        ({"type": "object", "properties": {}}, "function t()"),
        ({"type": "object"}, "function t(arguments: object)"),
        (True, "function t(arguments: any)"),
        ("x", '// schema: "x"\nfunction t(arguments: any)'),
    ],
)
def test_arguments_of_any_shape(parameters: Json, lines: str) -> None:
    assert written(parameters) == lines


def test_definitions_follow_under_their_names() -> None:
    schema = {
        "properties": {"root": {"$ref": "#/$defs/Node"}, "old": {"$ref": "#/definitions/Node"}},
        "$defs": {
            "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}}, "title": "Node"},
            "unused": {"enum": ["kept"]},
        },
        "definitions": {"Node": {"type": "string"}},
    }
    assert written(schema).split("\n") == [
        "function t(arguments: {root?: Node, old?: Node_})",
        "type Node = {next?: Node}",
        'type unused = "kept"',
        "type Node_ = string",
    ]


@pytest.mark.parametrize(
    ("key", "ref", "name"),
    [
        ("List[int]", "#/$defs/List%5Bint%5D", "List_int_"),
        ("List[int]", "#/$defs/List[int]", "List_int_"),
        ("a/b~c", "#/$defs/a~1b~0c", "a_b_c"),
        ("string", "#/$defs/string", "string_"),
        ("1st", "#/$defs/1st", "T1st"),
    ],
)
def test_names_of_definitions_become_words(key: str, ref: str, name: str) -> None:
    lines = written({"properties": {"p": {"$ref": ref}}, "$defs": {key: {"type": "null"}}})
    assert lines == f"function t(arguments: {{p?: {name}}})\ntype {name} = null"


def test_definitions_that_are_none_stay_json() -> None:
    assert written({"properties": {}, "$defs": [1]}) == "// $defs: [1]\nfunction t()"


def test_what_lies_very_deep_is_json() -> None:
    schema: Json = {"type": "string", "description": "the bottom"}
    for _ in range(DEEPEST + 5):
        schema = {"type": "array", "items": schema}
    lines = member(schema)
    assert lines.startswith("p?: (\n// schema: ") or "[]" in lines
    assert "the bottom" in lines


def nodes(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of everything inside ``value``."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from nodes(inner, (*path, key))


def parent_of(schema: Json, path: tuple[str | int, ...]) -> Any:
    for step in path[:-1]:
        schema = schema[step]
    return schema


def is_taken_as_read(name: str, keyword: str | int, value: Json, beside: Json) -> bool:
    """Whether a keyword of what is called ``name`` is said without being written."""
    match keyword, value:
        case "$schema", str():
            return True
        case "additionalProperties", False:
            return True
        case "title", str():
            return re.sub(r"[_ ]", "", name.lower()) == re.sub(r"[_ ]", "", value.lower())
        case "type", str():
            return not beside.keys().isdisjoint({"enum", "const", "properties", "items", "additionalProperties"})
    return False


@pytest.mark.parametrize("tool", CATALOGUE, ids=lambda tool: tool.name)
def test_nothing_is_lost(tool: Tool) -> None:
    """Whatever is taken out of a tool, or changed in it, is missed in its signature."""
    shown = definition(tool)
    assert signature(shown) == signature(copy.deepcopy(shown))
    for path in nodes(shown):
        if path in (("name",), ("parameters",)):
            continue
        parent = parent_of(shown, path)
        value = parent[path[-1]]
        called = str(path[-2]) if len(path) > 2 else tool.name
        if is_taken_as_read(called, path[-1], value, parent):
            continue
        without = copy.deepcopy(shown)
        del parent_of(without, path)[path[-1]]
        assert signature(without) != signature(shown), path
        if isinstance(value, (str, int, float)) and path[-1] != "$ref":
            changed = copy.deepcopy(shown)
            parent_of(changed, path)[path[-1]] = f"{value}x" if isinstance(value, str) else not value
            assert signature(changed) != signature(shown), path


@pytest.mark.parametrize("tool", CATALOGUE, ids=lambda tool: tool.name)
def test_it_is_shorter_than_json(tool: Tool) -> None:
    assert len(signature(definition(tool))) < len(to_json(definition(tool)))


words = risky_text | st.sampled_from(["type", "string", "title", "default"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words, lambda inner: st.lists(inner, max_size=3), max_leaves=3
)
schemas = st.recursive(
    st.booleans() | st.fixed_dictionaries({}, optional={"type": words | st.lists(words), "enum": json_values}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(words, inner, max_size=2) | json_values,
            "required": st.lists(words, max_size=2) | json_values,
            "items": inner | st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=2) | json_values,
            "additionalProperties": inner,
            "$defs": st.dictionaries(words, inner, max_size=2),
            "description": words | json_values,
            "title": json_values,
            "default": json_values,
        },
    ),
    max_leaves=5,
)


@given(words, words, schemas | json_values)
def test_any_tool_is_written_and_stays_in_its_place(name: str, description: str, schema: Json) -> None:
    lines = written(schema, name, description).split("\n")
    assert markup_in("\n".join(lines)) == []
    (head,) = [line for line in lines if line.startswith("function ")]
    assert head.startswith((f"function {name}(", f"function {to_json(name)}("))
    assert all(line.startswith("//") for line in lines[: lines.index(head)])

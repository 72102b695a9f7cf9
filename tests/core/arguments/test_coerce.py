from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.coerce import coerce, typed
from proxy.core.arguments.jsontext import dumps, loads
from proxy.core.arguments.outline import Outline

INTEGER = {"type": "integer"}
NULLABLE = {"anyOf": [INTEGER, {"type": "null"}]}
TREE = {"properties": {"v": INTEGER, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}


def _one(schema: Any, text: str) -> str:
    """What the value ``text`` of one member becomes."""
    outline = Outline({"properties": {"x": schema}, "$defs": {"tree": TREE}})
    return coerce(outline, f'{{"x": {text}}}')[0][len('{"x": ') : -1]


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (INTEGER, '"3"', "3"),
        (INTEGER, '" 3 "', "3"),
        (INTEGER, '"5.0"', "5.0"),
        (INTEGER, '"' + "7" * 5_000 + '"', "7" * 5_000),
        ({"type": "integer", "minimum": 10}, '"3"', "3"),
        ({"type": "number"}, '"1e3"', "1e3"),
        ({"type": "boolean"}, '"false"', "false"),
        ({"type": "boolean"}, '"True"', "true"),
        ({"type": "null"}, '"null"', "null"),
        ({"type": "array"}, '"[\\"a\\"]"', '["a"]'),
        ({"type": "array"}, "\"['a', 'b']\"", '["a", "b"]'),
        ({"type": "array", "items": INTEGER}, '"[\\"1\\", 2]"', "[1, 2]"),
        ({"type": "object"}, '"{\\"a\\": 1}"', '{"a": 1}'),
        ({"type": "string"}, "5", '"5"'),
        ({"type": "string"}, "1e5", '"1e5"'),
        ({"type": "string"}, "true", '"true"'),
        ({"enum": [1, 2]}, '"1"', "1"),
        ({"enum": ["1", "2"]}, "1", '"1"'),
        ({"const": True}, '"true"', "true"),
        (NULLABLE, '"5"', "5"),
        (NULLABLE, '"null"', "null"),
        ({"type": ["integer", "null"]}, '"None"', "null"),
        ({"type": "integer", "nullable": True}, '"null"', "null"),
        ({"allOf": [{"type": ["integer", "string"]}, INTEGER]}, '"5"', "5"),
        (
            {"$ref": "#/$defs/tree"},
            '{"v": "1", "kids": [{"v": "2"}, {"kids": []}]}',
            '{"v": 1, "kids": [{"v": 2}, {"kids": []}]}',
        ),
        ({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"n": INTEGER}}]}, '{"n": "1"}', '{"n": 1}'),
        ({"type": "object", "additionalProperties": INTEGER}, '{"n": "1"}', '{"n": 1}'),
        ({"prefixItems": [{"type": "string"}, INTEGER]}, '[1, "2", "3"]', '["1", 2, "3"]'),
        (
            {"items": [{"type": "string"}, INTEGER], "additionalItems": {"type": "boolean"}},
            '[1, "2", "true"]',
            '["1", 2, true]',
        ),
    ],
)
def test_converted(schema: Any, text: str, expected: str) -> None:
    assert _one(schema, text) == expected


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, '"5"'),
        ({"description": "any JSON"}, '"5"'),
        (True, '"5"'),
        (False, '"5"'),
        ({"type": ["string", "integer"]}, '"5"'),
        ({"anyOf": [{"type": "string"}, INTEGER]}, '"5"'),
        ({"type": "string"}, '"{\\"a\\": 1}"'),
        ({"type": "string"}, "null"),
        ({"type": "string"}, '{"a": 1}'),
        ({"type": ["string", "null"]}, '"null"'),
        (INTEGER, '"three"'),
        (INTEGER, '"5.5"'),
        (INTEGER, '""'),
        (INTEGER, '"0x10"'),
        (INTEGER, "5.0"),
        (INTEGER, "5.5"),
        (INTEGER, "true"),
        (INTEGER, "null"),
        ({"type": "boolean"}, "1"),
        ({"type": "boolean"}, '"yes"'),
        ({"type": "array"}, '"a, b"'),
        ({"type": "array"}, '"[1"'),
        ({"type": "array"}, "5"),
        ({"type": "str"}, "5"),
        ({"$ref": "#/$defs/nobody"}, '"5"'),
        ({"enum": ["a", "b"]}, '"c"'),
        ({"anyOf": [{"type": "object", "properties": {"n": INTEGER}}, {"type": "object"}]}, '{"n": "1"}'),
    ],
)
def test_left(schema: Any, text: str) -> None:
    assert _one(schema, text) == text


def test_the_rest_stays_byte_for_byte() -> None:
    outline = Outline({"properties": {"n": INTEGER, "s": {"type": "string"}}})
    text = '{ "s":"\\u00e9\\/" ,\n"big" :4611686018427387905, "n":"3","f": 1E+400 }'
    mended, problems = coerce(outline, text)
    assert mended == text.replace('"3"', "3")
    assert [(problem.kind, problem.message) for problem in problems] == [("coerced", 'n: "3" was read as 3.')]


def test_many_conversions_are_told_in_few_words() -> None:
    outline = Outline({"properties": {"l": {"items": INTEGER}}})
    mended, problems = coerce(outline, dumps({"l": [str(n) for n in range(100)] + ["x" * 1_000]}))
    assert loads(mended)["l"][:2] == ["0", "1"]
    assert len(problems) == 9
    assert problems[-1].message == "92 more values were converted."


def test_depth() -> None:
    outline = Outline({"$defs": {"tree": TREE}, "$ref": "#/$defs/tree"})
    text = '{"kids": [' * 150 + '{"v": "1"}' + "]}" * 150
    assert coerce(outline, text)[0] == text.replace('"1"', "1")


schemas = st.recursive(
    st.sampled_from([{"type": kind} for kind in ("string", "integer", "number", "boolean", "null", "array", "object")])
    | st.sampled_from([{}, {"enum": ["1", 2]}, {"enum": [1, True]}, {"const": "true"}]),
    lambda inner: st.one_of(
        st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda some: {"type": "array", "items": some}, inner),
        st.builds(lambda some: {"type": "object", "properties": {"a": some}}, inner),
    ),
    max_leaves=4,
)
texts = st.recursive(
    st.sampled_from(
        [
            "1",
            "1.50",
            "-2e3",
            "true",
            "null",
            '"1"',
            '"true"',
            '"null"',
            '"[1, \\"2\\"]"',
            '"{\\"a\\": \\"1\\"}"',
            '"x"',
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda some: f"[{', '.join(some)}]") | inner.map('{{"a": {}}}'.format)
    ),
    max_leaves=4,
)


@given(schemas, texts)
def test_coercion_is_idempotent_and_says_what_it_does(schema: Any, text: str) -> None:
    outline = Outline({"properties": {"a": schema}})
    once, problems = coerce(outline, f'{{"a": {text}}}')
    assert coerce(outline, once) == (once, ())
    assert bool(problems) is (once != f'{{"a": {text}}}')


@given(schemas, texts)
def test_coercion_loses_nothing(schema: Any, text: str) -> None:
    outline = Outline({"properties": {"a": schema}})
    assert _spoken(loads(coerce(outline, f'{{"a": {text}}}')[0])["a"]) == _spoken(loads(text))


def _spoken(value: Any) -> Any:
    """``value`` with every scalar as the text that it would be without quotes, and JSON in strings read."""
    if isinstance(value, dict):
        return {key: _spoken(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_spoken(part) for part in value]
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return _spoken(loads(value))
    return value if isinstance(value, str) else dumps(value)


@pytest.mark.parametrize(
    ("schema", "raw", "expected"),
    [
        ({"type": "string"}, "tide tables", '"tide tables"'),
        ({"type": "string"}, "10", '"10"'),
        ({"type": "string"}, '{"a": 1}', '"{\\"a\\": 1}"'),
        ({"type": "string"}, '"quoted"', '"\\"quoted\\""'),
        ({"type": "string"}, "  x = 1\n", '"  x = 1\\n"'),
        ({"enum": ["c", "f"]}, "c", '"c"'),
        ({"enum": ["c", "f"]}, '"c"', '"c"'),
        ({"enum": ["1", "2"]}, "1", '"1"'),
        ({"enum": [1, 2]}, "1", "1"),
        (INTEGER, "10", "10"),
        (INTEGER, " 10\n", "10"),
        (INTEGER, "7" * 5_000, "7" * 5_000),
        (INTEGER, "5.5", "5.5"),
        (INTEGER, "three", '"three"'),
        (INTEGER, '"10"', '"10"'),
        (INTEGER, "", '""'),
        ({"type": "number"}, "1e10", "1e10"),
        ({"type": "boolean"}, "True", "true"),
        ({"type": "boolean"}, "false", "false"),
        (NULLABLE, "null", "null"),
        (NULLABLE, "None", "null"),
        ({"type": "array"}, '[{"id": 1, "on": true}]', '[{"id": 1, "on": true}]'),
        ({"type": "array"}, "['a', True]", '["a", true]'),
        ({"type": "array"}, "a, b", '"a, b"'),
        ({"type": "array"}, "[1", '"[1"'),
        ({"type": ["string", "null"]}, "null", "null"),
        ({"type": ["string", "null"]}, "12", '"12"'),
        ({"type": ["string", "integer"]}, "7", "7"),
        ({"type": ["string", "integer"]}, "2 dollars", '"2 dollars"'),
        ({"type": ["string", "object"]}, '{"a": 1}', '{"a": 1}'),
        ({"type": ["string", "boolean"]}, "True", '"True"'),
        ({}, "42", '"42"'),
        ({}, "true", "true"),
        ({}, "null", "null"),
        ({}, '[1, "a"]', '[1, "a"]'),
        ({}, '{"a": 1}', '{"a": 1}'),
        ({}, '"a"', '"\\"a\\""'),
        ({}, "True", '"True"'),
        ({}, "\ud83c", '"\\ud83c"'),
    ],
)
def test_typed(schema: Any, raw: str, expected: str) -> None:
    assert typed(Outline(schema), (schema,), raw) == expected


@pytest.mark.parametrize(("raw", "expected"), [("42", "42"), ('"a"', '"a"'), ("a", '"a"'), ("True", '"True"')])
def test_typed_where_the_dialect_says_that_it_is_json(raw: str, expected: str) -> None:
    assert typed(Outline({}), (), raw, explicit=True) == expected
    assert typed(Outline({}), ({"type": "string"},), "42", explicit=True) == "42"


@given(schemas, st.text() | texts)
def test_any_text_can_be_typed(schema: Any, raw: str) -> None:
    loads(typed(Outline(schema), (schema,), raw))

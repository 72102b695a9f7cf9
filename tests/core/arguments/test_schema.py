from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.schema import ToolSchema
from proxy.core.model import Json

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}, "any": {}},
    "required": ["city"],
}
DEEP: dict[str, Any] = {}
for _ in range(2_000):
    DEEP = {"anyOf": [DEEP]}
CHAIN = {"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)}, "$ref": "#/$defs/d0"}
ODD = [
    None,
    True,
    False,
    5,
    "x",
    [1],
    {},
    {"type": "str"},
    {"$ref": "#"},
    {"properties": [1]},
    {"$ref": "#/a"},
    DEEP,
    CHAIN,
]


def _messages(schema: ToolSchema, text: str) -> list[str]:
    problems = schema.validate(text)
    assert {problem.kind for problem in problems} <= {"invalid_arguments"}
    return [problem.message for problem in problems]


def test_coerce_then_validate() -> None:
    schema = ToolSchema(WEATHER)
    assert schema.problem is None
    text, problems = schema.coerce('{"days": "3", "city": 5, "any": "7"}')
    assert text == '{"days": 3, "city": "5", "any": "7"}'
    assert [problem.kind for problem in problems] == ["coerced", "coerced"]
    assert schema.validate(text) == ()
    assert _messages(schema, '{"days": 0}') == [
        "the arguments: city is required, but missing.",
        "days: 0 is less than the minimum of 1.",
    ]


@pytest.mark.parametrize(
    ("dialect", "member", "value"),
    [
        ("http://json-schema.org/draft-07/schema#", {"$ref": "#/$defs/any", "type": "string"}, "5"),
        ("http://json-schema.org/draft-04/schema#", {"const": 5}, '"5"'),
        ("https://json-schema.org/draft/2019-09/schema", {"prefixItems": [{"type": "integer"}]}, '["5"]'),
    ],
)
def test_what_would_be_converted_is_not_accepted_though_its_dialect_does_not_mind(
    dialect: str, member: Json, value: str
) -> None:
    schema = ToolSchema(
        {"$schema": dialect, "properties": {"a": member, "b": {"type": "string"}}, "$defs": {"any": {}}}
    )
    text = f'{{"a": {value}}}'
    assert schema.validate(text) == ()
    assert schema.coerce(text)[0] != text
    assert not schema.accepts(text)


@pytest.mark.parametrize("dialect", [None, "http://json-schema.org/draft-07/schema#"])
def test_valid_arguments_are_accepted(dialect: str | None) -> None:
    schema = ToolSchema({**WEATHER, **({} if dialect is None else {"$schema": dialect})})
    assert schema.accepts('{"days": 3, "city": "Oslo"}')
    assert not schema.accepts('{"days": "3", "city": "Oslo"}')


@pytest.mark.parametrize(
    ("schema", "text", "valid"),
    [
        (None, '{"a": 1}', True),
        ({}, "{}", True),
        (False, "{}", False),
        ({"properties": {"n": {"type": "integer"}}}, '{"n": 4611686018427387905}', True),
        ({"properties": {"n": {"type": "integer"}}}, '{"n": 5.0}', True),
        ({"properties": {"n": {"type": "integer"}}}, '{"n": ' + "7" * 5_000 + "}", True),
        ({"properties": {"n": {"type": "integer"}}}, '{"n": ' + "7" * 5_000 + ".5}", False),
        ({"properties": {"n": {"maximum": 10**30}}}, '{"n": 1000000000000000000000000000001}', False),
        ({"properties": {"n": {"maximum": 10**30}}}, '{"n": 1e400}', False),
        ({"properties": {"n": {"type": "string", "nullable": True}}}, '{"n": null}', True),
        ({"properties": {"n": {"type": "string"}}}, '{"n": "\\ud800"}', True),
        ({"properties": {"n": {"type": "string", "format": "date"}}}, '{"n": "tomorrow"}', True),
        ({"$schema": "https://example.com/own", "required": ["a"]}, "{}", False),
        ({"not": {"required": ["a"]}}, '{"a": 1}', False),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"a": 1, "b": 2}', False),
        ({"properties": {"a": {"pattern": "(?=a)(a+)+$"}}}, '{"a": "' + "a" * 5_000 + '!"}', True),  # cannot be told
        (None, "[1]", False),
        (None, '"{}"', False),
        (None, "{", False),
        (None, "", False),
    ],
)
def test_validate(schema: Any, text: str, valid: bool) -> None:
    tool = ToolSchema(schema)
    assert tool.problem is None
    messages = _messages(tool, text)
    assert (messages == []) is valid
    assert all(message.endswith(".") for message in messages)


def test_only_the_first_faults_are_told() -> None:
    assert (
        len(
            ToolSchema({"additionalProperties": {"type": "string"}}).validate(
                str({f'"{n}"': n for n in range(50)}).replace("'", "")
            )
        )
        == 8
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"n": {"type": "str"}, "m": {"type": "integer"}}},
        {"properties": {"n": {"type": "integer", "required": True}, "m": {"type": "integer"}}},
        {"properties": {"n": {"$ref": "#/nowhere"}, "m": {"type": "integer"}}},
        {"properties": {"n": {"$ref": "https://example.com/schema.json"}, "m": {"type": "integer"}}},
        {"properties": {"n": {"pattern": "("}, "m": {"type": "integer"}}},
    ],
)
def test_a_schema_that_does_not_compile_serves_without_validation(schema: Any) -> None:
    tool = ToolSchema(schema)
    assert tool.problem is not None
    assert tool.problem.kind == "schema"
    assert tool.problem.message.startswith("The tool's schema cannot be used, its arguments are not validated: ")
    assert "\n" not in tool.problem.message
    assert tool.validate('{"n": []}') == ()
    assert tool.coerce('{"n": "x", "m": "5"}')[0] == '{"n": "x", "m": 5}'


@pytest.mark.parametrize("schema", [5, "x", [1], DEEP, CHAIN])
def test_what_is_no_schema_at_all(schema: Any) -> None:
    tool = ToolSchema(schema)
    assert tool.problem is not None
    assert tool.coerce('{"a": "1"}') == ('{"a": "1"}', ())
    assert tool.validate('{"a": "1"}') == ()
    assert tool.typed("a", "x") == '"x"'


def test_depth() -> None:
    tree = {"properties": {"kid": {"$ref": "#/$defs/tree"}, "v": {"type": "integer"}}}
    tool = ToolSchema({"$defs": {"tree": tree}, "$ref": "#/$defs/tree"})
    text = '{"kid": ' * 200 + '{"v": "x"}' + "}" * 200
    assert _messages(tool, text) == ["kid" + ".kid" * 199 + '.v: must be integer, not the string "x".']
    assert tool.validate('{"kid": ' * 700 + '{"v": "x"}' + "}" * 700) == ()  # too deep to be checked


def test_typed() -> None:
    tool = ToolSchema({**WEATHER, "additionalProperties": {"type": "boolean"}})
    assert tool.typed("city", "10") == '"10"'
    assert tool.typed("days", "10") == "10"
    assert tool.typed("other", "True") == "true"
    assert ToolSchema(WEATHER).typed("undeclared", "[1]") == "[1]"
    assert ToolSchema({**WEATHER, "additionalProperties": False}).typed("undeclared", "10") == '"10"'


def test_typed_by_the_dialect_itself() -> None:
    assert ToolSchema(None).typed("a", "10", string=False) == "10"
    assert ToolSchema(WEATHER).typed("days", "10", string=True) == '"10"'


@pytest.mark.parametrize(
    ("schema", "admitted"),
    [
        ({"type": "string"}, True),
        ({"type": ["string", "null"]}, True),
        ({}, True),
        ({"enum": ["a", "b"]}, True),
        ({"enum": ["a", 1]}, False),  # "1" would become 1
        ({"anyOf": [{"const": "a"}, {"type": "integer"}]}, False),
        ({"type": "integer"}, False),
        ({"$ref": "#/$defs/s"}, True),
    ],
)
def test_admits_string(schema: Any, admitted: bool) -> None:
    tool = ToolSchema({"properties": {"a": schema}, "$defs": {"s": {"type": "string"}}})
    assert tool.admits_string("a") is admitted
    assert tool.admits_string("undeclared")


@given(st.sampled_from(ODD), st.text() | st.sampled_from(['{"a": "1"}', "{}", '{"a": {"a": [1]}}', "[" * 5_000]))
def test_nothing_raises(schema: Any, text: str) -> None:
    tool = ToolSchema(schema)
    mended, _ = tool.coerce(text)
    tool.validate(mended)
    tool.typed("a", text)
    tool.admits_string(text)

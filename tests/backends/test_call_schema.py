"""Tools to a JSON Schema of one call, within bounds whatever the tools."""

from __future__ import annotations

import json

import pytest
from jsonschema_rs import validator_for

from proxy.backends.call_schema import MAX_TEXT, call_schema
from proxy.core.model import Json, Tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [Tool("get_weather", parameters=CITY), Tool("get_time"), Tool("note", parameters={"type": "object"})]


def accepts(tools: list[Tool], name: str, arguments: Json) -> bool:
    schema = call_schema(tools)
    assert schema is not None
    assert len(json.dumps(schema)) <= MAX_TEXT
    return validator_for(schema).is_valid({"name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("name", "arguments", "fits"),
    [
        ("get_weather", {"city": "Oslo"}, True),
        ("get_weather", {}, False),
        ("get_weather", "Oslo", False),
        ("get_time", {}, True),
        ("get_time", {"city": "Oslo"}, False),
        ("note", {"anything": [1, {"at": "all"}]}, True),
        ("note", 5, False),
        ("get_news", {}, False),
    ],
)
def test_a_call_is_one_of_the_tools_with_arguments_of_its_own(name: str, arguments: Json, fits: bool) -> None:
    assert accepts(TOOLS, name, arguments) is fits


def test_a_call_has_a_name_and_arguments_and_nothing_else() -> None:
    schema = call_schema(TOOLS, arguments="parameters")
    assert schema is not None
    check = validator_for(schema).is_valid
    assert check({"name": "get_time", "parameters": {}})
    wrong: list[Json] = [{"name": "get_time"}, {"name": "get_time", "parameters": {}, "x": 1}, {"parameters": {}}, []]
    assert not any(map(check, wrong))


def test_without_tools_there_is_no_schema() -> None:
    assert call_schema([]) is None


@pytest.mark.parametrize("name", ['say "hi"', "back\\slash", "new\nline"])
def test_names_that_some_servers_would_copy_wrongly_leave_none(name: str) -> None:
    assert call_schema([*TOOLS, Tool(name)]) is None


@pytest.mark.parametrize(
    "schema",
    [
        True,
        "object",
        ["city"],
        {"type": "string"},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
    ],
)
def test_a_schema_that_cannot_be_becomes_any_object(schema: Json) -> None:
    odd = [Tool("odd", parameters=schema), *TOOLS]
    assert accepts(odd, "odd", {"x": [1]})
    assert not accepts(odd, "odd", 1)
    assert not accepts(odd, "get_weather", {"x": [1]})


def large(number: int) -> Tool:
    members = {f"member {n} of tool {number}": {"type": "string"} for n in range(120)}
    return Tool(f"large_{number}", parameters={"type": "object", "properties": members, "required": list(members)})


def test_when_all_is_too_much_the_largest_tools_take_any_object() -> None:
    tools = [large(0), *TOOLS, *map(large, range(1, 20))]
    exact = [number for number in range(20) if not accepts(tools, f"large_{number}", {})]
    assert 0 < len(exact) < 20
    assert not accepts(tools, "get_weather", {})


def test_very_many_tools_share_one_alternative() -> None:
    tools = [Tool(f"tool_{n}", parameters=CITY) for n in range(500)]
    assert accepts(tools, "tool_499", {"x": 1})
    assert not accepts(tools, "tool_500", {})
    assert "anyOf" not in (call_schema(tools) or {})


def test_so_many_tools_that_their_names_are_too_much_have_none() -> None:
    assert call_schema([Tool(f"tool number {n} with a rather long name") for n in range(5_000)]) is None

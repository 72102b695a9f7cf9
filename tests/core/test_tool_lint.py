from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.model import Tool
from proxy.core.tool_lint import MANY_ARGUMENTS, MANY_TOOLS, MOST_FINDINGS, Finding, lint

GOOD = "Reads the current weather of a city, in degrees Celsius."


def tool(name: Any = "get_weather", description: Any = GOOD, **properties: Any) -> Tool:
    """A tool whose arguments have descriptions unless they say otherwise."""
    described = {key: {"description": "What to look for.", **value} for key, value in properties.items()}
    return Tool(name, description, {"type": "object", "properties": described})


def rules(*tools: Tool) -> list[str]:
    return [finding.rule for finding in lint(tools)]


def only(*tools: Tool) -> Finding:
    (finding,) = lint(tools)
    return finding


def test_a_good_tool_has_no_findings() -> None:
    good = tool(
        city={"type": "string", "description": "The city's name, such as 'Chur' or 'Basel'."},
        unit={"enum": ["celsius", "fahrenheit"], "description": "Either celsius or fahrenheit."},
        day={"type": "string", "format": "date"},
        filters={"type": "object", "additionalProperties": {"type": "string"}},
        parts={"type": "array", "items": {"type": "string"}},
        nested={"type": "object", "properties": {"note": {"type": "string", "description": "Free text."}}},
    )
    assert lint([good]) == ()


def test_no_tools_have_no_findings() -> None:
    assert lint([]) == ()


@pytest.mark.parametrize(
    ("description", "rule"),
    [
        ("", "no_description"),
        ("   ", "no_description"),
        ("Get the weather", "vague_description"),
        ("This tool is used to get weather data", "vague_description"),
        ("Forecasts", "vague_description"),
        ("Reads the weather. " * 200, "long_description"),
    ],
)
def test_descriptions(description: str, rule: str) -> None:
    assert rules(tool(description=description)) == [rule]


@pytest.mark.parametrize("name", ["tool", "run_function", "do", "tool1", "x", "func_2"])
def test_names_that_say_nothing(name: str) -> None:
    assert rules(tool(name)) == ["vague_name"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("get_user", "get_users"),
        ("getUser", "get_user"),
        ("user_list", "list_user"),
        ("read_files", "read_filez"),
        ("search_docs_v1", "search_docs_v2"),
    ],
)
def test_names_that_are_easily_taken_for_each_other(first: str, second: str) -> None:
    found = only(tool(first), tool(second, "Something quite different, in a sentence."))
    assert found.rule == "similar_names"
    assert first in found.message
    assert second in found.message


@pytest.mark.parametrize(("first", "second"), [("read_file", "write_file"), ("get_log", "get_job"), ("add", "and")])
def test_names_that_differ_enough(first: str, second: str) -> None:
    assert rules(tool(first), tool(second, "Something quite different, in a sentence.")) == []


def test_tools_that_nothing_tells_apart() -> None:
    assert rules(tool("get_weather"), tool("fetch_forecast")) == ["same_description"]
    assert rules(tool("get_weather"), tool("get_weather", "Another, with the same name.")) == ["same_name"]


def test_too_much() -> None:
    many = [tool(f"{a}{b}_{b}{a}_thing", f"Reads {a}{b} of it.") for a in "abcdef" for b in "uvwxyz"]
    assert len(many) > MANY_TOOLS
    assert rules(*many)[0] == "many_tools"
    long = tool(text={"type": "string", "description": "word " * 8_000})
    assert rules(long) == ["long_tools"]
    wide = tool(**{f"a{number}": {"type": "string"} for number in range(MANY_ARGUMENTS + 1)})
    assert rules(wide) == ["many_arguments"]


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ({"description": "Anything."}, "argument_type"),
        ({"type": "string", "description": ""}, "argument_description"),
        ({"type": "string", "description": "The order: 'asc' or 'desc'."}, "argument_enum"),
        ({"type": "string", "description": 'One of "low", "high".'}, "argument_enum"),
        ({"type": "string", "description": "One of: low, medium, or high"}, "argument_enum"),
        ({"type": "string", "description": "The sort order (asc|desc)."}, "argument_enum"),
        ({"type": "string", "description": "Allowed values are low, high"}, "argument_enum"),
        ({"type": "string", "description": "either fast or slow"}, "argument_enum"),
        ({"type": "array"}, "argument_items"),
        ({"type": "object"}, "argument_items"),
    ],
)
def test_arguments(schema: dict[str, Any], rule: str) -> None:
    found = only(tool(place=schema))
    assert found.rule == rule
    assert "place" in (found.argument or "") + found.message


@pytest.mark.parametrize(
    "description",
    [
        "Names, e.g. 'Chur' or 'Basel'.",
        "A city (or its code).",
        "Must be unique, lower case.",
        "One of the users.",
        "A number; if it is a box, 'true' or 'false'.",
    ],
)
def test_examples_are_no_list_of_values(description: str) -> None:
    assert rules(tool(place={"type": "string", "description": description})) == []


def test_true_or_false_is_a_boolean() -> None:
    assert "boolean" in only(tool(dry={"type": "string", "description": "'true' or 'false'"})).message


@pytest.mark.parametrize("name", ["date", "start_date", "createdSince", "callback_url", "email", "timezone"])
def test_what_nothing_says_how_to_write(name: str) -> None:
    assert rules(tool(**{name: {"type": "string"}})) == ["argument_format"]
    assert rules(tool(**{name: {"type": "string", "pattern": "^x"}})) == []
    assert rules(tool(**{name: {"type": "string", "description": "Such as YYYY."}})) == []
    assert rules(tool(**{name: {"type": "integer"}})) == []


def test_arguments_of_arguments_are_named_by_their_path() -> None:
    inner = {"type": "object", "properties": {"until": {"type": "string", "description": "The end."}}}
    found = only(tool(filters={"type": "array", "items": inner}))
    assert found.argument == "filters[].until"


def test_schemas_that_are_wrong() -> None:
    assert "broken_schema" in rules(Tool("get_weather", GOOD, {"type": "str"}))
    missing = Tool("get_weather", GOOD, {"type": "object", "properties": {}, "required": ["city"]})
    assert only(missing).rule == "unknown_required"


def test_deep_arguments_end() -> None:
    schema: dict[str, Any] = {"type": "string", "description": "The end."}
    for _ in range(100):
        schema = {"type": "object", "description": "More.", "properties": {"more": schema}}
    assert rules(Tool("get_weather", GOOD, schema)) == ["deep_arguments"]


def test_there_is_an_end_to_the_findings() -> None:
    assert len(lint([tool(f"x{number}", "") for number in range(5_000)])) == MOST_FINDINGS


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "required", "description", "enum", "date", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.builds(Tool, name=st.text(min_size=1), description=st.text(), parameters=json_values), max_size=4))
def test_it_never_raises(tools: list[Tool]) -> None:
    for finding in lint(tools):
        assert finding.message

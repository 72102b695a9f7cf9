from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.core.model import Json, Tool
from proxy.testing import values
from tests.support.effort import EXAMPLES
from tests.support.tools import CATALOGUE

KNOWN = [tool for tool in CATALOGUE if tool.parameters is not None and tool.name != "find_recipes"]
"""Those with a schema that is one."""


@given(data=st.data())
@settings(max_examples=EXAMPLES * 2)
def test_values_are_valid_by_the_schemas_that_clients_send(data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(KNOWN))
    assert jsonschema_rs.is_valid(tool.parameters, data.draw(values(tool.parameters)))


TREE = {
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}},
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    "schema",
    [
        TREE,
        {"type": "integer", "exclusiveMinimum": 3, "maximum": 20, "multipleOf": 5},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "minimum": 0, "multipleOf": 0.5, "maximum": 2},
        {"type": "string", "pattern": "^[a-z]+é$"},
        {"type": "string", "pattern": r"^\d{3}$"},
        {"type": "string", "minLength": 20},
        {"type": ["boolean", "null"]},
        {"type": "string", "nullable": True},
        {"allOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"type": "object", "required": ["b"]}]},
        {"oneOf": [{"type": "integer"}, {"enum": ["x", None]}]},
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "integer"}, True], "items": False},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"if": {"type": "string"}, "then": {"maxLength": 2}},
        {"properties": {"a": {"$ref": "#/properties/b/anyOf/0"}, "b": {"anyOf": [{"type": "null"}]}}},
        True,
    ],
    ids=json.dumps,
)
@given(data=st.data())
@settings(max_examples=EXAMPLES // 5)
def test_values_are_valid(schema: Any, data: st.DataObject) -> None:
    if isinstance(schema, dict) and "nullable" in schema:
        assert isinstance(data.draw(values(schema)), str | None)
    else:
        assert jsonschema_rs.is_valid(schema, data.draw(values(schema)))


def test_what_is_no_schema_is_taken_as_far_as_it_goes() -> None:
    found: list[Json] = []

    @settings(database=None)
    @given(
        values(Tool.of({"name": "f", "parameters": {"type": "dict", "properties": {"n": {"type": "int"}}}}).parameters)
    )
    def draw(value: Json) -> None:
        found.append(value)

    draw()
    assert all(isinstance(value, dict) for value in found)
    assert {type(value["n"]) for value in found if "n" in value} == {int}


def test_no_value() -> None:
    assert values(False).is_empty

from __future__ import annotations

from typing import Any

import pytest

from proxy.core.arguments.prepare import prepared


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, True),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"], "nullable": True}),
        ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"], "nullable": True}),
        ({"enum": ["a"], "nullable": True}, {"enum": ["a", None], "nullable": True}),
        ({"type": "string", "nullable": False}, {"type": "string", "nullable": False}),
        ({"$schema": "https://example.com/own", "type": "object"}, {"type": "object"}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            {"$schema": "http://json-schema.org/draft-07/schema#"},
        ),
        ({"$id": "tool", "items": {"$anchor": "a", "$ref": "#/x"}}, {"items": {"$ref": "#/x"}}),
        (
            {"properties": {"id": {"type": "string"}, "enum": {"$id": "x"}}},
            {"properties": {"id": {"type": "string"}, "enum": {}}},
        ),
        ({"const": {"$id": "data"}, "enum": [{"id": "x"}]}, {"const": {"$id": "data"}, "enum": [{"id": "x"}]}),
    ],
)
def test_prepared(schema: Any, expected: Any) -> None:
    assert prepared(schema) == expected


def _doubled(levels: int) -> dict[str, Any]:
    defs = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)}
    return {"$defs": {**defs, f"d{levels}": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


def test_alternatives_that_branch_without_end_are_refused() -> None:
    assert prepared(_doubled(8)) == _doubled(8)
    with pytest.raises(ValueError, match="branch too often"):
        prepared(_doubled(60))


def test_a_recursive_schema_is_fine() -> None:
    schema = {"anyOf": [{"$ref": "#"}, {"properties": {"a": {"$ref": "#"}}}, {"$ref": "#/anyOf/1"}]}
    assert prepared(schema) == schema

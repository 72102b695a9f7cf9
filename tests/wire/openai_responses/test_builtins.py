from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import (
    ResponseApplyPatchToolCall,
    ResponseFunctionShellToolCall,
    ResponseToolSearchCall,
)
from openai.types.responses.response_output_item import LocalShellCall
from pydantic import BaseModel

from proxy.core.model import ToolCall
from proxy.wire.openai_responses.builtins import BUILTINS, CALLS, RESULTS

CASES: list[tuple[str, type[BaseModel], dict[str, Any]]] = [
    ("local_shell", LocalShellCall, {"command": ["ls", "-l"], "working_directory": "/tmp"}),
    ("shell", ResponseFunctionShellToolCall, {"commands": ["ls"], "timeout_ms": 500}),
    ("apply_patch", ResponseApplyPatchToolCall, {"type": "update_file", "path": "a", "diff": "@@\n-x\n+y"}),
    ("apply_patch", ResponseApplyPatchToolCall, {"type": "delete_file", "path": "a"}),
    ("tool_search", ResponseToolSearchCall, {"query": "mail"}),
]


@pytest.mark.parametrize(("name", "model", "arguments"), CASES)
def test_a_call_is_the_item_of_its_type_and_comes_back_as_the_call(
    name: str, model: type[BaseModel], arguments: dict[str, Any]
) -> None:
    row = BUILTINS[name]
    item = row.call_item(ToolCall("call_1", name, json.dumps(arguments)), "x_1")
    assert item
    checked = model.model_validate(item).model_dump()
    assert (checked["call_id"], checked["id"]) == ("call_1", "x_1")
    assert CALLS[item["type"]] is row
    assert json.loads(row.arguments(item)) == arguments


@pytest.mark.parametrize("arguments", ["[]", "not json", '"x"'])
def test_arguments_that_are_no_object_make_no_item(arguments: str) -> None:
    assert BUILTINS["shell"].call_item(ToolCall("c", "shell", arguments), "x") is None


@pytest.mark.parametrize(
    ("action", "text"), [(None, "{}"), ('{"a":1}', '{"a":1}'), ({"command": []}, '{"command":[]}')]
)
def test_an_odd_action_in_the_history_is_still_read(action: Any, text: str) -> None:
    assert BUILTINS["local_shell"].arguments({"action": action}) == text


def test_every_type_has_a_result() -> None:
    assert {row.tool.name for row in RESULTS.values()} == set(BUILTINS)
    assert "tool_search_output" in RESULTS

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


@pytest.mark.parametrize(
    ("name", "arguments", "member", "read"),
    [
        ("shell", {"commands": "ls -l"}, "commands", ["ls -l"]),
        ("shell", {"commands": "[ -f a ] && cat a"}, "commands", ["[ -f a ] && cat a"]),
        ("shell", {"commands": '["ls"]', "timeout_ms": "5"}, "timeout_ms", 5),
        ("local_shell", {"command": "ls -l 'a b'", "env": None}, "command", ["ls", "-l", "a b"]),
        ("local_shell", {"command": '["ls"]'}, "command", ["ls"]),
    ],
)
def test_what_has_one_reading_is_mended(name: str, arguments: dict[str, Any], member: str, read: Any) -> None:
    item = BUILTINS[name].call_item(ToolCall("c", name, json.dumps(arguments)), "x")
    assert item
    model = LocalShellCall if name == "local_shell" else ResponseFunctionShellToolCall
    assert model.model_validate(item).model_dump()["action"][member] == read


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {"x": 1}),
        ("shell", {"commands": ""}),
        ("shell", {"commands": [["ls"]]}),
        ("local_shell", {"command": "it's"}),
        ("local_shell", {"command": ["ls"], "type": "other"}),
        ("local_shell", {"command": ["ls"], "env": {"A": []}}),
        ("apply_patch", {"input": "zz"}),
        ("apply_patch", {"type": "update_file", "path": "a"}),
        ("apply_patch", {"type": "move", "path": "a", "diff": "x"}),
    ],
)
def test_what_does_not_fit_makes_no_item(name: str, arguments: dict[str, Any]) -> None:
    assert BUILTINS[name].call_item(ToolCall("c", name, json.dumps(arguments)), "x") is None


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

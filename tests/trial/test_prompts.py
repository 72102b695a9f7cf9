from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import jsonschema_rs
import pytest

from proxy.core.arguments.schema import ToolSchema
from proxy.trial.judge import Answer, judge
from proxy.trial.prompts import BUILTIN, Prompt, quick, read_prompts
from tests.support.conversations import FIXTURES
from tests.support.models import plain

ALL = read_prompts(BUILTIN, FIXTURES / "quality" / "prompts.jsonl")


def test_there_are_20_to_check_with_and_66_to_measure_with() -> None:
    assert len(read_prompts(BUILTIN)) == 20
    assert len(ALL) >= 60
    assert len({prompt.id for prompt in ALL}) == len(ALL)
    assert min(Counter(prompt.category for prompt in ALL).values()) >= 8


def test_a_quick_trial_has_one_prompt_of_each_category() -> None:
    few = quick(read_prompts(BUILTIN))
    assert len(few) == len({prompt.category for prompt in few}) == 6


@pytest.mark.parametrize("prompt", ALL, ids=lambda prompt: prompt.id)
def test_what_is_expected_can_be_fulfilled_with_the_tools_that_are_offered(prompt: Prompt) -> None:
    calls = [(call.name, json.dumps(plain(call.arguments))) for call in prompt.calls]
    text = prompt.answer[0] if prompt.answer else "Gladly."
    assert judge(prompt, Answer("" if calls else text, calls)).right


@pytest.mark.parametrize("prompt", ALL, ids=lambda prompt: prompt.id)
def test_calls_of_earlier_turns_fit_their_schemas_too(prompt: Prompt) -> None:
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in prompt.tools}
    assert all(jsonschema_rs.meta.is_valid(schema) for schema in schemas.values())
    for message in prompt.messages:
        for call in message.get("tool_calls", ()):
            function = call["function"]
            assert ToolSchema(schemas[function["name"]]).validate(function["arguments"]) == ()


def test_a_file_may_use_the_tools_of_those_before_it(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text('{"tool": "t", "description": "d", "parameters": {}}\n')
    turns = ["Do.", {"call": "t", "arguments": {"a": "é"}, "result": "done"}, {"assistant": "Yes."}, "And?"]
    line = {"prompt": "p", "category": "c", "tools": ["t"], "turns": turns, "calls": []}
    second.write_text(json.dumps(line))
    (prompt,) = read_prompts(first, second)
    assert prompt.tools == ({"type": "function", "function": {"name": "t", "description": "d", "parameters": {}}},)
    call = {"id": "call_2", "type": "function", "function": {"name": "t", "arguments": '{"a": "é"}'}}
    assert prompt.messages == (
        {"role": "user", "content": "Do."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_2", "content": "done"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And?"},
    )

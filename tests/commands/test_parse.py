from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proxy.cli import main

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}]
CALL = '<think>Hm.</think>Now: <tool_call>{"name": "F", "arguments": {"n": "5",}}</tool_call>'


def run(*arguments: str, text: str | bytes = CALL) -> Result:
    return CliRunner().invoke(main, ["parse", *arguments], input=text)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS))
    return str(file)


def test_a_reply_comes_out_as_a_choice(tools: str) -> None:
    reply = json.loads(run("--tools", tools).stdout)
    assert reply["content"] == "Now:"
    assert reply["reasoning_content"] == "Hm."
    assert reply["finish_reason"] == "tool_calls"
    (call,) = reply["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": '{"n": 5}'}
    assert "problems" not in reply


def test_explain_lists_what_was_done(tools: str) -> None:
    reply = json.loads(run("--tools", tools, "--explain").stdout)
    assert {problem["kind"] for problem in reply["problems"]} == {"repaired", "renamed", "coerced"}
    assert all(problem["message"] for problem in reply["problems"])


def test_a_request_may_hold_the_tools(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"tools": TOOLS, "messages": []}))
    assert json.loads(run("--tools", str(file)).stdout)["tool_calls"][0]["function"]["name"] == "f"


def test_any_bytes_are_read() -> None:
    reply = json.loads(run(text=b"\xff<tool_call>{").stdout)
    assert reply["tool_calls"] == []
    assert reply["content"] == "�<tool_call>{"


def test_the_way_of_reading_can_be_set(tools: str) -> None:
    cut = json.loads(run("--finish-reason", "length", text="A. <tool_call>{").stdout)
    assert (cut["content"], cut["finish_reason"]) == ("A.", "length")
    foreign = run("--tools", tools, "--model", "mistral-7b", text="[TOOL_CALLS]g[ARGS]{}")
    assert [call["function"]["name"] for call in json.loads(foreign.stdout)["tool_calls"]] == ["g"]
    prefilled = json.loads(run("--starts-in-reasoning", text="Hm.</think>A.").stdout)
    assert (prefilled["content"], prefilled["reasoning_content"]) == ("A.", "Hm.")


@pytest.mark.parametrize(("content", "word"), [("{", "not JSON"), ("5", "no list"), ('[{"x": 1}]', "without a name")])
def test_a_bad_tools_file_is_said(tmp_path: Path, content: str, word: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(content)
    result = run("--tools", str(file))
    assert result.exit_code == 1
    assert word in result.stderr


def test_an_unknown_dialect_is_said() -> None:
    result = run("--dialect", "klingon")
    assert result.exit_code == 1
    assert "hermes" in result.stderr

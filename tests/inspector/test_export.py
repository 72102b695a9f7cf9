from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.model import Tool
from proxy.inspector.export import curl, fixture, shown_tools
from proxy.inspector.marks import Reading
from proxy.testing import Recording
from tests.support.reading import tool

URL = "http://127.0.0.1:8787/v1/chat/completions"


def run(command: str, folder: Path) -> dict[str, Any]:
    """What a shell would have curl do, which here only says it."""
    fake = folder / "curl"
    fake.write_text("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n")
    fake.chmod(0o755)
    path = f"{folder}:/usr/bin:/bin"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True, env={"PATH": path, "KEY": "secret"})
    words = done.stdout.decode().split("\0")
    return {"url": words[1], "body": words[words.index("--data-raw") + 1], "words": words}


HOSTILE = [
    "'; touch owned; '",
    "$(touch owned) `touch owned` $KEY",
    "\x1b[201~\ntouch owned\n\x1b[200~",
    '\u202e\u200b\x7f\x85 ünïcode 🦑 \\ \\u0000 "',
    "--config\nowned",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_pasting_it_runs_nothing_but_curl(text: str, tmp_path: Path) -> None:
    for given_body in (json.dumps({"a": text}), json.dumps({"a": text}, ensure_ascii=False, indent=1)):
        command = curl(URL, [("anthropic-version", f"2023 {text}")], given_body.encode(), "KEY")
        assert command is not None
        assert command.isascii()
        assert command.isprintable()
        done = run(command, tmp_path)
        assert json.loads(done["body"]) == {"a": text}
        assert done["url"] == URL
        assert "authorization: Bearer secret" in done["words"]
    assert not (tmp_path / "owned").exists()
    assert not Path("owned").exists()


def test_numbers_stay_as_they_are() -> None:
    command = curl(URL, (), b'{"a": 1e5, "b": 12345678901234567890.0}', "KEY")
    assert command is not None
    assert '{"a": 1e5, "b": 12345678901234567890.0}' in command


def test_the_key_is_a_variable_and_headers_are_those_that_matter() -> None:
    command = curl(URL, [("user-agent", "x"), ("anthropic-version", "2023-06-01")], b"{}", "TOOLGRAFT_KEY")
    assert command is not None
    assert '-H "authorization: Bearer $TOOLGRAFT_KEY"' in command
    assert "'anthropic-version: 2023-06-01'" in command
    assert "user-agent" not in command


@pytest.mark.parametrize("body", [b"{oops", b"\xff", b"", b'{"a": "' + b"x" * 200_000 + b'"}'])
def test_what_cannot_be_a_command(body: bytes) -> None:
    assert curl(URL, (), body, "KEY") is None


@given(st.text(), st.text())
def test_a_command_is_one_printable_line(text: str, header: str) -> None:
    command = curl(
        URL, [("openai-beta", header)], json.dumps([text], ensure_ascii=False).encode("utf-8", "replace"), "K"
    )
    assert command is None or (command.isascii() and command.isprintable())


def test_a_fixture_is_as_those_of_the_suite() -> None:
    tools = (tool("weather", city="string"),)
    text = '<think>Hm.</think>Look: <tool_call>{"name": "weather", "arguments": {"city": "Chur"}}</tool_call>'
    reading = Reading(tools, "hermes", "Qwen3")
    made = fixture(text, reading)
    assert made == {
        "model": "Qwen3",
        "dialect": "hermes",
        "text": text,
        "calls": [{"name": "weather", "arguments": {"city": "Chur"}}],
        "content": "Look:",
        "reasoning": "Hm.",
        "tools": shown_tools(tools),
    }
    assert made["tools"][0]["function"]["name"] == "weather"
    assert fixture("x", Reading(starts_in_reasoning=True))["starts_in_reasoning"] is True


CALL = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "error", "tool_calls", None])
@pytest.mark.parametrize("text", [CALL + CALL, CALL[:30], "Hm.</think>Noon.", f"<think>{CALL}</think>", "Noon.</s>"])
@pytest.mark.parametrize("tools", [(), (tool("weather", city="string"),)])
@pytest.mark.parametrize("parallel", [True, False])
def test_a_fixture_can_be_replayed(
    text: str, tools: tuple[Tool, ...], parallel: bool, finish: str | None, tmp_path: Path
) -> None:
    made = fixture(text, Reading(tools, parallel=parallel), finish)
    file = tmp_path / "reply.toolgraft.json"
    file.write_text(json.dumps(made))
    Recording.load(file).check()

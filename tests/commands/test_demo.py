"""The whole demo, on the real model, as a person would run it."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from openai import DefaultHttpxClient, OpenAI

from proxy.cli import main
from proxy.commands.demo import _ask
from tests.support.proxy import free_port

COMMAND = [sys.executable, "-W", "error", "-c", "from proxy.cli import main; main()", "demo"]


@pytest.mark.slow
def test_it_plays_five_loops_then_serves() -> None:
    environ = {**os.environ, "COLUMNS": "160", "PYTHONUNBUFFERED": "1"}
    command = [*COMMAND, "--yes", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, cwd=Path(__file__).parents[2]
    ) as process:
        assert process.stdout is not None
        shown = ""
        for line in process.stdout:
            shown += line
            if "base_url=" in line:
                break
        try:
            assert "5 of 5 loops went as they should" in shown, shown
            assert "\x1b" not in shown  # no colours where there is no terminal
            for heading in ("THE CLIENT SENT", "THE MODEL SAW", "THE CLIENT GOT", "THE MODEL WROTE"):
                assert heading in shown
            assert "(held by a grammar)".upper() in shown
            assert "which cannot be undone. Let it? yes (--yes)" in shown
            assert "without a retry. The person reads: The calendar refused (401)" in shown
            assert one_call(shown.split('base_url="')[1].split('"')[0]) == ("get_weather", '{"city": "Oslo"}')
        finally:
            process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0


def one_call(base_url: str) -> tuple[str, str]:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "Get the weather of a city.", "parameters": schema}
    tools: Any = [{"type": "function", "function": function}]
    with (
        DefaultHttpxClient(trust_env=False) as http,
        OpenAI(base_url=base_url, api_key="unused", http_client=http) as client,
    ):
        reply = client.chat.completions.create(
            model="any",
            messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
            tools=tools,
            tool_choice="required",
            temperature=0,
        )
    calls: Any = reply.choices[0].message.tool_calls
    (call,) = calls
    return call.function.name, call.function.arguments


def test_a_port_in_use_is_told_before_the_model_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("proxy.commands.embedded.embedded_model", None)
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        result = CliRunner().invoke(main, ["demo", "--port", str(port)])
    assert result.exit_code == 1
    assert f"Port {port} on 127.0.0.1 is in use" in result.output


def test_without_the_extra_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "openai" else find(name))
    result = CliRunner().invoke(main, ["demo"])
    assert result.exit_code == 1
    assert 'openai is not installed. Install it with: pip install "toolgraft[local]"' in result.output


@pytest.mark.parametrize(("typed", "answer"), [("y\n", True), ("n\n", False), ("\n", False), ("", False)])
def test_the_person_decides_and_silence_is_no(typed: str, answer: bool) -> None:
    @click.command()
    def ask() -> None:
        click.echo(f"answer: {_ask('Let it?')}")

    result = CliRunner().invoke(ask, input=typed)
    assert f"answer: {answer}" in result.output
    assert ("nobody answers" in result.output) is (typed == "")

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from proxy.cli import main

FILE = """\
port = 9000

[[backend]]
name = "big"
url = ["http://10.0.0.1:8000/v1/chat/completions?code=sk-url", "http://10.0.0.2"]
models = ["qwen3-*"]
aliases = { "gpt-4o" = "qwen3-32b" }
key_env = "BIG_KEY"

[[backend.model]]
match = "old"
dispatcher = "xml"

[[backend]]
name = "small"
url = "http://127.0.0.1:11434"
default = true
forward_client_key = true
only_model = "smol"
dialect = "hermes"
"""


def check(*options: str, **environ: str) -> Result:
    return CliRunner(env=environ).invoke(main, ["check-config", *options])


def test_it_says_what_the_settings_mean_and_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(FILE)
    result = check("--config", str(file), BIG_KEY="sk-big")
    assert result.exit_code == 0, result.output
    assert (
        result.output
        == f"""\
{file} can be used. Listens on 127.0.0.1 port 9000.

big
  at http://10.0.0.1:8000/v1/chat/completions
  at http://10.0.0.2
  gets qwen3-*
  gets gpt-4o as qwen3-32b
  dispatcher auto, dialect auto for the rest
  dispatcher xml, dialect auto for old
  is sent its own key

small
  at http://127.0.0.1:11434
  asked for smol, whatever clients ask for
  gets every model that no other gets
  dispatcher auto, dialect hermes
  is sent the client's key
"""
    )


def test_the_environment_can_be_checked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = check(TOOLGRAFT_BACKEND_URL="http://h")
    assert result.output.startswith("The environment can be used.")
    assert "  gets every model\n" in result.output
    assert "  is sent no key\n" in result.output
    assert check().exit_code == 1


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(FILE)
    result = check("--config", str(file))
    assert result.exit_code == 1
    assert result.output == (
        f"Error: The environment variable BIG_KEY ({file}, line 8: `key_env`) is not set. Export it first.\n"
    )


def test_a_misspelt_variable_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = check(TOOLGRAFT_BACKEND_URL="http://h", TOOLGRAFT_PROT="9000")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: The environment variable TOOLGRAFT_PROT is no setting")

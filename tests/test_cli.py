from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from proxy import cli
from proxy.core.errors import ConfigError


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_of_the_table_is_there(name: str) -> None:
    command = cli.main.get_command(click.Context(cli.main), name)
    assert command
    assert command.name == name
    assert command.help


def test_help_names_the_commands_and_imports_none_of_them() -> None:
    code = "import sys; from proxy.cli import main; main(['--help'], standalone_mode=False); "
    code += "sys.exit(any(name.startswith(('proxy.commands.', 'aiohttp', 'starlette')) for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, summary in cli.COMMANDS.items():
        assert name in done.stdout
        assert summary.split()[0] in done.stdout


def test_an_unknown_command_is_an_error_of_use() -> None:
    result = CliRunner().invoke(cli.main, ["fly"])
    assert result.exit_code == 2
    assert "No such command 'fly'" in result.output


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(cli.main, ["--version"]).output.startswith("toolgraft, version ")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "proxy", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: toolgraft [OPTIONS] COMMAND")


def test_an_error_on_purpose_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise ConfigError("The moon is full. Wait a day.")

    monkeypatch.setattr(cli.Commands, "get_command", lambda *_: broken)
    result = CliRunner().invoke(cli.main, ["serve"])
    assert result.exit_code == 1
    assert result.output == "Error: The moon is full. Wait a day.\n"

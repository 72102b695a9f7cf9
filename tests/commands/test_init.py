from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from proxy.cli import main
from proxy.settings.load import load
from proxy.settings.reference import example


def test_it_writes_a_file_that_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["init"])
    assert (result.exit_code, (tmp_path / "toolgraft.toml").read_text("utf-8")) == (0, example())
    assert "toolgraft check-config" in result.output
    assert load({}, {}, tmp_path / "toolgraft.toml").backends[0].url == "http://127.0.0.1:8080"


def test_it_overwrites_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("mine")
    result = CliRunner().invoke(main, ["init", "--config", str(file)])
    assert (result.exit_code, file.read_text()) == (1, "mine")
    assert "Name another one with --config" in result.output


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["init", "--config", str(tmp_path / "no" / "a.toml")])
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory." in result.output

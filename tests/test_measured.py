"""What was measured is kept, and a file that is broken is as good as none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from proxy import measured
from proxy.core.errors import ConfigError

ROOT = "http://127.0.0.1:8080/v1"


def test_nothing_is_known_at_first() -> None:
    assert measured.examples(ROOT) == {}


def test_what_was_measured_is_known_of_that_backend_and_model(state_file: Path) -> None:
    assert measured.remember(ROOT, ["a", measured.ANY_MODEL], example=True) == state_file
    measured.remember(ROOT, ["b"], example=False)
    measured.remember("http://elsewhere/v1", ["a"], example=False)
    assert measured.examples(ROOT) == {"a": True, "": True, "b": False}
    measured.remember(ROOT, ["a"], example=False)
    assert measured.examples(ROOT) == {"a": False, "": True, "b": False}
    assert [each.name for each in state_file.parent.iterdir() if each.name.startswith(".measured")] == []


def test_the_file_is_in_the_user_s_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TOOLGRAFT_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert measured.state_file() == tmp_path / "toolgraft" / "measured.json"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert measured.state_file() == tmp_path / ".local" / "state" / "toolgraft" / "measured.json"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[1]",
        b"[" * 100_000,
        b'{"version": 2, "backends": {}}',
        b'{"version": 1, "backends": []}',
    ],
)
def test_a_broken_file_is_told_of_and_replaced(
    state_file: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    state_file.parent.mkdir(exist_ok=True)
    state_file.write_bytes(content)
    assert measured.examples(ROOT) == {}
    assert str(state_file) in caplog.text
    measured.remember(ROOT, ["a"], example=True)
    assert measured.examples(ROOT) == {"a": True}


@pytest.mark.parametrize("known", [1, {"a": 1}, {"a": {}}, {"a": {"example": "yes"}}])
def test_an_entry_that_is_none_is_passed_over(state_file: Path, known: object) -> None:
    state_file.parent.mkdir(exist_ok=True)
    state_file.write_text(json.dumps({"version": 1, "backends": {ROOT: known}}))
    assert measured.examples(ROOT) == {}


def test_a_place_that_cannot_be_written_is_told_with_the_mend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOOLGRAFT_STATE", os.path.join(tmp_path, "file", "state.json"))
    with pytest.raises(ConfigError, match="TOOLGRAFT_STATE"):
        measured.remember(ROOT, ["a"], example=True)

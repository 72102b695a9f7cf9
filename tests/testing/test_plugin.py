"""The plugin, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.testing.test_recorded import saved


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTEST_ADDOPTS": "", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True)


def test_recordings_beside_the_tests_are_replayed(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    (tmp_path / "other.json").write_text("{}")
    saved(tmp_path, "good")
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    saved(tmp_path, "other", content="Looked")
    (tmp_path / "none.toolgraft.json").write_text("{}")
    done = run(tmp_path)
    assert done.returncode == 1
    assert "2 failed, 2 passed" in done.stdout
    assert "other is not read as it was recorded:\n--- recorded\n+++ read now\n" in done.stdout
    assert "none.toolgraft.json holds no recorded reply: `text` must be a text" in done.stdout
    assert "Traceback" not in done.stdout

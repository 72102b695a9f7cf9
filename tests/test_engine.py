"""The engine's process by itself: what it needs, what it says, and when it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxy import engine
from proxy.weights import ensure_model


def test_it_says_its_url_once_and_ends_with_its_stdin(tmp_path: Path) -> None:
    options = {"model": str(ensure_model(lambda done, total: None)), "alias": "tiny", "context": 256}
    child = subprocess.run(
        [sys.executable, "-P", engine.__file__, json.dumps({**options, "slots": 1, "threads": 1})],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,  # where this package cannot be imported by accident
    )
    assert child.returncode == 0, child.stderr
    (line,) = child.stdout.splitlines()
    assert json.loads(line)["url"].startswith("http://127.0.0.1:")


def test_a_failure_is_told_without_a_traceback(tmp_path: Path) -> None:
    options = {"model": str(tmp_path / "none.gguf"), "alias": "none", "context": 256, "slots": 1, "threads": 1}
    child = subprocess.run([sys.executable, "-P", engine.__file__, json.dumps(options)], capture_output=True)
    assert child.returncode == 1
    assert child.stdout == b""
    assert b"none.gguf" in child.stderr
    assert b"Traceback" not in child.stderr


@pytest.mark.parametrize(
    ("wanted", "cores", "writing", "reading"),
    [(None, 1, 1, 1), (None, 2, 1, 2), (None, 4, 3, 4), (None, 64, 7, 8), (3, 64, 3, 3), (3, 1, 3, 3)],
)
def test_writing_leaves_a_core_to_others(
    wanted: int | None, cores: int, writing: int, reading: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert engine._threads(wanted) == (writing, reading)

"""The Python of the documentation runs: every block that asks no server, each in a program of its own.

A block that holds tests is given to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import Found, blocks

ASKS = ("openai", "anthropic")
"""What blocks import that ask a running proxy."""

FEW = """
from hypothesis import settings

settings.register_profile("few", max_examples=10, database=None)
settings.load_profile("few")
"""

BLOCKS = blocks("python")
ALONE = [block for block in BLOCKS if not any(f"from {package} import" in block.text for package in ASKS)]


@pytest.mark.parametrize("block", ALONE, ids=str)
def test_a_snippet_runs(block: Found, tmp_path: Path) -> None:
    tests = "\ndef test_" in block.text
    file = tmp_path / ("test_snippet.py" if tests else "snippet.py")
    file.write_text(block.text, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(FEW)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if tests else ["-W", "error"]
    environ = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *command, file.name], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_snippet_is_python(block: Found) -> None:
    compile(block.text, str(block), "exec")


def test_there_are_snippets_in_each_page_that_explains_the_library() -> None:
    assert {block.page.name for block in ALONE} >= {"README.md", "library.md"}

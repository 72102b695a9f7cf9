"""The package tells its types to those who use it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

CONSUMER = Path(__file__).parent / "deploy" / "consumer.py"


def test_the_package_says_that_it_has_types() -> None:
    assert resources.files("proxy").joinpath("py.typed").is_file()


@pytest.mark.slow
def test_a_program_that_uses_the_library_passes_strict_checks(tmp_path: Path) -> None:
    shutil.copy(CONSUMER, tmp_path)
    (tmp_path / "wrong.py").write_text("import proxy\n\nproxy.parse(5)\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache"]
    done = subprocess.run([*command, CONSUMER.name], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run([*command, "wrong.py"], cwd=tmp_path, capture_output=True, text=True)
    assert 'Argument 1 to "parse" has incompatible type "int"; expected "str"' in done.stdout

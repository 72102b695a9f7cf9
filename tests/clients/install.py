"""Installing real clients outside of the tree, apart from each other, and calling them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

NODE = "node@22"
TIMEOUT = 240
"""Seconds that one run of a client has."""

Done = subprocess.CompletedProcess[str]


def place(packages: Sequence[str], directory: Path) -> Path:
    """Where below ``directory`` those live that need ``packages``: together with all that are named by the first."""
    return directory / packages[0].partition("[")[0].replace("/", "-")


def npm(packages: Iterable[str], into: Path) -> Path:
    """Install npm ``packages``, with a Node of their own, and return the directory of their commands."""
    into.mkdir(parents=True, exist_ok=True)
    wanted = sorted({NODE, *(f"{package}@latest" for package in packages)})
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *wanted], cwd=into, check=True)
    # An npm that asks before it runs install scripts has left them out: they put the programs in their places.
    for script in ("node/installArchSpecificPackage.js", "@anthropic-ai/claude-code/install.cjs"):
        path = into / "node_modules" / script
        if path.is_file():
            subprocess.run(["node", path.name], cwd=path.parent, check=True)
    return into / "node_modules" / ".bin"


def pip(packages: Iterable[str], into: Path) -> Path:
    """Install the newest ``packages`` of PyPI in a virtual environment, and return the directory of its commands."""
    if not (into / "bin").is_dir():
        subprocess.run([sys.executable, "-m", "venv", str(into)], check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--upgrade"]
    subprocess.run([str(into / "bin" / "python"), "-m", "pip", "install", *quiet, *packages], check=True)
    return into / "bin"


def version(package: str, commands: Path) -> str:
    """The version of ``package`` that is installed where ``commands`` are."""
    if commands.name == ".bin":
        told: str = json.loads((commands.parent / package / "package.json").read_text())["version"]
        return told
    question = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    python = [str(commands / "python"), "-c", question, package.partition("[")[0]]
    return subprocess.run(python, capture_output=True, text=True, check=True).stdout.strip()


def call(command: Sequence[str], commands: Path, work: Path, home: Path, environment: Mapping[str, str]) -> Done:
    """Run ``command`` with no more of this machine's environment than it needs."""
    own = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "NO_PROXY": "127.0.0.1"}
    try:
        return subprocess.run(
            command,
            cwd=work,
            env=own | dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"not done within {TIMEOUT} seconds")

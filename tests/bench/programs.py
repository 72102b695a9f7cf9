"""The programs that are measured, each in its own process, as they are started by hand."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[2]
SERVE = "from proxy.cli import main; main()"
START_WITHIN = 30.0
BYTECODE = Path(tempfile.gettempdir()) / "toolgraft-bench-bytecode"
"""Where compiled modules are kept: what is installed starts from those, whatever the environment says of that."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running program. ``ready`` is how many seconds it took to listen, ``process`` 0 if it is the backend itself."""

    name: str
    port: int
    process: int = 0
    ready: float = 0.0


@contextlib.contextmanager
def started(name: str, command: Sequence[str], told: str = r"(\d+)", tree: Path = HERE) -> Iterator[Program]:
    """The program that ``command`` starts in ``tree``; it tells its port in a line like ``told``."""
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=tree,
        env=_environment(tree),
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("BENCH_SHOW") else subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                found = re.fullmatch(told, line.strip())
                if found:
                    yield Program(name, int(found[1]), process.pid, time.monotonic() - begun)
                    return
            raise SystemExit(f"{name} did not start")
        finally:
            process.terminate()
            process.wait()


def backend() -> contextlib.AbstractContextManager[Program]:
    """The scripted backend."""
    return started("direct", ["-m", "tests.bench.scripted"])


def floor(port: int) -> contextlib.AbstractContextManager[Program]:
    """The translator by hand, in front of the backend at ``port``."""
    return started("floor", ["-m", "tests.bench.floor", str(port)])


def bare(port: int) -> contextlib.AbstractContextManager[Program]:
    """The translator on the product's libraries, in front of the backend at ``port``."""
    return started("libraries", ["-m", "tests.bench.bare", str(port)])


def product(
    port: int,
    name: str = "toolgraft",
    tree: Path = HERE,
    begin: Sequence[str] = ("-c", SERVE),
    flags: Sequence[str] = (),
) -> contextlib.AbstractContextManager[Program]:
    """``toolgraft serve`` with its defaults but for ``flags``, in front of the backend at ``port``."""
    command = [*begin, "serve", "--backend", f"http://127.0.0.1:{port}/v1", "--port", "0", *flags]
    return started(name, command, r"Toolgraft listens on http://127\.0\.0\.1:(\d+)/v1 .*", tree)


def load(program: Program, kind: str, **wants: float) -> dict[str, float]:
    """What a load on ``program`` measured."""
    job = {"kind": kind, "port": program.port, "process": program.process, **wants}
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.load", json.dumps(job)],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        raise SystemExit(f"{kind} on {program.name}: {done.stderr.strip().splitlines()[-1:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def cpu_of(code: str, tree: Path = HERE) -> float:
    """Seconds of CPU that a new interpreter takes to run ``code``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], cwd=tree, check=True, env=_environment(tree))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _environment(tree: Path) -> dict[str, str]:
    """That of this process, without settings of the product, for programs of ``tree``."""
    ours = {"PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TOOLGRAFT_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, **ours}

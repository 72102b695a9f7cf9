"""Run the public conformance suite with its own runner: ``python -m tests.conformance [canitoolcall run options]``."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from canitoolcall.cli import main

from tests.conformance.expected import OTHERWISE

ENGINE = "tests.conformance.adapter:ToolgraftAdapter"


def run(options: list[str]) -> int:
    """Run the suite, print what differs, and return 1 if that is more than what is known."""
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as out:
        main(["run", "--engine", ENGINE, "--env", f"PYTHONPATH={root}", "--out", out, *options])
        (results,) = Path(out).glob("*.json")
        cases = json.loads(results.read_text())["cases"]
    failed = [case["fixture_id"] for case in cases if case["status"] not in ("pass", "soft_pass")]
    for fixture in failed:
        print(f"{fixture}: {OTHERWISE.get(fixture, 'unexpected')}")
    return int(any(fixture not in OTHERWISE for fixture in failed))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

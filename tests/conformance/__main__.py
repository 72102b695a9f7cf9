"""Run the public conformance suite with its own runner: ``python -m tests.conformance [canitoolcall run options]``."""

from __future__ import annotations

import sys

from tests.conformance.expected import OTHERWISE
from tests.conformance.measure import suite


def run(options: list[str]) -> int:
    """Run the suite, print what differs, and return 1 if that is more than what is known."""
    failed = [case["fixture_id"] for case in suite(*options) if case["status"] not in ("pass", "soft_pass")]
    for fixture in failed:
        print(f"{fixture}: {OTHERWISE.get(fixture, 'unexpected')}")
    return int(any(fixture not in OTHERWISE for fixture in failed))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))

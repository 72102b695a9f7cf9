"""What can be measured without a network: the public suite, its probe over loopback, and our own fixtures."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from canitoolcall.cli import main
from canitoolcall.probe import EQUIVALENCE_CHECK, ProbeReport
from canitoolcall.probe import probe as ask

from proxy.core.dialects import DIALECTS
from proxy.core.forms import Dialect
from proxy.core.grammar import AUTO
from tests.conformance.speaker import speak
from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.replies import REPLIES, Fixture, check

ENGINE = "tests.conformance.adapter:ToolgraftAdapter"
ROOT = Path(__file__).parents[2]


def suite(*options: str) -> list[dict[str, Any]]:
    """The cases of the public suite's own run of its fixtures, as its results file has them."""
    with tempfile.TemporaryDirectory() as out:
        main(["run", "--engine", ENGINE, "--env", f"PYTHONPATH={ROOT}", "--out", out, *options])
        (results,) = Path(out).glob("*.json")
        cases: list[dict[str, Any]] = json.loads(results.read_text())["cases"]
    return cases


@dataclass(frozen=True, slots=True)
class Probe:
    """The public suite's probe of the same model: at its own server, and through the proxy."""

    before: ProbeReport
    after: ProbeReport


def probe(model: str) -> Probe:
    """Probe the model that writes its calls as the dialect ``model`` does. Its server knows nothing of tools."""
    with Backend() as backend, proxy_before(backend, "xml") as url:
        backend.script(speak)
        return Probe(ask(f"{backend.url}/v1", model), ask(f"{url}/v1", model))


def statuses(report: ProbeReport) -> Mapping[str, tuple[str, str, str]]:
    """By scenario: what came of it whole and streamed, and of comparing the two."""
    cells: dict[str, dict[int, str]] = {}
    for outcome in report.outcomes:
        column = 2 if outcome.check == EQUIVALENCE_CHECK else int(outcome.stream)
        cells.setdefault(outcome.scenario_id, {})[column] = outcome.status + "*" * bool(outcome.warnings)
    return {scenario: (each[0], each[1], each[2]) for scenario, each in cells.items()}


@dataclass(frozen=True, slots=True)
class Read:
    """How many of the ``examples`` of a dialect are read right, if nobody says which it is and if somebody does."""

    dialect: Dialect
    examples: Sequence[str]
    unasked: Sequence[str]
    named: Sequence[str]


def fixtures() -> list[Read]:
    """Every dialect by its replies in ``fixtures/replies``, each read whole and cut in many ways."""
    return [_read(dialect) for dialect in DIALECTS]


def _read(dialect: Dialect) -> Read:
    examples = {name: fixture for name, fixture in REPLIES.items() if fixture["dialect"] == dialect.name}
    unasked = [name for name, fixture in examples.items() if _right(fixture, AUTO)]
    return Read(
        dialect, list(examples), unasked, [name for name, fixture in examples.items() if _right(fixture, dialect.name)]
    )


def _right(fixture: Fixture, dialect: str) -> bool:
    try:
        check(fixture, dialect)
    except AssertionError:
        return False
    return True

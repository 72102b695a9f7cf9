from __future__ import annotations

from typing import get_args

from proxy.core.events import ProblemKind
from proxy.inspector.explain import EXPLANATIONS
from proxy.telemetry import REPAIRS


def test_every_finding_is_explained() -> None:
    assert set(EXPLANATIONS) == set(get_args(ProblemKind))
    for each in EXPLANATIONS.values():
        assert each.title
        assert each.why.endswith(".")


def test_the_log_counts_the_same_as_repairs() -> None:
    repaired = {kind for kind, each in EXPLANATIONS.items() if each.verdict == "repaired"}
    assert repaired == REPAIRS | {"rescued"}

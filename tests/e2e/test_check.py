"""The doctor before a real engine: what it finds of the embedded model, and that what is forced is valid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proxy.config import BackendConfig
from proxy.doctor.examine import examine
from proxy.doctor.forcing import try_forcing
from proxy.local import LocalModel
from proxy.trial.prompts import BUILTIN, quick, read_prompts
from proxy.trial.run import Limits, due, run
from proxy.trial.ways import WAYS

pytestmark = pytest.mark.slow

LIMITS = Limits(tokens=96, seconds=300)


@pytest.fixture(scope="module")
def engine() -> Iterator[BackendConfig]:
    with LocalModel(threads=1) as model:
        yield BackendConfig(model.url)


async def test_what_is_found_of_the_embedded_model(engine: BackendConfig) -> None:
    examination = await examine(engine, LIMITS.seconds)
    assert (examination.facts.kind, examination.facts.native, examination.model) == (
        "llama.cpp",
        False,
        "SmolLM2-135M-Instruct",
    )
    assert examination.system_role
    assert not examination.opens_reasoning
    assert [finding.about for finding in examination.findings if finding.level != "ok"] == ["native tools"]


def test_a_call_can_be_forced(engine: BackendConfig) -> None:
    finding, forced = try_forcing(engine, LIMITS)
    assert forced
    assert "whatever the prompt says" in finding.said


def test_what_is_forced_and_not_cut_is_valid(engine: BackendConfig) -> None:
    prompts = due(WAYS["forced"], quick(read_prompts(BUILTIN)))[:3]
    outcomes = run(WAYS["forced"], prompts, engine, LIMITS)
    assert [outcome.valid or outcome.cut for outcome in outcomes] == [True] * 3
    assert any(outcome.valid for outcome in outcomes)

"""What holds for the whole suite: how hard the properties are tried."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("few", max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(autouse=True)
def state_file(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the proxy keeps what it measured: nowhere that outlives the test, and nothing yet."""
    file = tmp_path_factory.getbasetemp() / "state" / f"{os.urandom(8).hex()}.json"
    monkeypatch.setenv("TOOLGRAFT_STATE", str(file))
    return file

from __future__ import annotations

import pytest

from proxy.config import BackendConfig
from proxy.doctor.forcing import try_forcing
from proxy.trial.prompts import Call
from proxy.trial.run import Limits
from tests.support.backend import error, text
from tests.support.models import llama_cpp, model, serving, tagged

LIMITS = Limits(64, 30)


@pytest.mark.parametrize(
    ("forced_by", "comes", "level", "word"),
    [("grammar", True, "ok", "whatever the prompt says"), (None, False, "note", "cannot be made")],
)
def test_a_call_comes_where_the_server_takes_a_grammar(
    forced_by: str | None, comes: bool, level: str, word: str
) -> None:
    with llama_cpp(model(forced_by=forced_by)) as backend:
        finding, forced = try_forcing(BackendConfig(backend.url), LIMITS)
    assert (forced, finding.level) == (comes, level)
    assert word in finding.said


def test_a_model_may_not_need_to_be_constrained() -> None:
    with serving(text(tagged([Call("report_colour", {"colour": "blue"})]))) as backend:
        finding, forced = try_forcing(BackendConfig(backend.url), LIMITS)
    assert forced
    assert "without being constrained" in finding.said


def test_an_error_is_told() -> None:
    with serving(error(400, "grammars are off")) as backend:
        finding, forced = try_forcing(BackendConfig(backend.url), LIMITS)
    assert not forced
    assert "grammars are off" in finding.said

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proxy.config import BackendConfig
from proxy.doctor.diagnose import diagnose
from proxy.doctor.report import Report
from proxy.measured import examples
from proxy.telemetry import logger
from proxy.trial.run import Limits
from tests.support.backend import Backend, body, text
from tests.support.models import EXAMPLE, llama_cpp, model, serving, talk

pytestmark = pytest.mark.slow

LIMITS = Limits(64, 30)


@contextmanager
def no_bar(total: int) -> Iterator[Callable[[str], None]]:
    yield lambda title: None


def visit(backend: Backend, *, few: bool = True, keep: bool = True, **config: Any) -> Report:
    return diagnose(BackendConfig(backend.url, **config), LIMITS, no_bar, few=few, keep=keep)


def test_each_way_that_is_possible_is_tried() -> None:
    with llama_cpp(model(forced_by="grammar")) as backend:
        plain, few = visit(backend, few=False), visit(backend)
    assert list(plain.trial) == ["xml", "example", "forced", "always"]
    assert list(few.trial) == ["xml", "example", "forced"]
    with llama_cpp(model(native=True), tools=True) as backend:
        assert list(visit(backend).trial) == ["native", "auto", "xml", "example", "forced"]


def test_progress_is_told_for_every_prompt() -> None:
    titles: list[str] = []
    totals: list[int] = []

    @contextmanager
    def bar(total: int) -> Iterator[Callable[[str], None]]:
        totals.append(total)
        yield titles.append

    with llama_cpp(model()) as backend:
        diagnose(BackendConfig(backend.url), LIMITS, bar, few=True)
    assert totals == [len(titles)] == [6 + 6 + 4]
    assert titles[-1] == "xml, a call required"


def test_a_template_without_a_system_role_is_tried_and_served_without() -> None:
    with llama_cpp(model(refuses_system=True)) as backend:
        report = visit(backend)
    assert report.config is not None
    assert report.config.system_role is False
    assert all(outcome.error is None for outcomes in report.trial.values() for outcome in outcomes)


def test_the_model_that_was_tried_is_not_written_down_unless_it_was_named() -> None:
    with llama_cpp(model()) as backend:
        found, named = visit(backend), visit(backend, model="scripted")
        assert {request.json["model"] for request in backend.chats} == {"scripted"}
    assert found.config is not None
    assert named.config is not None
    assert (found.model, found.config.model, named.config.model) == ("scripted", None, "scripted")


@pytest.mark.parametrize(("writes", "helps"), [({"needs": EXAMPLE}, True), ({"writes": talk}, False)])
def test_whether_an_example_helps_is_kept(writes: dict[str, Any], helps: bool) -> None:
    with llama_cpp(model(**writes)) as backend:
        report = visit(backend, few=False)
        assert examples(f"{backend.url}/v1") == {"scripted": helps, "": helps}
    assert report.findings[-1].about == "example"


def test_it_is_kept_for_the_models_that_it_was_measured_for() -> None:
    entries = {"data": [{"id": "one"}, {"id": "two"}]}
    with llama_cpp(model()) as backend:
        visit(backend, few=False, model="scripted")
        assert examples(f"{backend.url}/v1") == {"scripted": False}
    with llama_cpp(model()) as backend:
        backend.routes["/v1/models"] = body(entries)
        visit(backend, few=False)
        assert examples(f"{backend.url}/v1") == {"one": False}


def test_nothing_is_kept_of_a_quick_look_or_when_it_is_not_wanted(state_file: Path) -> None:
    with llama_cpp(model()) as backend:
        visit(backend)
        visit(backend, few=False, keep=False)
    assert not state_file.exists()


def test_a_file_that_cannot_be_written_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOOLGRAFT_STATE", str(tmp_path / "file" / "x.json"))
    with llama_cpp(model()) as backend:
        last = visit(backend, few=False).findings[-1]
    assert (last.about, last.level) == ("example", "note")
    assert "TOOLGRAFT_STATE" in last.said


def test_a_template_that_opens_the_reasoning_is_tried_and_served_as_one() -> None:
    with serving(model(thinks=True)) as backend:
        report = visit(backend)
    assert report.config is not None
    assert report.config.starts_in_reasoning is True
    assert all(outcome.right for outcome in report.trial["xml"])


def test_what_the_log_warns_of_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    handlers = list(logger.handlers)
    with llama_cpp(text("Hello.", usage=(9, 2))) as backend:  # far fewer tokens than it was sent
        report = visit(backend)
    (warned,) = (finding for finding in report.findings if finding.about == "log")
    assert "-c" in warned.said
    assert not warned.said.startswith("request")
    assert capsys.readouterr() == ("", "")
    assert logger.handlers == handlers


def test_the_outcomes_can_be_written_as_json() -> None:
    from proxy.doctor.report import as_json

    with llama_cpp(model()) as backend:
        assert json.loads(json.dumps(as_json(visit(backend))))["fine"] is True

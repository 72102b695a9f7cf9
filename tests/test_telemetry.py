from __future__ import annotations

import io
import json
import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from proxy import telemetry
from proxy.telemetry import RequestLog


@pytest.fixture(autouse=True)
def _restored_loggers() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("toolgraft", "uvicorn.error")]
    before = [(logger, list(logger.handlers), logger.propagate, logger.level) for logger in loggers]
    yield
    for logger, handlers, propagate, level in before:
        logger.handlers[:] = handlers
        logger.propagate = propagate
        logger.setLevel(level)


def written(entry: RequestLog, *, as_json: bool) -> str:
    out = io.StringIO()
    telemetry.configure(as_json=as_json, stream=out)
    entry.write()
    return out.getvalue()


def finished() -> RequestLog:
    entry = RequestLog("r1", "chat", model="m", backend="http://b", mode="xml", status=200, calls=2)
    entry.prompt_tokens, entry.completion_tokens = 11, 7
    entry.problems = Counter(repaired=1, coerced=2, cut=1)
    return entry


def test_a_request_is_one_line_for_people() -> None:
    line = written(finished(), as_json=False)
    assert line.count("\n") == 1
    assert " info request id=r1 surface=chat model=m backend=http://b mode=xml status=200 calls=2 repairs=3 " in line
    assert "problems=repaired:1,coerced:2,cut:1 prompt_tokens=11 completion_tokens=7 ms=" in line
    assert "error" not in line


def test_a_request_is_one_json_object() -> None:
    entry = json.loads(written(finished(), as_json=True))
    assert entry["level"] == "info"
    assert entry["message"] == "request"
    assert entry["problems"] == {"repaired": 1, "coerced": 2, "cut": 1}
    assert entry["repairs"] == 3
    assert isinstance(entry["ms"], float)
    assert not {"estimated", "reasks", "rescued"} & set(entry)


def test_what_was_done_to_get_the_calls_is_counted() -> None:
    entry = finished()
    entry.reasks, entry.rescued = 1, 2
    assert " reasks=1 rescued=2 " in written(entry, as_json=False)


def test_a_failure_of_the_backend_is_a_warning() -> None:
    entry = RequestLog("r1", "chat", status=502, error="unreachable")
    assert " warning request " in written(entry, as_json=False)


@pytest.mark.parametrize("model", ["a\nb info request id=forged", "a b", 'a"b', "a=b", "\x1b[31m", "a\u2028b", ""])
def test_a_value_cannot_forge_a_line_or_a_field(model: str) -> None:
    line = written(RequestLog("r1", "chat", model=model), as_json=False)
    assert line.count("\n") == 1
    assert f"model={json.dumps(model)} " in line
    assert line.strip().isprintable()


def test_a_traceback_follows_the_line() -> None:
    out = io.StringIO()
    telemetry.configure(stream=out)
    try:
        raise ValueError("boom")
    except ValueError:
        telemetry.logger.exception("unexpected\nerror")
    first, *rest = out.getvalue().splitlines()
    assert first.endswith(r'error "unexpected\nerror"')
    assert rest[-1] == "ValueError: boom"


def test_a_traceback_is_a_field_in_json() -> None:
    out = io.StringIO()
    telemetry.configure(as_json=True, stream=out)
    try:
        raise ValueError("boom")
    except ValueError:
        telemetry.logger.exception("unexpected")
    assert json.loads(out.getvalue())["exception"].endswith("ValueError: boom")


def test_configuring_again_does_not_double_the_lines() -> None:
    out = io.StringIO()
    telemetry.configure(stream=out)
    telemetry.configure(stream=out)
    RequestLog("r1", "chat").write()
    assert out.getvalue().count("\n") == 1

from __future__ import annotations

import io
import json
import logging
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
    entry.problems.update(repaired=1, coerced=2, cut=1)
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


def test_tools_that_were_left_out_are_named() -> None:
    entry = finished()
    entry.dropped_tools = "web_search,a b\n"
    assert ' dropped_tools="web_search,a b\\n" ' in written(entry, as_json=False)


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
    assert rest[-1] == "  ValueError: boom"


def test_a_traceback_cannot_forge_a_line() -> None:
    out = io.StringIO()
    telemetry.configure(stream=out)
    try:
        raise ValueError("boom\n12:00:00 info request id=forged\r12:00:00 info\u2028x \x1b[2J")
    except ValueError:
        telemetry.logger.exception("unexpected")
    _, *rest = out.getvalue().split("\n")[:-1]
    assert all(line.startswith("  ") and line.isprintable() for line in rest)
    assert any("id=forged" in line for line in rest)


def test_times_are_told_in_milliseconds() -> None:
    entry = RequestLog("r1", "chat", started=10.0, received=10.5, queued=0.25, asked=11.0, first=12.0, answered=13.0)
    entry.ended = 13.125
    assert " queue_ms=250.0 first_ms=2000.0 added_ms=375.0 ms=3125.0" in written(entry, as_json=False)


def test_without_a_backend_nothing_was_added() -> None:
    assert RequestLog("r1", "chat", received=1.0).added is None
    assert "added_ms" not in written(RequestLog("r1", "chat"), as_json=False)


def test_a_long_value_is_cut() -> None:
    line = written(RequestLog("r1", "chat", model="m" * 100_000), as_json=False)
    assert len(line) < 1000
    assert "mmm\\u2026" in line or "mmm…" in line


def test_content_is_one_line_without_images() -> None:
    out = io.StringIO()
    telemetry.configure(stream=out)
    telemetry.write_content("r1", b'{"a": "b\nc", "url": "data:image/png;base64,AAAA+/=="}', b"\xff" * 100_000)
    line = out.getvalue()
    assert line.count("\n") == 1
    assert " info content id=r1 request=" in line
    assert "data:image/png;base64,\\u2026" in line
    assert "AAAA" not in line
    assert line.rstrip().endswith("\ufffd…")


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

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key
from prometheus_client.parser import text_string_to_metric_families

from proxy.metrics import FOLDER, MOST_MODELS, Load, Metrics
from proxy.telemetry import RequestLog


def entry(**fields: Any) -> RequestLog:
    return RequestLog(
        **{"id": "r", "surface": "chat", "mode": "xml", "backend": "http://b/v1", "status": 200, **fields}
    )


def ended(*logs: RequestLog, models: tuple[str, ...] = ()) -> Metrics:
    metrics = Metrics()
    metrics.expect(models)
    for log in logs:
        metrics.begin()
        metrics.end(log)
    return metrics


def samples(metrics: Metrics, *loads: Load) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels, in the order of the labels' names."""
    _, page = metrics.page("", loads)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def test_a_request_is_counted_by_what_it_was() -> None:
    found = samples(ended(entry(model="m"), entry(model="m"), entry(model="m", status=502)))
    assert found["toolgraft_requests_total", "http://b/v1", "xml", "m", "200", "chat"] == 2
    assert found["toolgraft_requests_total", "http://b/v1", "xml", "m", "502", "chat"] == 1
    assert found["toolgraft_request_seconds_count", "chat"] == 3


def test_what_the_model_wrote_is_counted() -> None:
    log = entry(model="m", calls=2, reasks=1, rescued=3, warning="context-cut", prompt_tokens=11, completion_tokens=7)
    log.problems.update(repaired=2, cut=1)
    found = samples(ended(log))
    assert found["toolgraft_calls_total", "http://b/v1", "m"] == 2
    assert found["toolgraft_problems_total", "repaired"] == 2
    assert found["toolgraft_problems_total", "cut"] == 1
    assert found["toolgraft_reasks_total", "http://b/v1"] == 1
    assert found["toolgraft_rescues_total", "http://b/v1"] == 3
    assert found["toolgraft_context_cuts_total", "http://b/v1"] == 1
    assert found["toolgraft_tokens_total", "http://b/v1", "prompt", "m"] == 11
    assert found["toolgraft_tokens_total", "http://b/v1", "completion", "m"] == 7


def test_times_are_told_in_seconds() -> None:
    log = entry(stream=True, started=100.0, received=100.5, queued=2.0, asked=102.6, first=103.0, answered=105.0)
    log.ended = 105.2
    found = samples(ended(log))
    assert found["toolgraft_time_to_first_token_seconds_sum", "http://b/v1"] == pytest.approx(3)
    assert found["toolgraft_queue_seconds_sum", "http://b/v1"] == pytest.approx(2)
    assert found["toolgraft_added_latency_seconds_sum", "xml"] == pytest.approx(0.1 + 0.2)
    assert found["toolgraft_request_seconds_sum", "chat"] == pytest.approx(5.2)


def test_a_whole_reply_has_no_first_token() -> None:
    found = samples(ended(entry(first=1.0, started=0.0)))
    assert not any(name[0] == "toolgraft_time_to_first_token_seconds_count" for name in found)


def test_errors_are_counted_by_whose_fault_they_were() -> None:
    failed = entry(status=502, error="backend_unreachable", fault="backend")
    odd = entry(status=400, error="whatever a backend calls it", fault="backend")
    found = samples(ended(failed, odd))
    assert found["toolgraft_errors_total", "http://b/v1", "backend_unreachable", "backend"] == 1
    assert found["toolgraft_errors_total", "http://b/v1", "other", "backend"] == 1


def test_what_is_going_on_is_told() -> None:
    metrics = Metrics()
    metrics.begin()
    metrics.begin()
    metrics.end(entry())
    found = samples(metrics, Load("big", taken=4, waiting=2))
    assert found["toolgraft_requests_in_progress",] == 1
    assert found["toolgraft_backend_requests", "big"] == 4
    assert found["toolgraft_backend_queue", "big"] == 2
    assert found["process_resident_memory_bytes",] > 0


def models_of(metrics: Metrics) -> set[str]:
    return {name[3] for name in samples(metrics) if name[0] == "toolgraft_requests_total"}


def test_hostile_names_of_models_do_not_add_up() -> None:
    metrics = ended(*(entry(model=f"m{number}") for number in range(1000)), models=("mine",))
    metrics.begin()
    metrics.end(entry(model="mine"))
    found = models_of(metrics)
    assert len(found) == MOST_MODELS + 2
    assert {"mine", "other"} < found


@pytest.mark.parametrize("log", [entry(model="m", status=404), entry(model="m" * 201), entry(model="m", status=None)])
def test_a_name_that_was_not_served_is_not_told(log: RequestLog) -> None:
    assert models_of(ended(log)) == {"other"}


def test_hostile_errors_do_not_add_up() -> None:
    found = samples(ended(*(entry(status=500, error=f"e{number}", fault="backend") for number in range(100))))
    assert sum(name[0] == "toolgraft_errors_total" for name in found) == 1


def test_a_name_cannot_break_the_page() -> None:
    hostile = 'm"} 1\nforged_total{x="\\'
    metrics = ended(entry(model=hostile))
    assert hostile in models_of(metrics)
    assert not any(name[0] == "forged_total" for name in samples(metrics))


def test_the_format_is_the_one_that_is_asked_for() -> None:
    assert Metrics().page("")[0].startswith("text/plain; version=0.0.4")
    content_type, page = Metrics().page("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert page.endswith(b"# EOF\n")


def test_applications_count_for_themselves() -> None:
    ended(entry(model="m"))
    assert models_of(Metrics()) == set()


def test_a_backend_that_is_no_more_is_not_busy() -> None:
    metrics = Metrics()
    samples(metrics, Load("a", 2, 1))
    found = samples(metrics, Load("b", 3, 0))
    assert (found["toolgraft_backend_requests", "a"], found["toolgraft_backend_queue", "a"]) == (0, 0)
    assert found["toolgraft_backend_requests", "b"] == 3


def test_a_file_that_another_worker_has_just_begun_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    written = MmapedDict(str(tmp_path / "counter_7.db"))  # type: ignore[no-untyped-call]
    key = mmap_key("toolgraft_calls", "toolgraft_calls_total", ["backend", "model"], ["b", "m"], "Tool calls.")
    written.write_value(key, 3.0, 0.0)  # type: ignore[no-untyped-call]
    written.close()  # type: ignore[no-untyped-call]
    (tmp_path / "counter_8.db").touch()
    assert samples(Metrics()) == {("toolgraft_calls_total", "b", "m"): 3.0}

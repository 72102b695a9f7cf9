"""What the proxy counts, for Prometheus. Every label has a bounded number of values, whatever clients send."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from proxy.telemetry import CONTEXT_CUT, RequestLog

MOST_MODELS = 50
"""Names of models, beside those that are configured, that are told apart. All further ones are ``other``."""

OTHER = "other"

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which several workers count."""

ERRORS = frozenset(
    {
        *("backend_broke_off", "backend_closed", "backend_event_too_large", "backend_not_http", "backend_not_ready"),
        *("backend_redirect", "backend_reply_too_large", "backend_timeout", "backend_tls", "backend_unreachable"),
        *("backend_unreadable", "client_gone", "context_length_exceeded", "invalid_api_key", "invalid_json"),
        *("model_not_found", "queue_full", "rate_limit_exceeded", "request_too_large", "stopping"),
        *("internal_error", "invalid_request_error", "upstream_error"),
    }
)
"""The short names of errors that are told apart; a backend may give any other of its own."""

_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_LONG = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

Metric = TypeVar("Metric", Counter, Histogram)


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a backend is: requests that it works on, and those that wait for it."""

    backend: str
    taken: int
    waiting: int


def counts_together() -> bool:
    """Whether this is one of several workers, whose counts are added up."""
    return FOLDER in os.environ


def forget_worker(pid: int) -> None:
    """A worker is no more: what it was at does not count any longer, what it has done does."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


class _Together(Collector):
    """What all workers have counted, in files of their own.

    The library does this for whole files only: of one that a worker has just begun it cannot read the empty start.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def collect(self) -> Iterable[Family]:
        """The sums, and the gauges of those that are alive."""
        files: list[str] = []
        for file in self._folder.glob("*.db"):
            with contextlib.suppress(FileNotFoundError):  # a worker has just ended
                if file.stat().st_size:
                    files.append(str(file))
        merged: Iterable[Family] = MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return merged


class _By(Generic[Metric]):
    """A metric by the values of its labels. Looking them up in the library takes four times as long."""

    def __init__(self, metric: Metric) -> None:
        self._metric: Metric = metric
        self._known: dict[tuple[str, ...], Metric] = {}

    def __call__(self, *values: str) -> Metric:
        found = self._known.get(values)
        if found is None:
            found = self._known[values] = self._metric.labels(*values)
        return found


class Metrics:
    """The counters of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._configured: set[str] = set()
        self._seen: set[str] = set()
        self._loaded: set[str] = set()
        self._now = 0  # requests being answered
        counter, histogram, gauge = self._counter, self._histogram, self._gauge
        self._requests = counter("requests", "Requests that ended.", "surface", "mode", "backend", "model", "status")
        self._calls = counter("calls", "Tool calls in answers.", "backend", "model")
        self._problems = counter("problems", "What was found wrong in what models wrote.", "kind")
        self._reasks = counter("reasks", "Times that a model was asked again.", "backend")
        self._rescues = counter("rescues", "Calls found in the text of backends that call tools.", "backend")
        self._cuts = counter("context_cuts", "Prompts that a backend silently cut.", "backend")
        self._tokens = counter("tokens", "Tokens of prompts and completions.", "backend", "model", "kind")
        self._errors = counter("errors", "Requests that failed, by whose fault it was.", "fault", "backend", "code")
        self._first = histogram("time_to_first_token", "Until the first part of a stream was there.", _LONG, "backend")
        self._added = histogram("added_latency", "Waits for the proxy alone.", _SHORT, "mode")
        self._lasted = histogram("request", "Whole requests.", _LONG, "surface")
        self._queued = histogram("queue", "Waits for a backend's turn.", _LONG, "backend")
        self._running = gauge("requests_in_progress", "Requests being answered.")
        self._taken = gauge("backend_requests", "Requests that a backend works on.", "backend")
        self._waiting = gauge("backend_queue", "Requests that wait for a backend.", "backend")
        ProcessCollector(registry=self._registry)

    def expect(self, models: Iterable[str]) -> None:
        """``models`` are names that are always told apart, as they are configured."""
        self._configured.update(models)

    def begin(self) -> None:
        """A request has begun."""
        self._now += 1

    def end(self, log: RequestLog) -> None:
        """A request has ended, and ``log`` knows all of it."""
        self._now -= 1
        backend, model = log.backend or "", self._model(log)
        self._requests(log.surface, log.mode or "", backend, model, str(log.status or "")).inc()
        self._lasted(log.surface).observe(log.seconds)
        for kind, count in log.problems.items():
            self._problems(kind).inc(count)
        if log.reasks:
            self._reasks(backend).inc(log.reasks)
        if log.rescued:
            self._rescues(backend).inc(log.rescued)
        if log.calls:
            self._calls(backend, model).inc(log.calls)
        if log.warning == CONTEXT_CUT:
            self._cuts(backend).inc()
        if log.prompt_tokens and log.prompt_tokens > 0:
            self._tokens(backend, model, "prompt").inc(log.prompt_tokens)
        if log.completion_tokens and log.completion_tokens > 0:
            self._tokens(backend, model, "completion").inc(log.completion_tokens)
        if log.error is not None:
            code = log.error if log.error in ERRORS else OTHER
            self._errors(log.fault or "client", backend, code).inc()
        if log.stream and log.first is not None:
            self._first(backend).observe(log.first - log.started)
        if log.queued:
            self._queued(backend).observe(log.queued)
        added = log.added
        if added is not None:
            self._added(log.mode or "").observe(added)

    def page(self, accept: str, loads: Iterable[Load] = ()) -> tuple[str, bytes]:
        """The content type and the body for a scraper that accepts ``accept``; of several workers, for all of them."""
        self.note(loads)
        registry = self._registry
        if counts_together():
            registry = CollectorRegistry()
            registry.register(_Together(os.environ[FOLDER]))
        encode: Callable[[CollectorRegistry], bytes]
        encode, content_type = choose_encoder(accept)
        return content_type, encode(registry)

    def note(self, loads: Iterable[Load]) -> None:
        """Note how busy all is at the moment: the proxy, and the backends; any other is not there any more."""
        self._running.set(self._now)
        now = {load.backend: load for load in loads}
        for name in self._loaded - now.keys():
            now[name] = Load(name, 0, 0)
        self._loaded.update(now)
        for name, load in now.items():
            self._taken.labels(name).set(load.taken)
            self._waiting.labels(name).set(load.waiting)

    def _model(self, log: RequestLog) -> str:
        """The model's name, if it is one of the first to be served, or configured."""
        model = log.model
        if model is None or model in self._configured or model in self._seen:
            return model or ""
        if log.status != 200 or len(self._seen) >= MOST_MODELS or len(model) > 200:
            return OTHER
        self._seen.add(model)
        return model

    def _counter(self, name: str, text: str, *labels: str) -> _By[Counter]:
        return _By(Counter(f"toolgraft_{name}", text, labels, registry=self._registry))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> _By[Histogram]:
        name = f"toolgraft_{name}_seconds"
        return _By(Histogram(name, f"Seconds. {text}", labels, buckets=buckets, registry=self._registry))

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"toolgraft_{name}", text, labels, registry=self._registry, multiprocess_mode="livesum")

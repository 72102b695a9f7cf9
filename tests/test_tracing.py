"""Spans, with the memory of OpenTelemetry's own exporter for tests."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from proxy import tracing
from proxy.config import Config
from proxy.telemetry import RequestLog
from proxy.tracing import Traces
from tests.support.backend import Backend, error, text
from tests.support.proxy import http_client, proxy_before

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Takes the spans of every proxy that is started."""
    memory = InMemorySpanExporter()

    def provider() -> TracerProvider:
        made = TracerProvider()
        made.add_span_processor(SimpleSpanProcessor(memory))
        return made

    monkeypatch.setattr(tracing, "_exporting", provider)
    return memory


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


def span_of(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def test_a_span_is_part_of_the_client_s_trace_and_the_backend_s_of_it(exporter: InMemorySpanExporter) -> None:
    traces = Traces()
    log = RequestLog("r1", "chat", model="m", status=200, calls=2)
    span = traces.begin([("traceparent", PARENT), ("tracestate", "a=1"), ("cookie", "secret")], log)
    told = dict(log.trace)
    traces.end(span, log)
    done = span_of(exporter)
    assert done.parent is not None
    assert f"{done.parent.trace_id:032x}-{done.parent.span_id:016x}" == PARENT[3:-3]
    assert done.context is not None
    assert told == {"traceparent": f"00-{PARENT[3:35]}-{done.context.span_id:016x}-01", "tracestate": "a=1"}
    assert done.name == "chat m"
    assert done.attributes is not None
    assert done.attributes["gen_ai.request.model"] == "m"
    assert done.attributes["toolgraft.calls"] == 2


@pytest.mark.parametrize(
    "headers", [[], [("traceparent", "nonsense")], [("traceparent", PARENT.replace("00-", "ff-"))]]
)
def test_without_a_trace_a_new_one_begins(exporter: InMemorySpanExporter, headers: list[tuple[str, str]]) -> None:
    traces = Traces()
    log = RequestLog("r1", "chat")
    traces.end(traces.begin(headers, log), log)
    assert span_of(exporter).parent is None
    assert dict(log.trace)["traceparent"].startswith("00-")


@pytest.mark.parametrize(("status", "is_ok"), [(502, False), (None, False), (404, True)])
def test_only_failures_of_servers_are_errors(exporter: InMemorySpanExporter, status: int | None, is_ok: bool) -> None:
    traces = Traces()
    log = RequestLog("r1", "chat", status=status, error="why")
    traces.end(traces.begin([], log), log)
    span = span_of(exporter)
    assert span.status.is_ok == is_ok
    assert span.attributes is not None
    assert span.attributes["error.type"] == "why"


@pytest.mark.parametrize("dispatcher", ["xml", "native"])
def test_requests_are_told(backend: Backend, exporter: InMemorySpanExporter, dispatcher: str) -> None:
    asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "a secret"}], "stream": True}
    backend.script(text("Hello."))
    with proxy_before(backend, dispatcher, config={"traces": True}) as url, http_client(url) as client:
        client.post("/v1/chat/completions", json=asked, headers={"traceparent": PARENT})
        client.get("/health")
    span = span_of(exporter)
    assert span.context is not None
    assert backend.chats[0].header("traceparent") == f"00-{PARENT[3:35]}-{span.context.span_id:016x}-01"
    assert [each for each, _ in backend.chats[0].headers].count("traceparent") == 1
    assert span.attributes is not None
    assert span.attributes["toolgraft.mode"] == dispatcher
    assert [event.name for event in span.events] == ["first token"]
    assert "secret" not in span.to_json()


def test_failures_are_told(backend: Backend, exporter: InMemorySpanExporter) -> None:
    backend.script(error(500, "broken"))
    with proxy_before(backend, config={"traces": True}) as url, http_client(url) as client:
        client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}]})
    assert not span_of(exporter).status.is_ok


def test_without_traces_a_client_s_own_goes_on_to_a_native_backend(backend: Backend) -> None:
    with proxy_before(backend, "native") as url, http_client(url) as client:
        client.post("/v1/chat/completions", json={"messages": []}, headers={"traceparent": PARENT})
    assert backend.chats[0].header("traceparent") == PARENT


def test_nobody_is_waited_for_who_takes_no_spans(caplog: pytest.LogCaptureFixture) -> None:
    """A collector that lets the connection come, and says nothing."""
    ended = threading.Event()

    class Stuck(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            ended.wait(60)
            return SpanExportResult.FAILURE

        def shutdown(self) -> None:
            pass

    def provider() -> TracerProvider:
        made = TracerProvider(shutdown_on_exit=False)
        made.add_span_processor(BatchSpanProcessor(Stuck()))
        return made

    traces = Traces(provider)
    log = RequestLog("r1", "chat")
    traces.end(traces.begin([], log), log)
    traces.close(within=0.05)
    assert not ended.is_set()
    assert "traces are lost" in caplog.text
    ended.set()


def test_what_is_missing_is_told() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n"
        "from proxy.core.errors import ConfigError\n"
        "from proxy.tracing import Traces\n"
        "try: Traces()\n"
        "except ConfigError as error: print(error.message)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'toolgraft[otel]'" in told


def test_traces_are_off_by_default() -> None:
    assert Config(()).traces is False

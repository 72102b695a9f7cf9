"""Requests as spans for OpenTelemetry, one each. Where they go is said by its own variables (``OTEL_…``).

Needs ``pip install 'toolgraft[otel]'``. What was said is no part of a span. The attributes are those that are
standardized for HTTP and for generative models where there are any:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from proxy.core.errors import ConfigError
from proxy.telemetry import RequestLog, logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

Headers = tuple[tuple[str, str], ...]

CLOSED_WITHIN = 5.0
"""Seconds that it may take to send the last spans. The library itself waits for half a minute."""

CARRIED = frozenset({"traceparent", "tracestate"})
"""The headers by which one server tells the next what trace a request belongs to (W3C Trace Context)."""


class Traces:
    """Makes a span of each request. Raises ``ConfigError`` when OpenTelemetry is not installed.

    ``provider`` makes the one that takes the spans; by default they are sent in batches by OTLP over HTTP.
    """

    def __init__(self, provider: Callable[[], TracerProvider] | None = None) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

            self._provider = (provider or _exporting)()
        except ImportError as error:
            raise ConfigError(
                f"Traces need OpenTelemetry ({error.name} is missing): pip install 'toolgraft[otel]', or leave out "
                "`traces`."
            ) from None
        self._api = trace
        self._propagator = TraceContextTextMapPropagator()
        self._tracer = self._provider.get_tracer("toolgraft")

    def begin(self, headers: Iterable[tuple[str, str]], log: RequestLog) -> Span:
        """A span that has begun: part of the trace that the client's ``headers`` name, if they do.

        The ``log`` gets the headers by which a backend can go on with the trace.
        """
        given = {name: value for name, value in headers if name in CARRIED}
        span = self._tracer.start_span("request", self._propagator.extract(given), self._api.SpanKind.SERVER)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._api.set_span_in_context(span))
        log.trace = tuple(carrier.items())
        return span

    def end(self, span: Span, log: RequestLog) -> None:
        """The request has ended, and ``log`` knows all of it."""
        if span.is_recording():
            known = log.fields()
            span.update_name(f"{log.surface} {known['model']}" if "model" in known else log.surface)
            for name, key in _ATTRIBUTES.items():
                if key in known:
                    span.set_attribute(name, known[key])  # type: ignore[arg-type]
            if log.error is not None and (log.status is None or log.status >= 500):
                span.set_status(self._api.StatusCode.ERROR, log.error)
            if log.asked is not None and log.first is not None:
                ago = time.perf_counter() - log.first
                span.add_event("first token", timestamp=time.time_ns() - int(ago * 1e9))
        span.end()

    def close(self, within: float = CLOSED_WITHIN) -> None:
        """Send what has not been sent. What nobody has taken ``within`` so many seconds is lost."""
        closing = threading.Thread(target=self._provider.shutdown, name="toolgraft-traces", daemon=True)
        closing.start()
        closing.join(within)
        if closing.is_alive():
            logger.warning("traces are lost: nobody has taken them within %g seconds", within)


_ATTRIBUTES = {
    "gen_ai.request.model": "model",
    "gen_ai.usage.input_tokens": "prompt_tokens",
    "gen_ai.usage.output_tokens": "completion_tokens",
    "http.response.status_code": "status",
    "error.type": "error",
    **{
        f"toolgraft.{name}": name
        for name in (
            *("id", "surface", "client", "backend", "mode", "dialect", "stream", "calls", "repairs", "reasks"),
            *("dropped_tools", "rescued", "estimated", "queue_ms", "first_ms", "added_ms", "warning", "fault"),
        )
    },
}
"""The names of attributes, and those of the fields of the log's line that they hold."""


def _exporting() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "toolgraft"}
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider

"""Errors in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
from proxy.wire import jsonio

RETRIED_4XX = frozenset({408, 409, 429})
"""The client errors that OpenAI's SDKs send again by themselves, as they do everything from 500 on."""


def error_body(error: ToolgraftError) -> bytes:
    """The JSON body, which is also the data of an error event within a stream."""
    fields = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    return jsonio.dumps({"error": fields})


def encode_error(error: ToolgraftError) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Status, headers and body of an error response.

    ``x-should-retry`` overrides what the SDKs would do by the status alone; it is ``false`` where the same request
    cannot succeed later. The backend's own ``retry-after`` and its like are passed on.
    """
    headers = {"content-type": "application/json"}
    retry = error.retryable if isinstance(error, UpstreamError) else None
    if isinstance(error, ClientError) and error.status not in RETRIED_4XX:
        retry = False
    if isinstance(error, UpstreamError):
        headers.update(error.headers)
    if retry is not None:
        headers["x-should-retry"] = "true" if retry else "false"
    return error.status, tuple(headers.items()), error_body(error)

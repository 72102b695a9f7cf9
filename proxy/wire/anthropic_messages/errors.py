"""Errors in Anthropic's shape: ``{"type": "error", "error": {"type", "message"}}``.

https://docs.anthropic.com/en/api/errors has the types. ``details.error_code`` is what the SDKs call the cause.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.core.errors import ToolgraftError, UpstreamError
from proxy.core.model import Json
from proxy.wire import jsonio
from proxy.wire.failures import error_headers
from proxy.wire.sse import frame

OVERLOADED = 529
"""Anthropic's status for a server that has too much to do. A backend says 503 (llama.cpp also while it loads)."""

THREAD_UNSUPPORTED = "thread_unsupported_request"
"""The code on which an SDK sends the whole conversation instead of relying on a server that remembers it."""

TOO_LONG = "prompt is too long"
"""Agents look for these words to shorten their history."""

_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    OVERLOADED: "overloaded_error",
}


def encode_error(error: ToolgraftError) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Status, headers and body of an error response."""
    return _status(error), tuple(error_headers(error).items()), jsonio.dumps(_object(error))


def stream_error(error: ToolgraftError) -> bytes:
    """The error as the last event of a stream."""
    return frame(jsonio.dumps(_object(error)), b"error")


def _status(error: ToolgraftError) -> int:
    return OVERLOADED if isinstance(error, UpstreamError) and error.status == 503 else error.status


def _object(error: ToolgraftError) -> dict[str, Json]:
    status, message = _status(error), error.message
    if error.code == "context_length_exceeded" and TOO_LONG not in message.lower():
        message = f"{TOO_LONG}: {message}"
    general = "invalid_request_error" if 400 <= status < 500 else "api_error"
    fields: dict[str, Json] = {"type": _TYPES.get(status, general), "message": message}
    if error.code is not None:
        fields["details"] = {"error_code": error.code}
        if error.code == THREAD_UNSUPPORTED:
            fields["details"]["unsupported"] = [error.param]
    return {"type": "error", "error": fields}

"""Errors in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from proxy.core.errors import ToolgraftError
from proxy.wire import jsonio
from proxy.wire.failures import error_headers
from proxy.wire.sse import frame


def encode_error(error: ToolgraftError) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Status, headers and body of an error response."""
    return error.status, tuple(error_headers(error).items()), _body(error)


def stream_error(error: ToolgraftError) -> bytes:
    """The error as the last event of a stream."""
    return frame(_body(error))


def _body(error: ToolgraftError) -> bytes:
    fields = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    return jsonio.dumps({"error": fields})

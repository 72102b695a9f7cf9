"""Errors in OpenAI's shape: ``{"error": {"message", "type", "param", "code"}}``."""

from __future__ import annotations

from proxy.core.errors import ToolgraftError
from proxy.wire import jsonio
from proxy.wire.failures import error_headers


def encode_error(error: ToolgraftError) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Status, headers and body of an error response."""
    return error.status, tuple(error_headers(error).items()), error_body(error)


def error_body(error: ToolgraftError) -> bytes:
    """The error object as JSON."""
    fields = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    return jsonio.dumps({"error": fields})

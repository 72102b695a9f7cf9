"""What every surface says in the headers of an error, and of a reply that broke off."""

from __future__ import annotations

from proxy.core.errors import ClientError, ToolgraftError, UpstreamError

BROKEN_OFF = "The backend's reply broke off before it was complete."

RETRIED_4XX = frozenset({408, 409, 429})
"""The client errors that both vendors' SDKs send again by themselves, as they do everything from 500 on."""


def error_headers(error: ToolgraftError) -> dict[str, str]:
    """The headers of an error response.

    ``x-should-retry`` overrides what the SDKs would do by the status alone; it is ``false`` where the same request
    cannot succeed later. ``retry-after`` and its like, the backend's own or ours, are passed on.
    """
    headers = {"content-type": "application/json"}
    retry = error.retryable if isinstance(error, UpstreamError) else None
    if isinstance(error, ClientError) and error.status not in RETRIED_4XX:
        retry = False
    headers.update(error.headers)
    if retry is not None:
        headers["x-should-retry"] = "true" if retry else "false"
    return headers

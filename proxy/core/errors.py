"""Whose fault it was, and the HTTP status that says so.

    ToolgraftError          anything the proxy reports on purpose
      ClientError           the request cannot be served as it is (4xx)
      UpstreamError         the backend failed, refused or could not be reached (4xx it gave, or 5xx)
      ConfigError           the proxy was started with something it cannot use

A surface's codec turns a ``ToolgraftError`` into its own error shape; the fields are the OpenAI ones.
"""

from __future__ import annotations


class ToolgraftError(Exception):
    """An error with everything a surface needs to report it.

    ``message`` is a full sentence for a person: what was wrong and, where there is one, the mend.
    ``status`` is the HTTP status, ``type``/``code``/``param`` the fields of an OpenAI error object. ``headers`` are
    those of the answer that belong to the error: when to try again, above all.
    """

    default_status = 500
    default_type = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,  # noqa: A002 (the wire's own word)
        code: str | None = None,
        param: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = self.default_status if status is None else status
        self.type = self.default_type if type is None else type
        self.code = code
        self.param = param
        self.headers = headers


class ClientError(ToolgraftError):
    """The request is at fault. Never worth sending again unchanged."""

    default_status = 400
    default_type = "invalid_request_error"


class UpstreamError(ToolgraftError):
    """The backend is at fault, or said that the request is.

    ``headers`` are the upstream's own answers to "when may I try again" (``retry-after``, ``retry-after-ms``,
    ``x-should-retry``), to be passed on. ``retryable`` is False when the same request cannot succeed later
    (a template error, say): the surface then sends ``x-should-retry: false``. None leaves it to the client's SDK.
    ``answered`` is the HTTP status that the backend itself gave in place of a reply, None when there was none.
    """

    default_status = 502
    default_type = "upstream_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        type: str | None = None,  # noqa: A002
        code: str | None = None,
        param: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        retryable: bool | None = None,
        answered: int | None = None,
    ) -> None:
        super().__init__(message, status=status, type=type, code=code, param=param, headers=headers)
        self.retryable = retryable
        self.answered = answered


class ConfigError(ToolgraftError):
    """A setting cannot be used. Raised at start-up only; the message names the setting and the mend."""

"""Which headers cross the proxy, each way.

Both lists are closed where that is safer. A request header goes on only when it is known to be harmless: the rest would
tell one user's secrets to a backend (cookies, keys) or contradict the framing that the HTTP client does itself
(``content-length``, ``transfer-encoding``; the way requests are smuggled). A response header comes back unless it is
hop-by-hop (RFC 9110, section 7.6.1), framing, or a decision that is the proxy's own to make, or that of a web server in
front of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

Headers = Iterable[tuple[str, str]]

_FORWARDED = frozenset(
    {
        "accept",
        "accept-language",
        "content-type",
        "idempotency-key",
        "if-none-match",
        "openai-beta",
        "range",
        "traceparent",
        "tracestate",
        "user-agent",
    }
)
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OWN = frozenset(
    {
        *("content-length", "date", "server", "request-id", "x-request-id"),
        # What a browser does to all of the origin, which is the proxy's, or instead of showing the answer.
        *("alt-svc", "clear-site-data", "nel", "refresh", "report-to", "reporting-endpoints", "service-worker-allowed"),
        *("set-cookie", "strict-transport-security", "x-content-type-options"),
        # Files that a web server in front of the proxy would send in place of the answer.
        *("x-accel-redirect", "x-lighttpd-send-file", "x-sendfile"),
    }
)
_INERT = (("x-content-type-options", "nosniff"), ("content-security-policy", "sandbox"))
"""What keeps a browser from running what is passed on: it has the origin of the inspector's page."""


def forwarded(headers: Headers) -> list[tuple[str, str]]:
    """The client's headers that go on to the backend. Names must be in lower case."""
    return [(name, value) for name, value in headers if name in _FORWARDED and _is_text(value)]


def returned(headers: Headers) -> list[tuple[str, str]]:
    """The backend's headers that go back to the client, names in lower case, and those that make the answer inert.

    Cross-origin permissions (``access-control-*``) are left out: a backend that allows every web page, as llama.cpp's
    server does, must not open the proxy to them.
    """
    pairs = [(name.lower(), value) for name, value in headers]
    listed = {token.strip().lower() for name, value in pairs if name == "connection" for token in value.split(",")}
    dropped = _HOP_BY_HOP | _OWN | listed
    kept = [
        (name, value)
        for name, value in pairs
        if name not in dropped and not name.startswith("access-control-") and _TOKEN.fullmatch(name) and _is_text(value)
    ]
    return [*kept, *_INERT]


def client_key(headers: Headers) -> str | None:
    """The client's API key as an ``Authorization`` value, None when it sent none (``Bearer``, ``Bearer null`` …)."""
    named = {name: value.strip() for name, value in headers}
    authorization = named.get("authorization", "")
    scheme, _, token = authorization.partition(" ")
    if token.strip() and not (scheme.lower() == "bearer" and token.strip() in ("null", "undefined", "None")):
        return authorization if _is_text(authorization) else None
    key = named.get("x-api-key", "")
    return f"Bearer {key}" if key and _is_text(key) else None


def _is_text(value: str) -> bool:
    """No control characters: servers refuse to send them, and the whole answer would be lost."""
    return _CONTROL.search(value) is None

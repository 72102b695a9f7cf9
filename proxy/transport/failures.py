"""What went wrong between us and a backend, in a sentence that names the backend and the mend.

The HTTP client blurs errors: refused, unknown host, reset and hung up all arrive as ``ConnectTimeout``, and an answer
that is no HTTP as a bare error of aiohttp. What happened is in ``__cause__``, an aiohttp error.
"""

from __future__ import annotations

import os

import aiohttp
import httpx2

from proxy.core.errors import UpstreamError
from proxy.transport.address import Address, in_container, locate

UNREACHABLE = "backend_unreachable"
"""The ``code`` of an error when no connection could be made: nothing was sent, another backend may be tried."""


def failed_to_answer(exc: Exception, address: Address, proxy: str | None, connect_timeout: float) -> UpstreamError:
    """The error for ``exc``, raised before the head of an answer came."""
    shown = address.shown
    cause = exc.__cause__ if isinstance(exc, httpx2.TransportError) and exc.__cause__ else exc
    match cause:
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(cause.certificate_error, "verify_message", "") or str(cause.certificate_error)
            return UpstreamError(
                f"The backend at {shown} cannot be trusted: {reason}. If its certificate is your own, name the file "
                "that holds its authority in SSL_CERT_FILE.",
                code="backend_tls",
                retryable=False,
            )
        case aiohttp.ClientConnectorSSLError():
            return UpstreamError(
                f"The backend at {shown} does not speak TLS as it should ({_os_reason(cause.os_error)}). If it speaks "
                "plain HTTP, its URL begins with http://.",
                code="backend_tls",
                retryable=False,
            )
        case aiohttp.ClientProxyConnectionError():
            reason = f"the proxy of the environment, {_shown_proxy(proxy)}, cannot be reached"
            return _unreachable(address, reason, "If the backend needs no proxy, name its host in NO_PROXY.")
        case aiohttp.ClientHttpProxyError():
            reason = f"the proxy of the environment, {_shown_proxy(proxy)}, answered {cause.status} {cause.message}"
            return _unreachable(address, reason, "If the backend needs no proxy, name its host in NO_PROXY.")
        case aiohttp.ClientConnectorDNSError():
            return _unreachable(address, f"its host has no address ({_os_reason(cause.os_error)})", _name_hint(address))
        case aiohttp.ConnectionTimeoutError():
            return _unreachable(address, f"no connection within {connect_timeout:g} seconds", _run_hint(address))
        case aiohttp.ClientConnectorError():
            return _unreachable(address, _os_reason(cause.os_error), _run_hint(address))
        case aiohttp.ServerDisconnectedError():
            return UpstreamError(
                f"The backend at {shown} closed the connection without an answer. Its own log may say why.",
                code="backend_closed",
            )
        case aiohttp.ClientOSError() | aiohttp.ClientConnectionResetError():
            return UpstreamError(
                f"The backend at {shown} broke the connection before it answered ({_os_reason(cause)}). Its own log "
                "may say why.",
                code="backend_closed",
            )
        case aiohttp.ClientResponseError():
            return UpstreamError(
                f"The backend at {shown} does not answer in HTTP ({_first_line(cause.message)}). Check the port"
                + (", and whether its URL should begin with https://." if not address.tls else "."),
                code="backend_not_http",
            )
    return UpstreamError(
        f"The request for {shown} cannot be sent: {_first_line(str(cause)) or type(cause).__name__}.",
        code="backend_bad_request",
        retryable=False,
    )


def broke_off(address: Address) -> UpstreamError:
    """The error for a reply that ended before it was complete."""
    return UpstreamError(
        f"The backend at {address.shown} broke off in the middle of its reply. Its own log may say why.",
        code="backend_broke_off",
    )


def timed_out(address: Address, what: str, seconds: float) -> UpstreamError:
    """The error for a time limit that was set and has passed; ``what`` did not come in time."""
    return UpstreamError(
        f"The backend at {address.shown} did not send {what} within {seconds:g} seconds, the limit that is configured.",
        status=504,
        code="backend_timeout",
    )


def no_status(address: Address, status: int) -> UpstreamError:
    """The error for an answer whose status is none that ends a request."""
    return UpstreamError(
        f"The backend at {address.shown} answered with the status {status}, which is none that HTTP knows there.",
        code="backend_not_http",
    )


def redirected(address: Address, status: int, location: str) -> UpstreamError:
    """The error for an answer that points elsewhere."""
    try:
        target = locate(str(address.url.join(location))).shown
    except (httpx2.InvalidURL, UpstreamError):
        target = "an address that cannot be used"
    return UpstreamError(
        f"The backend at {address.shown} sends its clients to {target} (status {status}). Redirects are not followed: "
        "set the backend's URL to where it lives.",
        code="backend_redirect",
        retryable=False,
    )


def too_large(address: Address, limit: int) -> UpstreamError:
    """The error for a body of more than ``limit`` bytes."""
    return UpstreamError(
        f"The backend at {address.shown} sent a reply of more than {limit} bytes; it was given up.",
        code="backend_reply_too_large",
        retryable=False,
    )


def unreadable(address: Address, encoding: str) -> UpstreamError:
    """The error for a body in a content coding that was not asked for and is not understood, or is broken."""
    return UpstreamError(
        f"The backend at {address.shown} sent a reply in the content coding {encoding!r} that cannot be read. "
        "Switch compression off in the backend, or in the proxy in front of it.",
        code="backend_unreadable",
        retryable=False,
    )


def _unreachable(address: Address, reason: str, hint: str) -> UpstreamError:
    return UpstreamError(
        f"The backend at {address.shown} cannot be reached: {reason}. {hint}", code=UNREACHABLE, retryable=True
    )


def _run_hint(address: Address) -> str:
    hint = "Is the model server running, and does it listen there?"
    if address.loopback and in_container():
        hint += (
            f" Inside a container {address.url.host} is the container itself: use host.docker.internal for the machine "
            "that it runs on (on Linux with --add-host=host.docker.internal:host-gateway)."
        )
    return hint


def _name_hint(address: Address) -> str:
    if address.local:
        return "On Linux, start the container with --add-host=host.docker.internal:host-gateway."
    return "Check the spelling, and the network."


def _os_reason(exc: Exception) -> str:
    """The system's own words, without the address, which the sentence names."""
    if isinstance(exc, OSError):
        reason = getattr(exc, "reason", None)  # of an ssl.SSLError, like WRONG_VERSION_NUMBER
        if isinstance(reason, str):
            return reason.replace("_", " ").lower()
        if exc.errno is not None and exc.errno > 0:
            return os.strerror(exc.errno).lower()
        if exc.strerror:
            return exc.strerror
    return _first_line(str(exc)) or type(exc).__name__


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0].rstrip(" :.")
    return line if len(line) <= 120 else line[:120] + "…"


def _shown_proxy(proxy: str | None) -> str:
    return locate(proxy).shown if proxy else "?"

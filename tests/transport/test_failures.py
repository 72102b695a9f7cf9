from __future__ import annotations

import errno
import socket
import ssl

import aiohttp
import httpx2
import pytest
from aiohttp.client_reqrep import ConnectionKey

from proxy.core.errors import UpstreamError
from proxy.transport import failures
from proxy.transport.address import locate

HERE = "http://user:secret@localhost:8080/v1?key=secret"
THERE = "http://user:secret@models.example/v1?key=secret"
KEY = ConnectionKey._make(["models.example", 80, False, True, *[None] * (len(ConnectionKey._fields) - 4)])


def explain(cause: Exception, url: str = THERE, proxy: str | None = None) -> UpstreamError:
    """What is made of ``cause`` as the HTTP client hands it over: behind a ``ConnectTimeout``."""
    blurred = httpx2.ConnectTimeout("blurred")
    blurred.__cause__ = cause
    error = failures.failed_to_answer(blurred, locate(url), proxy, 10.0)
    assert locate(url).shown in error.message
    assert "secret" not in error.message
    assert error.status == 502
    return error


def connector(number: int, text: str) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(KEY, OSError(number, text))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            connector(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 80)"),
            "connection refused. Is the model server",
        ),
        (connector(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 80)"), "no route to host"),
        (aiohttp.ClientConnectorError(KEY, OSError("Multiple exceptions: one, two")), "Multiple exceptions"),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "Name or service not known")),
            "has no address (Name or",
        ),
        (aiohttp.ConnectionTimeoutError("Connection timeout to host"), "no connection within 10 seconds"),
    ],
)
def test_unreachable(cause: Exception, words: str) -> None:
    error = explain(cause)
    assert words in error.message
    assert error.code == failures.UNREACHABLE
    assert error.retryable is True


def test_the_way_out_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = connector(errno.ECONNREFUSED, "")
    assert "host.docker.internal" not in explain(refused, HERE).message
    monkeypatch.setattr(failures, "in_container", lambda: True)
    assert "use host.docker.internal" in explain(refused, HERE).message
    assert "host.docker.internal" not in explain(refused, THERE).message


def test_a_container_that_does_not_know_its_host() -> None:
    unknown = aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "Name or service not known"))
    assert "--add-host" in explain(unknown, "http://host.docker.internal:8080/v1").message
    assert "--add-host" not in explain(unknown).message


def test_a_proxy_is_named_without_its_password() -> None:
    proxy = "http://user:secret@proxy.example:3128"
    refused = aiohttp.ClientProxyConnectionError(KEY, ConnectionRefusedError(errno.ECONNREFUSED, ""))
    denied = aiohttp.ClientHttpProxyError(None, (), status=407, message="Authentication Required")  # type: ignore[arg-type]
    for cause, words in ((refused, "cannot be reached"), (denied, "answered 407 Authentication Required")):
        error = explain(cause, proxy=proxy)
        assert f"the proxy of the environment, http://proxy.example:3128, {words}" in error.message
        assert "NO_PROXY" in error.message
        assert error.code == failures.UNREACHABLE


def test_tls() -> None:
    untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
    untrusted.verify_message = "self-signed certificate"
    error = explain(aiohttp.ClientConnectorCertificateError(KEY, untrusted))
    assert "cannot be trusted: self-signed certificate" in error.message
    assert "SSL_CERT_FILE" in error.message
    assert error.retryable is False

    plain = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)")
    plain.reason = "WRONG_VERSION_NUMBER"
    error = explain(aiohttp.ClientConnectorSSLError(KEY, plain))
    assert "(wrong version number)" in error.message
    assert "http://" in error.message
    assert error.retryable is False


def test_no_answer() -> None:
    error = explain(aiohttp.ServerDisconnectedError())
    assert "closed the connection without an answer" in error.message
    assert error.code == "backend_closed"
    error = explain(aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer"))
    assert "(connection reset by peer)" in error.message
    assert error.code == "backend_closed"


def test_an_answer_that_is_no_http_is_quoted_in_one_short_line() -> None:
    garbage = aiohttp.ClientResponseError(None, (), status=400, message="Bad status line:\n  " + "x" * 9000)  # type: ignore[arg-type]
    error = failures.failed_to_answer(garbage, locate(THERE), None, 10.0)
    assert "(Bad status line)" in error.message
    assert "https://" in error.message
    assert "https://" not in failures.failed_to_answer(
        garbage, locate("https://models.example/"), None, 10.0
    ).message.replace("https://models.example/", "")
    long = aiohttp.ClientResponseError(None, (), status=400, message="x" * 9000)  # type: ignore[arg-type]
    assert len(failures.failed_to_answer(long, locate(THERE), None, 10.0).message) < 400


def test_a_request_that_cannot_be_sent() -> None:
    error = explain(ValueError("Newline or carriage return detected in headers"))
    assert "cannot be sent: Newline" in error.message
    assert error.retryable is False


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://user:secret@else.example/v1?key=secret", "https://else.example/v1"),
        ("/elsewhere", "http://models.example/elsewhere"),
        ("mailto:someone", "an address that cannot be used"),
        ("http://h\0", "an address that cannot be used"),
    ],
)
def test_redirects_name_their_target(location: str, target: str) -> None:
    error = failures.redirected(locate(THERE), 308, location)
    assert f"to {target} (status 308)" in error.message
    assert "secret" not in error.message
    assert error.retryable is False


def test_time_limits_are_gateway_timeouts() -> None:
    error = failures.timed_out(locate(THERE), "the first byte of its reply", 30.0)
    assert error.status == 504
    assert "did not send the first byte of its reply within 30 seconds" in error.message

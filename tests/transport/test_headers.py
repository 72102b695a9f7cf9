from __future__ import annotations

import pytest

from proxy.transport.headers import client_key, forwarded, returned

INERT = [("x-content-type-options", "nosniff"), ("content-security-policy", "sandbox")]


def test_only_harmless_request_headers_go_on() -> None:
    sent = [
        ("accept", "*/*"),
        ("content-type", "multipart/form-data; boundary=x"),
        ("user-agent", "OpenAI/Python"),
        ("traceparent", "00-a-b-01"),
        ("host", "proxy.example"),
        ("content-length", "10"),
        ("transfer-encoding", "chunked"),
        ("connection", "upgrade"),
        ("expect", "100-continue"),
        ("cookie", "session=1"),
        ("authorization", "Bearer sk-1"),
        ("x-api-key", "sk-1"),
        ("x-forwarded-for", "10.0.0.1"),
        ("accept-encoding", "gzip"),
    ]
    assert [name for name, _ in forwarded(sent)] == ["accept", "content-type", "user-agent", "traceparent"]


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\0b"])
def test_a_value_that_could_become_another_header_goes_nowhere(value: str) -> None:
    assert forwarded([("accept", value)]) == []
    assert returned([("x-note", value)]) == INERT
    assert client_key([("x-api-key", value)]) is None
    assert client_key([("authorization", f"Bearer {value}")]) is None


def test_the_backend_s_headers_come_back_without_those_of_the_connection_and_the_proxy_s_own() -> None:
    received = [
        ("Content-Type", "application/json"),
        ("OpenAI-Processing-Ms", "12"),
        ("Retry-After", "3"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "10"),
        ("Set-Cookie", "session=1"),
        ("Server", "llama.cpp"),
        ("Date", "today"),
        ("X-Request-Id", "theirs"),
        ("Access-Control-Allow-Origin", "*"),
    ]
    assert returned(received) == [
        ("content-type", "application/json"),
        ("openai-processing-ms", "12"),
        ("retry-after", "3"),
        *INERT,
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("Refresh", "Clear-Site-Data", "Service-Worker-Allowed", "NEL", "Report-To", "Reporting-Endpoints", "Alt-Svc"),
        *("Set-Cookie", "Strict-Transport-Security", "X-Content-Type-Options"),
        *("X-Accel-Redirect", "X-Sendfile", "X-LIGHTTPD-send-file"),
    ],
)
def test_a_backend_steers_neither_browsers_nor_the_web_server_in_front(name: str) -> None:
    assert returned([(name, "x")]) == INERT


def test_a_header_that_no_server_would_send_on_does_not_come_back() -> None:
    assert returned([("x-a", "7\x0b"), ("x-b", "7\x7f"), ("x(c", "7"), ("", "7"), ("x-d", "7\t8 \xe9")]) == [
        ("x-d", "7\t8 \xe9"),
        *INERT,
    ]


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ([], None),
        ([("authorization", "Bearer")], None),
        ([("authorization", "Bearer ")], None),
        ([("authorization", "Bearer null")], None),
        ([("authorization", "bearer undefined")], None),
        ([("authorization", "Bearer sk-1")], "Bearer sk-1"),
        ([("authorization", "Basic dTpw")], "Basic dTpw"),
        ([("x-api-key", "sk-2")], "Bearer sk-2"),
        ([("authorization", "Bearer null"), ("x-api-key", "sk-2")], "Bearer sk-2"),
    ],
)
def test_the_client_s_key_is_what_is_one(headers: list[tuple[str, str]], key: str | None) -> None:
    assert client_key(headers) == key

from __future__ import annotations

from typing import Any

import pytest

from proxy.access import Keys, hash_key
from proxy.asgi import Exchange
from proxy.config import BackendConfig, Config
from proxy.core.errors import ClientError
from proxy.gate import Gate
from proxy.limits import Rate
from proxy.telemetry import RequestLog

KEYS = Keys({"ann": hash_key(b"tg-ann"), "bob": hash_key(b"tg-bob")})


def exchange(key: str = "", client: tuple[str, int] | None = ("10.0.0.1", 5)) -> Exchange:
    headers = [(b"x-api-key", key.encode())] if key else []

    async def never(*_: Any) -> Any:
        raise AssertionError

    return Exchange({"type": "http", "headers": headers, "client": client}, never, never, "r")


def admitted(gate: Gate, request: Exchange) -> RequestLog:
    log = RequestLog("r", "chat")
    gate.admit(request, log)
    return log


def test_the_owner_of_a_key_is_noted() -> None:
    assert admitted(Gate(KEYS), exchange("tg-bob")).client == "bob"


def test_without_a_key_there_is_no_way_in() -> None:
    with pytest.raises(ClientError) as caught:
        admitted(Gate(KEYS), exchange())
    assert caught.value.status == 401


def test_a_rate_is_each_key_s_own_and_told_in_the_answer() -> None:
    gate = Gate(KEYS, Rate(1))
    first = exchange("tg-ann")
    admitted(gate, first)
    assert ("x-ratelimit-remaining-requests", "0") in first.extra
    with pytest.raises(ClientError, match="Try again"):
        admitted(gate, exchange("tg-ann", ("10.0.0.2", 6)))
    admitted(gate, exchange("tg-bob"))


def test_a_wrong_key_uses_up_nobody_s_rate() -> None:
    gate = Gate(KEYS, Rate(1))
    for _ in range(3):
        with pytest.raises(ClientError) as caught:
            admitted(gate, exchange("tg-guess"))
        assert caught.value.status == 401
    admitted(gate, exchange("tg-ann"))


def test_without_keys_the_rate_is_each_address_s_own() -> None:
    gate = Gate(Keys({}), Rate(1))
    admitted(gate, exchange())
    with pytest.raises(ClientError):
        admitted(gate, exchange(client=("10.0.0.1", 77)))
    admitted(gate, exchange(client=("10.0.0.2", 5)))
    admitted(gate, exchange(client=None))


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 403),
        ({"allowed_hosts": ("evil.example",)}, None),
        ({"client_keys": {"ann": hash_key(b"tg-ann")}}, None),
        ({"host": "0.0.0.0"}, None),
    ],
)
def test_names_count_where_everything_on_this_machine_is_let_in(more: dict[str, Any], status: int | None) -> None:
    gate = Gate.of(Config((BackendConfig("http://b"),), **more))
    request = exchange("tg-ann")
    request.scope["headers"].append((b"host", b"evil.example:8787"))
    refused: list[int] = []
    try:
        admitted(gate, request)
    except ClientError as error:
        refused.append(error.status)
    assert refused == ([] if status is None else [status])


def asked(**headers: str) -> Exchange:
    request = exchange()
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    request.scope["headers"] = [(b"host", b"127.0.0.1"), *raw]
    return request


@pytest.mark.parametrize(
    ("headers", "allowed", "let_in"),
    [
        ({"origin": "https://evil.example", "sec_fetch_site": "cross-site"}, (), False),
        ({"origin": "https://evil.example", "sec_fetch_site": "cross-site"}, ("https://evil.example",), True),
        ({"origin": "http://127.0.0.1:8787", "sec_fetch_site": "same-origin"}, (), True),
        ({"origin": "https://no.browser"}, (), True),
        ({}, (), True),
    ],
)
def test_a_page_of_another_site_makes_no_model_work(
    headers: dict[str, str], allowed: tuple[str, ...], let_in: bool
) -> None:
    gate = Gate.of(Config((BackendConfig("http://b"),), cors_origins=allowed))
    if let_in:
        admitted(gate, asked(**headers))
    else:
        with pytest.raises(ClientError, match="cors_origins"):
            admitted(gate, asked(**headers))


def test_what_a_rate_has_counted_outlives_a_reload() -> None:
    config = Config((BackendConfig("http://b"),), rate_limit=1)
    first = Gate.of(config)
    admitted(first, asked())
    with pytest.raises(ClientError, match="requests a minute"):
        admitted(Gate.of(config, first), asked())

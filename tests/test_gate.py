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


def exchange(key: str = "", client: tuple[str, int] | None = ("10.0.0.1", 5), method: str = "GET") -> Exchange:
    headers = [(b"x-api-key", key.encode())] if key else []

    async def never(*_: Any) -> Any:
        raise AssertionError

    return Exchange({"type": "http", "method": method, "headers": headers, "client": client}, never, never, "r")


def admitted(gate: Gate, request: Exchange) -> RequestLog:
    log = RequestLog("r", "chat")
    gate.admit(request, log)
    return log


async def test_the_owner_of_a_key_is_noted() -> None:
    assert admitted(Gate(KEYS), exchange("tg-bob")).client == "bob"


async def test_without_a_key_there_is_no_way_in() -> None:
    with pytest.raises(ClientError) as caught:
        admitted(Gate(KEYS), exchange())
    assert caught.value.status == 401


async def test_a_rate_is_each_key_s_own_and_told_in_the_answer() -> None:
    gate = Gate(KEYS, Rate(1))
    first = exchange("tg-ann")
    admitted(gate, first)
    assert ("x-ratelimit-remaining-requests", "0") in first.extra
    with pytest.raises(ClientError, match="Try again"):
        admitted(gate, exchange("tg-ann", ("10.0.0.2", 6)))
    admitted(gate, exchange("tg-bob"))


async def test_a_wrong_key_uses_up_nobody_s_rate() -> None:
    gate = Gate(KEYS, Rate(1))
    for _ in range(3):
        with pytest.raises(ClientError) as caught:
            admitted(gate, exchange("tg-guess"))
        assert caught.value.status == 401
    admitted(gate, exchange("tg-ann"))


async def test_without_keys_the_rate_is_each_address_s_own() -> None:
    gate = Gate(Keys({}), Rate(1))
    admitted(gate, exchange())
    with pytest.raises(ClientError):
        admitted(gate, exchange(client=("10.0.0.1", 77)))
    admitted(gate, exchange(client=("10.0.0.2", 5)))
    admitted(gate, exchange(client=None))
    admitted(gate, exchange(client=("2001:db8::1", 5)))
    with pytest.raises(ClientError):
        admitted(gate, exchange(client=("2001:db8::2", 5)))


async def test_what_is_not_counted_takes_nothing_of_the_rate() -> None:
    gate = Gate(Keys({}), Rate(1))
    for _ in range(3):
        request = exchange()
        gate.admit(request, RequestLog("r", "inspector"), counted=False)
        assert request.extra == []
    admitted(gate, exchange())


@pytest.mark.parametrize(
    ("config", "key", "host", "trusted"),
    [
        ({}, "", "127.0.0.1", True),
        ({}, "", "evil.example", False),
        ({"host": "0.0.0.0"}, "", "127.0.0.1", False),
        ({"client_keys": {"ann": hash_key(b"tg-ann")}}, "", "127.0.0.1", False),
        ({"client_keys": {"ann": hash_key(b"tg-ann")}, "host": "0.0.0.0"}, "tg-ann", "llm.example", True),
    ],
)
async def test_who_may_hear_what_is_configured(config: dict[str, Any], key: str, host: str, trusted: bool) -> None:
    request = exchange(key)
    request.scope["headers"].append((b"host", host.encode()))
    gate = Gate.of(Config((BackendConfig("http://b"),), rate_limit=1, **config))
    assert [gate.trusts(request, RequestLog("r", "health")) for _ in range(3)] == [trusted] * 3


def of(**config: Any) -> Gate:
    return Gate.of(Config((BackendConfig("http://b"),), **config))


def asked(method: str = "POST", **headers: str) -> Exchange:
    request = exchange(method=method)
    given = {"host": "127.0.0.1:8787", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    request.scope["headers"] = raw
    return request


EVIL = {"host": "evil.example:8787"}


@pytest.mark.parametrize(
    ("config", "let_in"),
    [
        ({}, False),
        ({"host": "0.0.0.0"}, False),
        ({"allowed_hosts": ("evil.example",)}, True),
        ({"client_keys": {"ann": hash_key(b"tg-ann")}}, True),
    ],
)
@pytest.mark.parametrize(
    ("method", "headers"), [("GET", EVIL), ("HEAD", EVIL), ("POST", {**EVIL, "origin": "http://evil.example:8787"})]
)
async def test_a_page_whose_name_leads_here_is_let_in_nowhere_without_a_key(
    method: str, headers: dict[str, str], config: dict[str, Any], let_in: bool
) -> None:
    request = asked(method, **headers, x_api_key="tg-ann")
    if let_in:
        admitted(of(**config), request)
    else:
        with pytest.raises(ClientError) as caught:
            admitted(of(**config), request)
        assert caught.value.code == "host_not_allowed"


async def test_a_program_may_ask_by_any_name() -> None:
    """Browsers name the page that a POST comes from."""
    admitted(of(), asked(host="toolgraft.tools:8787"))


EVIL_PAGE = "https://evil.example"


@pytest.mark.parametrize(
    ("headers", "allowed", "let_in"),
    [
        ({"origin": EVIL_PAGE, "sec_fetch_site": "cross-site"}, (), False),
        ({"origin": EVIL_PAGE, "sec_fetch_site": "same-site"}, (), False),
        ({"origin": EVIL_PAGE, "sec_fetch_site": "cross-site"}, (EVIL_PAGE,), True),
        ({"origin": EVIL_PAGE, "sec_fetch_site": "cross-site", "host": "llm.example"}, ("*",), True),
        ({"origin": "http://127.0.0.1:8787", "sec_fetch_site": "same-origin"}, (), True),
        # Over plain HTTP, and not on the machine itself, browsers tell of the origin alone.
        ({"origin": EVIL_PAGE, "host": "192.168.0.7:8787"}, (), False),
        ({"origin": "null", "host": "192.168.0.7:8787"}, (), False),
        ({"origin": "http://[", "host": "192.168.0.7:8787"}, (), False),
        ({"origin": "http://192.168.0.7:8787", "host": "192.168.0.7:8787"}, (), True),
        ({"origin": "app://obsidian.md", "host": "192.168.0.7:8787"}, (), True),
        # A gateway that gives the proxy a name of its own.
        ({"origin": "https://llm.example", "sec_fetch_site": "same-origin", "host": "toolgraft:8787"}, (), True),
        ({}, (), True),
    ],
)
async def test_a_page_of_another_site_makes_no_model_work(
    headers: dict[str, str], allowed: tuple[str, ...], let_in: bool
) -> None:
    gate = of(cors_origins=allowed)
    if let_in:
        admitted(gate, asked(**headers))
    else:
        with pytest.raises(ClientError, match="cors_origins"):
            admitted(gate, asked(**headers))


async def test_what_a_rate_has_counted_outlives_a_reload() -> None:
    config = Config((BackendConfig("http://b"),), rate_limit=1)
    first = Gate.of(config)
    admitted(first, asked())
    with pytest.raises(ClientError, match="requests a minute"):
        admitted(Gate.of(config, first), asked())

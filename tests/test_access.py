from __future__ import annotations

import hashlib
import socket

import pytest

from proxy.access import Hosts, Keys, hash_key, is_hash, is_loopback, network
from proxy.core.errors import ClientError

KEYS = Keys({"ann": hash_key(b"tg-ann"), "bob": hash_key("schlüssel".encode())})


def test_a_key_is_kept_as_its_hash() -> None:
    assert hash_key(b"tg-ann") == "sha256:" + hashlib.sha256(b"tg-ann").hexdigest()
    assert is_hash(hash_key(b""))


@pytest.mark.parametrize("text", ["", "sha256:", "tg-ann", "sha256:" + "A" * 64, "sha256:" + "a" * 63, "a" * 64])
def test_what_is_no_hash(text: str) -> None:
    assert not is_hash(text)


@pytest.mark.parametrize(
    ("headers", "owner"),
    [
        ([(b"authorization", b"Bearer tg-ann")], "ann"),
        ([(b"authorization", b"bearer   tg-ann ")], "ann"),
        ([(b"x-api-key", b"tg-ann")], "ann"),
        ([(b"x-api-key", "schlüssel".encode())], "bob"),
        ([(b"authorization", b"Bearer none"), (b"x-api-key", b"tg-ann")], "ann"),
        ([(b"x-api-key", b"none"), (b"authorization", b"Bearer tg-ann")], "ann"),
    ],
)
def test_a_known_key_has_an_owner(headers: list[tuple[bytes, bytes]], owner: str) -> None:
    assert KEYS.owner(headers) == owner


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"Bearer secret-guess")],
        [(b"authorization", b"Basic tg-ann")],
        [(b"authorization", b"tg-ann")],
        [(b"x-api-key", b"")],
        [(b"x-api-key", b"secret-guess")],
        [(b"x-api-key", hash_key(b"tg-ann").encode())],
        [(b"cookie", b"tg-ann")],
    ],
)
def test_any_other_is_refused_and_never_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(ClientError) as caught:
        KEYS.owner(headers)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")
    assert ("www-authenticate", "Bearer") in caught.value.headers
    assert "secret-guess" not in caught.value.message


def test_the_error_says_whether_a_key_was_shown() -> None:
    with pytest.raises(ClientError, match="x-api-key: KEY"):
        KEYS.owner([])
    with pytest.raises(ClientError, match="not one that the proxy knows"):
        KEYS.owner([(b"x-api-key", b"x")])


def test_without_keys_everybody_is_let_in() -> None:
    assert Keys({}).owner([]) is None
    assert Keys({}).owner([(b"x-api-key", b"anything")]) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_the_machine_as_only_itself_can_reach_it(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "", "example.com", "localhost.example.com"])
def test_the_machine_as_others_can_reach_it(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("address", "where"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("a:b", "a:b"),
        ("", ""),
    ],
)
def test_who_has_many_addresses_is_known_by_the_network(address: str, where: str) -> None:
    assert network(address) == where


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:8787", "localhost", "LOCALHOST:8787", "[::1]:8787", "[::1]", "192.168.0.7:80", "toolgraft:8787"),
        *(
            "host.docker.internal:8787",
            "app.localhost",
            "toolgraft.tools.svc:8787",
            "toolgraft.tools.svc.cluster.local",
            "box.local",
            "box.lan",
            "localhost.",
            "",
            "llm.example.com:443",
        ),
        socket.gethostname(),
    ],
)
def test_names_that_no_page_of_the_web_can_have(host: str) -> None:
    Hosts(["LLM.example.com"]).check([(b"accept", b"*/*"), (b"host", host.encode())])


@pytest.mark.parametrize(
    "host", ["evil.example:8787", "127.0.0.1.evil.example", "localhost.evil.example", "1.2.3", "x.y", "svc.evil"]
)
def test_any_other_name_may_be_that_of_a_page(host: str) -> None:
    with pytest.raises(ClientError) as caught:
        Hosts(["llm.example.com"]).check([(b"host", host.encode())])
    assert (caught.value.status, caught.value.code) == (403, "host_not_allowed")
    Hosts(["*"]).check([(b"host", host.encode())])

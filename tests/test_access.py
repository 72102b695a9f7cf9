from __future__ import annotations

import hashlib

import pytest

from proxy.access import Keys, hash_key, is_hash
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

"""Who may use the proxy: API keys that clients show, and of which only hashes are kept; the names that it goes by."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from proxy.core.errors import ClientError

PREFIX = "sha256:"
_PORT = re.compile(r":\d*$")
_PRIVATE = (".localhost", ".local", ".internal", ".svc", ".lan", ".home", ".corp", ".home.arpa")
"""Domains that nobody can register: machines, containers, Kubernetes and networks at home have them."""

_NETWORK = 64
"""Bits of an IPv6 address that tell whose it is: everybody has as many of the rest as they like."""

_HASH = re.compile(PREFIX + "[0-9a-f]{64}")


def hash_key(key: bytes) -> str:
    """What the configuration holds of a key. Keys are long and random, so that a fast hash is enough."""
    return PREFIX + hashlib.sha256(key).hexdigest()


def is_hash(text: str) -> bool:
    """Whether ``text`` is what ``hash_key`` returns."""
    return _HASH.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether ``host``, a name or an address, is this machine as only itself can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def network(address: str) -> str:
    """Where ``address`` is: itself, but of an IPv6 address the network, and of an IPv4 address in it that."""
    if ":" not in address:
        return address
    try:
        given = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(given.ipv4_mapped or ipaddress.IPv6Network((int(given), _NETWORK), strict=False))


class Hosts:
    """The names by which a proxy that wants no key may be asked for by a browser; ``allowed`` are further ones.

    A web page can have its own name lead to any address that the browser can reach, 127.0.0.1 too, once it is open, and
    is then free to read every answer ("DNS rebinding"). The browser still sends that name as ``Host``. No such page can
    have an address, a name without a dot, or one of a domain that nobody can register.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = {name.lower() for name in (*allowed, socket.gethostname())}
        self._lets_in = lru_cache(maxsize=64)(self._knows)

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Raise ``ClientError`` (403) when a request, with its headers' names in lower case, asks for another name."""
        for name, value in headers:
            if name == b"host" and not self._lets_in(value):
                raise ClientError(
                    "This proxy wants no key, and a web page may be behind the name that was asked for. "
                    "Name it in `allowed_hosts`, or let clients show a key.",
                    status=403,
                    code="host_not_allowed",
                )

    def _knows(self, header: bytes) -> bool:
        host = _PORT.sub("", header.decode("latin-1").strip().lower()).strip("[].")
        return bool(self._allowed & {host, "*"}) or _is_private(host)


def _is_private(host: str) -> bool:
    if "." not in host or host.endswith(_PRIVATE):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Keys:
    """The keys that are let in: the hash of each by the name of its owner. Without any, everybody is."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = [(name, given.encode()) for name, given in hashes.items()]

    def owner(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Whose key a request shows, as ``Authorization: Bearer`` or ``x-api-key``; None where no key is wanted.

        ``headers`` have their names in lower case. Raises ``ClientError`` (401), which never repeats what was shown.
        The time that it takes does not depend on how much of a key was right.
        """
        if not self._hashes:
            return None
        found: str | None = None
        shown = False
        for key in _shown(headers):
            shown = True
            given = hash_key(key).encode()
            for name, known in self._hashes:
                if hmac.compare_digest(given, known):
                    found = name
        if found is not None:
            return found
        raise ClientError(
            "This API key is not one that the proxy knows."
            if shown
            else "The proxy wants an API key: as `Authorization: Bearer KEY`, or as `x-api-key: KEY`.",
            status=401,
            code="invalid_api_key",
            headers=(("www-authenticate", "Bearer"),),
        )


def _shown(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.strip().partition(b" ")
            if scheme.lower() == b"bearer" and token.strip():
                yield token.strip()
        elif name == b"x-api-key" and value.strip():
            yield value.strip()

"""Who may use the proxy: API keys that clients show, and of which only hashes are kept."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping

from proxy.core.errors import ClientError

PREFIX = "sha256:"
_HASH = re.compile(PREFIX + "[0-9a-f]{64}")


def hash_key(key: bytes) -> str:
    """What the configuration holds of a key. Keys are long and random, so that a fast hash is enough."""
    return PREFIX + hashlib.sha256(key).hexdigest()


def is_hash(text: str) -> bool:
    """Whether ``text`` is what ``hash_key`` returns."""
    return _HASH.fullmatch(text) is not None


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

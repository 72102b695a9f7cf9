"""Names for what is new: requests, answers, calls."""

from __future__ import annotations

from random import getrandbits


def new_id(prefix: str, size: int = 12) -> str:
    """``prefix`` and so many random bytes in hexadecimal: like no other, but no secret, as no system call is made."""
    return prefix + getrandbits(8 * size).to_bytes(size, "big").hex()

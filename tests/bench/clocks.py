"""Time that is told in text, CPU time and memory of other processes. For Linux."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

STAMP = re.compile(rb"[G-Z][0-9A-Z]{5}")
"""A time, as it stands in a streamed token. Ids and JSON in lower case hold nothing like it."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PAIRS = [high + low for high in _DIGITS for low in _DIGITS]
_SQUARE = 36 * 36
_ROUND = 20 * 36 * _SQUARE * _SQUARE
"""Microseconds after which times begin anew: six digits, of which the first is one of 20 letters."""


def now() -> int:
    """Microseconds, on a clock that all processes of the machine share."""
    return time.monotonic_ns() // 1000


def stamp(at: int) -> str:
    """The time ``at`` as six letters and digits."""
    rest = at % _ROUND
    rest, last = divmod(rest, _SQUARE)
    first, middle = divmod(rest, _SQUARE)
    return _DIGITS[16 + first // 36] + _DIGITS[first % 36] + _PAIRS[middle] + _PAIRS[last]


def stamps(data: bytes) -> Iterator[int]:
    """The times that stand in ``data``."""
    for found in STAMP.finditer(data):
        text = found[0]
        yield (int(text[:1], 36) - 16) * 36 * _SQUARE * _SQUARE + int(text[1:], 36)


def since(at: int, until: int) -> int:
    """Microseconds from a time that was told in text to ``until``."""
    return (until - at) % _ROUND


def cpu(process: int) -> float:
    """Seconds of CPU that a process has used, all of its threads together (the C library's ``clock_getcpuclockid``)."""
    return time.clock_gettime((~process) << 3 | 2)


def memory(process: int) -> int:
    """Bytes of memory that a process holds for itself."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {process} tells nothing of its memory")

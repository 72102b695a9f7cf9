"""On which line of a TOML text a key stands: the parser of the standard library does not tell."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

Path: TypeAlias = Sequence[str | int]
"""Names of keys, and the numbers (from 0) of tables in an array of tables."""


def line_of(text: str, path: Path) -> int | None:
    """The first line (from 1) of what defines the value at ``path`` in ``text``, which is valid; None if nothing does.

    A text up to the end of a statement is valid TOML too. So the statement is the one with which the value comes to be,
    and is found by halving.
    """
    lines = text.split("\n")
    if not _holds(_parsed(lines, len(lines)), path):
        return None
    before, after = 0, len(lines)  # as many lines lack the value, and have it
    while after - before > 1:
        middle = (before + after) // 2
        nearby = [*range(middle, before, -1), *range(middle + 1, after)]
        count, data = _first_valid(lines, nearby)
        if data is None:  # one statement fills them all
            break
        if _holds(data, path):
            after = count
        else:
            before = count
    return before + 1


def _first_valid(lines: Sequence[str], counts: Iterable[int]) -> tuple[int, dict[str, Any] | None]:
    for count in counts:
        data = _parsed(lines, count)
        if data is not None:
            return count, data
    return 0, None


def _parsed(lines: Sequence[str], count: int) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines[:count]))
    except tomllib.TOMLDecodeError:
        return None


def _holds(value: Any, path: Path) -> bool:
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return False
        elif not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True

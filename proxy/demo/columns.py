"""Two columns of plain text, as wide as the terminal, or one below the other where it is narrow."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TypeAlias

Block: TypeAlias = tuple[str, Iterable[tuple[str, str]]]
"""A heading and its lines: a short label and a text, which may hold line breaks."""

NARROW = 72
"""Below this many characters two columns cannot be read."""

WIDE = 150
"""No more is used, however wide the terminal."""

LABEL = 10
BETWEEN = " | "


def side_by_side(left: Block, right: Block, width: int) -> Iterator[str]:
    """The lines of both blocks, none longer than ``width`` (at least 20)."""
    if width < NARROW:
        yield from _column(left, width)
        yield from _column(right, width)
        return
    column = (width - len(BETWEEN)) // 2
    lefts, rights = _column(left, column), _column(right, column)
    for at in range(max(len(lefts), len(rights))):
        one, other = (lines[at] if at < len(lines) else "" for lines in (lefts, rights))
        yield f"{one:<{column}}{BETWEEN}{other}".rstrip()


def _column(block: Block, width: int) -> list[str]:
    heading, entries = block
    lines = [heading.upper()]
    for label, text in entries:
        wrapped = [piece for line in text.splitlines() or [""] for piece in _wrap(line, width - LABEL)]
        lines += [f"{label if at == 0 else '':<{LABEL}}{piece}".rstrip() for at, piece in enumerate(wrapped)]
    return lines


def _wrap(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, break_on_hyphens=False) or [""]

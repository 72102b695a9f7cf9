"""Whether a closing tag stands in quotes: it may then be the inside of a string whose quotes were not escaped."""

from __future__ import annotations

import re

QUOTES = ('"', "'")
LONGEST_GAP = 16  # characters between a quote and the tag beside it

_BLANKS = re.compile(r"[ \t]*")


def stands_in_quotes(before: str, text: str, end: int, *, final: bool) -> bool | None:
    """Whether quotes stand in front of a tag, where ``before`` ends, and behind it, at ``end`` in ``text``.

    None when more of ``text`` is needed to tell.
    """
    if not before[-LONGEST_GAP:].rstrip(" \t").endswith(QUOTES):
        return False
    behind = _BLANKS.match(text, end).end()  # type: ignore[union-attr]  # it always matches
    if behind == len(text) and not final:
        return None
    return text[behind : behind + 1] in QUOTES

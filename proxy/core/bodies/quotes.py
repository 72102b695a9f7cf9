"""Whether a closing tag stands in quotes: it may then be the inside of a string whose quotes were not escaped."""

from __future__ import annotations

import re

QUOTES = ('"', "'")
LONGEST_GAP = 16  # characters between a quote and the tag beside it

STRING_ENDS = (*QUOTES, "`", "\\")
"""What ends a string, or escapes what does, in a language that a value may be written in."""

_TAGS_IN_QUOTES = re.compile(r"(?P<quote>[\"'`])\s*(?:</[^<>]*>\s*)+(?P=quote)")
_BLANKS = re.compile(r"[ \t]*")


def in_string(before: str, text: str, end: int, *, final: bool) -> bool | None:
    """Whether a tag stands in a string: one that began before it on its line, the last of ``before``, ends right behind
    it, at ``end`` in ``text``. None when more of ``text`` is needed to tell.
    """
    line = before[before.rfind("\n") + 1 :]
    if not any(quote in line for quote in STRING_ENDS):
        return False
    behind = text[end : end + 1]
    if not behind:
        return False if final else None
    return behind in STRING_ENDS and behind in line


def closing_tags_in_quotes(text: str, at: int) -> bool:
    """Whether nothing but closing tags, of which one is at ``at``, stands between two quotes."""
    return at > 0 and _TAGS_IN_QUOTES.match(text, at - 1) is not None


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

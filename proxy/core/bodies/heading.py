"""Headings: no bodies of calls, but told from them by the same first bytes."""

from __future__ import annotations

from proxy.core.forms import Heading

_LONGEST = 300


def stands(heading: Heading, text: str, *, final: bool) -> bool | None:
    """Whether ``text`` begins with ``heading``; None when more of it is needed to tell."""
    if heading.until not in text[:_LONGEST]:
        return None if not final and len(text) < _LONGEST else False
    return heading.pattern.match(text) is not None


def length(heading: Heading, text: str) -> int:
    """How long ``heading``, with which ``text`` begins, is."""
    found = heading.pattern.match(text)
    return found.end() if found else 0

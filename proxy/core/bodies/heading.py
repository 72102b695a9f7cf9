"""Headings: no bodies of calls, but told from them by the same first bytes."""

from __future__ import annotations

from proxy.core.bodies.base import reaches
from proxy.core.forms import Heading


def stands(heading: Heading, text: str, *, final: bool) -> bool | None:
    """Whether ``text`` begins with ``heading``; None when more of it is needed to tell."""
    seen = reaches(heading.until, text, final=final)
    return heading.pattern.match(text) is not None if seen else seen


def length(heading: Heading, text: str) -> int:
    """How long ``heading``, with which ``text`` begins, is."""
    found = heading.pattern.match(text)
    return found.end() if found else 0

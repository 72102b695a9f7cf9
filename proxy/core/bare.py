"""Calls without any tag: JSON that begins as a call of a declared tool does."""

from __future__ import annotations

import re

from proxy.core.bodies.shapes import FIRST_KEYS
from proxy.core.calls import ToolSet

_BEGINS = re.compile(
    r"""[{\[]\s*(?:\{\s*)?(?P<quote>["'])(?P<key>\w*)(?P=quote)\s*:\s*(?P<rest>["'][^"']*["']?|[^"'\s]?)"""
)
_SO_FAR = re.compile(r"""[{\[]\s*(?:\{\s*)?(?:["']\w{0,20}(?:["']\s*(?::\s*(?:["'][^"']{0,100})?)?)?)?""")
_NAME_KEYS = frozenset({"name", "tool_name", "function_name", "tool"})


def begins_bare(tools: ToolSet, text: str, at: int, *, final: bool) -> bool | None:
    """Whether JSON that may be a call begins at ``at``; None when more is needed to tell.

    It ends to be possible with the first key that no call has, or with a name that is not declared.
    """
    if not tools:
        return False
    if not final and _SO_FAR.fullmatch(text, at):
        return None
    found = _BEGINS.match(text, at)
    if found is None or found["key"] not in FIRST_KEYS:
        return False
    value = found["rest"]
    if found["key"] in _NAME_KEYS and value[:1] in ("'", '"'):
        return tools.declares(value[1:].rstrip("\"'")) is not None
    return True

"""Calls without any tag: JSON, or a list of Python calls, that begins as a call of a declared tool does."""

from __future__ import annotations

import re

from proxy.core.bodies.shapes import FIRST_KEYS
from proxy.core.calls import ToolSet

_OPENING = re.compile(r"""[{\[]\s*(?:\{\s*)?(?P<quote>["'])?""")
_KEY = re.compile(r"\w*")
_VALUE = re.compile(r"""["']\s*:\s*(?P<quote>["']?)(?P<name>[^"']{0,200})(?P<end>["']?)""")
_PYTHON = re.compile(r"\[\s*(?P<name>[^\W\d][\w.-]{0,200})\s*")
_NAME_KEYS = frozenset({"name", "tool_name", "function_name", "tool"})


def begins_bare(tools: ToolSet, text: str, at: int, *, final: bool) -> bool | None:
    """Whether JSON or Python that may be a call begins at ``at``; None when more is needed to tell.

    It ends to be possible with the first key that no call has, or with a name that is not declared.
    """
    if not tools:
        return False
    unknown = None if not final else False
    opening = _OPENING.match(text, at)
    if opening is None:
        return False
    if not opening["quote"]:
        return unknown if opening.end() == len(text) else _begins_python(tools, text, at, unknown)
    key = _KEY.match(text, opening.end())
    assert key is not None  # noqa: S101 (it matches nothing as well)
    if key.end() == len(text):
        return unknown if any(name.startswith(key[0]) for name in FIRST_KEYS) else False
    if key[0] not in FIRST_KEYS or text[key.end()] != opening["quote"]:
        return False
    value = _VALUE.match(text, key.end())
    if value is None:
        return unknown if not text[key.end() + 1 :].strip() else False
    if value.end() == len(text) and not value["end"]:
        return unknown
    if key[0] in _NAME_KEYS and value["quote"]:
        return tools.declares(value["name"]) is not None
    return True


def _begins_python(tools: ToolSet, text: str, at: int, unknown: bool | None) -> bool | None:
    named = _PYTHON.match(text, at)
    if named is None:
        return False
    if named.end() == len(text):
        return unknown
    return text[named.end()] == "(" and tools.declares(named["name"]) is not None

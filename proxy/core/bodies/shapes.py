"""Strict JSON to calls: the shapes in which models put a name and its arguments."""

from __future__ import annotations

import re

from proxy.core.arguments.jsontext import Member, loads, members, scan, skip_space
from proxy.core.arguments.repair import repair
from proxy.core.bodies.base import Item, Leftover, RawCall

NAME_KEYS = ("name", "tool_name", "function_name", "function", "tool")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "params", "tool_input")
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "calls")
_LABELS = frozenset({"id", "type", "index", "call_id", "tool_call_id", "description", "thought", "reasoning"})
_FENCE = "```"
_BLANK = r"[ \t\n\r]*"
_OPENING = re.compile(_FENCE + r"\w*+[ \t]*+\n?")

_USUAL = re.compile(
    _BLANK.join(
        (
            *(r"\{", f'"(?:{"|".join(NAME_KEYS)})"', ":", r'"(?P<name>[^"\\\x00-\x1f]+)"', ","),
            *(f'"(?:{"|".join(ARGUMENT_KEYS)})"', ":", r"(?=\{)"),
        )
    )
)
_USUAL_END = re.compile(_BLANK + r"\}")

FIRST_KEYS = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, *_WRAPPERS, "id", "type", "call_id", "tool_call_id"})
"""The keys by which a call object may begin."""


def unfence(text: str) -> str:
    """``text`` without a code fence around the whole of it."""
    whole = text.strip()
    opening, end = _OPENING.match(whole), len(whole) - len(_FENCE)
    if opening is None or opening.end() > end or not whole.endswith(_FENCE):
        return text
    return whole[opening.end() : end].rstrip()


def usual_call(text: str, at: int = 0) -> tuple[RawCall, int] | None:
    """The call at ``text[at]``, and where it ends, if strict JSON of a name and an object of arguments stands there.

    Nearly every call is written so, and this reads it in one go. None for other ways, and while there is more to come.
    """
    head = _USUAL.match(text, at)
    if head is None:
        return None
    start = head.end()
    try:
        _, end = scan(text, start)
    except ValueError:
        return None
    closing = _USUAL_END.match(text, end)
    return (RawCall(head["name"], text[start:end]), closing.end()) if closing else None


def calls_in(text: str, *, keyed: bool = False) -> list[Item]:
    """The calls in one strict JSON value, in order. What is no call is a :class:`Leftover` of its text.

    ``keyed``: objects are ``{"tool_name": {arguments}}``.
    """
    usual = None if keyed else usual_call(text)
    if usual is not None and usual[1] == len(text):
        return [usual[0]]
    at = skip_space(text, 0)
    if text[at] == "[":
        return [item for element in _elements(text[at:]) for item in calls_in(element, keyed=keyed)]
    if text[at] != "{":
        return [Leftover(text)]
    found, _ = members(text, at)
    if keyed:
        return [_call(member.key, text, member) or Leftover(text) for member in found] or [Leftover(text)]
    for wrapper in _WRAPPERS:
        inner = _only(found, (wrapper,))
        if inner and isinstance(inner.value, (dict, list)) and not _only(found, NAME_KEYS):
            return calls_in(text[inner.value_start : inner.value_end])
    name = _only(found, NAME_KEYS)
    if name is None:
        return [Leftover(text)]
    if isinstance(name.value, dict):  # {"type": "function", "function": {"name": …, "arguments": …}}
        inside = calls_in(text[name.value_start : name.value_end])
        return inside if all(isinstance(item, RawCall) for item in inside) else [Leftover(text)]
    if type(name.value) is not str or not name.value:
        return [Leftover(text)]
    return [_named(name.value, text, found, name)]


def open_arguments(text: str) -> tuple[str, int] | None:
    """The name, and where the unfinished arguments object begins, of a call object that is still being written.

    None when the name has not come before the arguments, or when they are anything else than an object.
    """
    at = skip_space(text, 0)
    if text[at : at + 1] != "{":
        return None
    at = skip_space(text, at + 1)
    name: str | None = None
    try:
        while True:
            key, at = scan(text, at)
            at = skip_space(text, at)
            if text[at : at + 1] != ":":
                return None
            at = skip_space(text, at + 1)
            if key in ARGUMENT_KEYS and name is not None and text[at : at + 1] == "{":
                return name, at
            value, at = scan(text, at)
            if key in NAME_KEYS and type(value) is str and name is None:
                name = value
            at = skip_space(text, at)
            if text[at : at + 1] != ",":
                return None
            at = skip_space(text, at + 1)
    except ValueError:
        return None


def _named(name: str, text: str, found: list[Member], name_member: Member) -> Item:
    given = [member for member in found if member.key in ARGUMENT_KEYS and member is not name_member]
    if len(given) == 1:
        return _call(name, text, given[0]) or Leftover(text)
    others = [member for member in found if member is not name_member and member.key not in _LABELS]
    if given or others:
        return Leftover(text)  # the arguments may be any of these
    return RawCall(name, "{}", explicit=False)


def _call(name: str, text: str, arguments: Member) -> RawCall | None:
    value = arguments.value
    if isinstance(value, dict):
        return RawCall(name, text[arguments.value_start : arguments.value_end])
    if value is None:
        return RawCall(name, "{}")
    if type(value) is not str:
        return None
    inner = unfence(value).strip()
    if not inner:
        return RawCall(name, "{}")
    repaired = repair(inner)
    if repaired is None or len(repaired.texts) != 1:
        return None
    decoded = loads(repaired.texts[0])
    if decoded is None:
        return RawCall(name, "{}")
    if not isinstance(decoded, dict):
        return None
    return RawCall(name, repaired.texts[0], ("the arguments were JSON inside a string", *repaired.repairs))


def _only(found: list[Member], keys: tuple[str, ...]) -> Member | None:
    """The member with the first of ``keys`` that is there; None if that key is there twice."""
    for key in keys:
        having = [member for member in found if member.key == key]
        if having:
            return having[0] if len(having) == 1 else None
    return None


def _elements(text: str) -> list[str]:
    """The texts of a list's elements. ``text`` is strict JSON and begins with ``[``."""
    elements: list[str] = []
    at = skip_space(text, 1)
    while text[at] != "]":
        _, end = scan(text, at)
        elements.append(text[at:end])
        at = skip_space(text, end)
        if text[at] == ",":
            at = skip_space(text, at + 1)
    return elements

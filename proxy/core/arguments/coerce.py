"""Values of the wrong type converted to the right one, where that loses nothing and can mean one thing only.

A value is converted only where its schema leaves no room for it as it stands, and has room for what it says:
``"5"`` for an integer, ``"true"`` for a boolean, ``"[1]"`` for an array, ``5`` for a string.
"""

from __future__ import annotations

from proxy.core.arguments.jsontext import Number, dumps, loads
from proxy.core.arguments.outline import Nodes, Outline, item, member
from proxy.core.arguments.repair import repair
from proxy.core.arguments.splice import Path, splice, spoken
from proxy.core.events import Problem
from proxy.core.model import Json

_MOST_TOLD = 8
_SHOWN = 40


def coerce(outline: Outline, text: str) -> tuple[str, tuple[Problem, ...]]:
    """``text``, strict JSON, with its values converted as ``outline`` asks for, and a ``coerced`` problem for each.

    Members that are not converted stay byte for byte as they were.
    """
    mended, changes = _coerced(outline, text, outline.root)
    told = [f"{place}: {_short(old)} was read as {_short(new)}" for place, old, new in changes[:_MOST_TOLD]]
    if len(changes) > _MOST_TOLD:
        told.append(f"{len(changes) - _MOST_TOLD} more values were converted")
    return mended, tuple(Problem("coerced", f"{words}.") for words in told)


def typed(outline: Outline, nodes: Nodes, raw: str, *, explicit: bool = False) -> str:
    """``raw``, a value written without quotes and escapes, as JSON text of the type that ``nodes`` ask for.

    A string where they admit nothing else; what it reads as, where they admit that; else a string. Where they say
    nothing, ``42`` stays text, for it may be the digits of a name, and ``true``, ``null``, lists and objects are read.
    ``explicit``: it is known to be JSON.
    """
    kinds = outline.kinds(nodes)
    text = _read(raw, loosely="string" not in kinds)
    if text is None or explicit:
        return dumps(raw) if text is None else text
    value = loads(text)
    as_text = outline.admits(nodes, raw)
    if type(value) is str:
        quoted = "string" in kinds and (as_text or not outline.admits(nodes, value))
        return dumps(raw) if quoted else text
    if kinds == {"string"} or (as_text and not outline.admits(nodes, value)):
        return dumps(raw)
    if isinstance(value, Number) and outline.says_nothing(nodes):
        return dumps(raw)
    return text


def _coerced(outline: Outline, text: str, nodes: Nodes) -> tuple[str, list[tuple[str, str, str]]]:
    """The text, and of each conversion the place and what was written and read there."""
    edits: dict[Path, str] = {}
    changes: list[tuple[str, str, str]] = []
    todo: list[tuple[Path, Json, Nodes]] = [((), loads(text), nodes)]
    while todo:
        path, value, nodes = todo.pop()
        if not nodes:
            continue
        new = _converted(outline, nodes, value)
        if new is not None:
            changes.append((spoken(path), dumps(value), new))
            edits[path] = _coerced(outline, new, nodes)[0] if new[0] in "[{" else new
        elif isinstance(value, dict):
            applied = outline.applied(nodes, value)
            todo += (((*path, key), value[key], member(applied, key)) for key in reversed(value))
        elif isinstance(value, list):
            applied = outline.applied(nodes, value)
            todo += (((*path, index), value[index], item(applied, index)) for index in reversed(range(len(value))))
    return (splice(text, edits) if edits else text), changes


def _converted(outline: Outline, nodes: Nodes, value: Json) -> str | None:
    """The text of what ``nodes`` admit instead of the scalar ``value``; None if they admit that, or nothing."""
    if value is None or isinstance(value, (dict, list)) or outline.admits(nodes, value):
        return None
    new = _read(value, loosely=True) if type(value) is str else f'"{dumps(value)}"'
    return new if new is not None and outline.admits(nodes, loads(new)) else None


def _read(raw: str, *, loosely: bool) -> str | None:
    """The JSON text of the one value that ``raw`` is, ``loosely`` also as Python or JavaScript write it, else None."""
    text = raw.strip()
    try:
        loads(text)
    except ValueError:
        mended = repair(text) if loosely else None
        return mended.texts[0] if mended and len(mended.texts) == 1 and not mended.completed else None
    return text


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

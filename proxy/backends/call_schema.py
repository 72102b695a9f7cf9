"""Tools to a JSON Schema whose every value is a call of one of them: for servers that force JSON, not text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.backends import schemas
from proxy.backends.json_rules import LONGEST_STRING
from proxy.backends.schemas import NoValueError, TooLargeError
from proxy.backends.simplify import Schema, Simplifier, is_plain
from proxy.core.arguments import jsontext
from proxy.core.model import Json, Tool

MAX_TEXT = 65_536
"""Characters of a schema."""

MOST_BOUNDED = 50_000
"""Characters that strings with a bound may have together: llama.cpp writes each out, at some 2 µs."""

_MOST_ALTERNATIVES = 100
"""Tools that get a schema each: the cost of a token grows with the alternatives that are still open."""

_MAX_STEPS = 10_000
"""Schemas and declarations that are looked at for all tools together."""

_AROUND = 200
"""More than the characters around a name and its arguments."""


def call_schema(
    tools: Iterable[Tool], *, arguments: str = "arguments", longest_string: int = LONGEST_STRING
) -> Schema | None:
    """A schema of one call: an object of ``name`` and the member ``arguments``.

    Arguments whose schema is too large or contradicts itself become any object; so do the largest ones when all
    together are too much. None when there are no tools, or a name is not plain, or not even the names fit.
    """
    offered = {tool.name: tool.parameters for tool in tools}
    if not offered or not all(map(is_plain, offered)) or sum(map(len, offered)) > MAX_TEXT // 2:
        return None
    if len(offered) > _MOST_ALTERNATIVES:
        return _call(list(offered), {"type": "object"}, arguments)
    written = _within_limits(_simplified(offered, longest_string))
    calls: list[Json] = [_call([name], schema, arguments) for name, schema in written.items()]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


def _call(names: list[str], schema: Schema, arguments: str) -> Schema:
    return {
        "type": "object",
        "properties": {"name": {"enum": names}, arguments: schema},
        "required": ["name", arguments],
        "additionalProperties": False,
    }


def _simplified(offered: Mapping[str, Json], longest_string: int) -> dict[str, Schema]:
    """The arguments of each tool by its schema; no schema means no arguments."""
    simplifier = Simplifier(max_steps=_MAX_STEPS, longest_string=longest_string, bounded=MOST_BOUNDED)
    found: dict[str, Schema] = {}
    for name, schema in offered.items():
        try:
            if schema is None or schema == {}:
                found[name] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
            elif isinstance(schema, dict):
                found[name] = simplifier.rewrite(schemas.merge(schema, {"type": "object"}), schema)
        except (TooLargeError, NoValueError):
            pass
        found.setdefault(name, {"type": "object"})
    return found


def _within_limits(written: dict[str, Schema]) -> dict[str, Schema]:
    """``written`` with the largest made any object, as many as it takes."""
    sizes = {name: len(jsontext.dumps(schema)) for name, schema in written.items()}
    left = MAX_TEXT - sum(len(name) + _AROUND for name in written)
    kept = dict(written)
    for name in sorted(sizes, key=sizes.__getitem__):
        if sizes[name] <= left:
            left -= sizes[name]
        else:
            kept[name] = {"type": "object"}
    return kept

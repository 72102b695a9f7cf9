"""A client's schema made fit for a validator: what is common in the wild put right, what could hang it refused."""

from __future__ import annotations

import re

from proxy.core.arguments.outline import Outline
from proxy.core.model import Json

_KNOWN_DIALECT = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(19-09|20-12))/schema#?")
_DATA = frozenset({"const", "enum", "default", "examples"})
_NAMING = frozenset(
    {"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary"}
)
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_MOST_WAYS = 10_000


def prepared(schema: Json) -> Json:
    """A copy of ``schema`` in which references are JSON pointers alone and ``nullable`` (OpenAPI) is a type.

    A ``$schema`` that nobody knows is left out. Raises ``ValueError`` when schemas that apply to one value branch into
    so many that a validator, which visits each, would not come back.
    """
    copy = _standard(schema)
    if _most_ways(copy) > _MOST_WAYS:
        raise ValueError("its alternatives branch too often")
    return copy


def _standard(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_standard(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy: dict[str, Json] = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            copy[key] = {name: _standard(part) for name, part in value.items()}
        elif not (isinstance(value, str) and _is_dropped(key, value)):
            copy[key] = value if key in _DATA else _standard(value)
    if schema.get("nullable") is True:
        if isinstance(copy.get("type"), (str, list)):
            types = copy["type"] if isinstance(copy["type"], list) else [copy["type"]]
            copy["type"] = [*types, *({"null"} - set(map(str, types)))]
        if isinstance(copy.get("enum"), list) and None not in copy["enum"]:
            copy["enum"] = [*copy["enum"], None]
    return copy


def _is_dropped(key: str, value: str) -> bool:
    return key in _NAMING or (key == "$schema" and not _KNOWN_DIALECT.fullmatch(value))


def _most_ways(schema: Json) -> int:
    """How many schemas apply to one value at most, those that are reached in several ways counted as often."""
    outline = Outline(schema)
    known: dict[int, int] = {}

    def ways(node: Json) -> int:
        if not isinstance(node, dict):
            return 1
        if id(node) not in known:
            known[id(node)] = 1  # a schema that leads to itself is not entered again
            parts = [part for keyword in _LISTS for part in _parts(node.get(keyword))]
            parts += (node[keyword] for keyword in _SINGLE if keyword in node)
            parts += _parts(node.get("dependentSchemas"))
            parts.append(outline.target(node))
            known[id(node)] = min(1 + sum(map(ways, parts)), _MOST_WAYS + 1)
        return known[id(node)]

    todo, most = [schema], 0
    while todo:
        node = todo.pop()
        most = max(most, ways(node))
        todo += _parts(node)
    return most


def _parts(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return [part for part in value.values() if isinstance(part, (dict, list))]
    return [part for part in value if isinstance(part, (dict, list))] if isinstance(value, list) else []

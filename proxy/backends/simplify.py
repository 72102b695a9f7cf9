"""JSON Schemas in the few words that every server's converter understands alike.

Servers turn a schema into a grammar with code of their own, of many ages: a ``pattern`` is an error to some, a ``$ref``
is not followed by others, one writes a quote in a name in such a way that the process dies of the grammar
(llama-cpp-python), and references within references, long enums or large counts cost all of them time. So a schema is
written anew, in types, members, items, plain enums, small counts and ``anyOf``, without references. Schemas within
themselves are written out twice. What cannot be said in these words is left to validation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from proxy.backends import schemas
from proxy.backends.json_rules import LONGEST_LIST, LONGEST_STRING
from proxy.backends.schemas import Chain, NoValueError, TooLargeError
from proxy.core.model import Json

Schema: TypeAlias = dict[str, Json]

_MAX_DEPTH = 16
"""Schemas within schemas; what is deeper can be any value."""

_MAX_ENUM = 4_096
"""Characters of an enum; a longer one only tells the types of its values."""

_ROUNDS = 2
"""How often a schema is written within itself."""

_LARGEST_BOUND = 2**53
"""Converters read numbers as doubles or as 64-bit integers."""

_FORMATS = frozenset({"date", "time", "date-time", "uuid"})
_ALL_TYPES = ("object", "array", "string", "number", "boolean", "null")
_NO_CHAIN: Chain = frozenset()


class Simplifier:
    """Rewrites schemas, within bounds that hold for all of them together.

    At most ``max_steps`` schemas and declarations are looked at. A string has ``longest_string`` characters at most if
    the schema does not ask for fewer, and ``bounded`` characters is what all strings may have together; those for which
    that no longer suffices have no bound, since servers write each repetition out.
    """

    def __init__(self, *, max_steps: int, longest_string: int, bounded: int) -> None:
        self._steps_left = max_steps
        self._bounded_left = bounded
        self._root: Json = None
        self._longest_string = longest_string
        self._open: list[int] = []  # by identity: the schemas around

    def rewrite(self, schema: Json, root: Json) -> Schema:
        """``schema`` rewritten; its references start from ``root``. Raises ``NoValueError`` or ``TooLargeError``."""
        self._root = root
        return self._value(schema)

    def _value(self, schema: Json, chain: Chain = _NO_CHAIN) -> Schema:
        if self._open.count(id(schema)) >= _ROUNDS:
            raise NoValueError
        self._open.append(id(schema))
        try:
            return self._written(schema, chain)
        finally:
            self._open.pop()

    def _written(self, schema: Json, chain: Chain) -> Schema:
        self._look_at(1)
        if schema is False:
            raise NoValueError
        if not isinstance(schema, dict) or len(self._open) > _MAX_DEPTH:
            return _any_value()
        flat, chain = schemas.flatten(schema, self._root, chain)
        self._look_at(len(schemas.properties(flat)))
        branches = schemas.branches(flat)
        if branches is not None:
            return self._any_of(branches, chain)
        values = schemas.listed(flat)
        if values:
            return self._enum(values, flat)
        allowed = schemas.types(flat)
        if allowed is None:
            return _any_value()
        if len(allowed) > 1:
            return self._any_of(({**flat, "type": name, "nullable": False} for name in allowed), chain)
        match allowed[0]:
            case "object":
                return self._object(flat)
            case "array":
                return self._array(flat)
            case "string":
                return self._string(flat)
            case "integer":
                return {"type": "integer", **_bounds(flat)}
            case name:
                return {"type": name}

    def _look_at(self, number: int) -> None:
        self._steps_left -= number
        if self._steps_left < 0:
            raise TooLargeError

    def _any_of(self, branches: Iterable[Json], chain: Chain) -> Schema:
        alternatives: list[Schema] = []
        for branch in branches:
            try:
                written = self._value(branch, chain)
            except NoValueError:
                continue
            if written not in alternatives:
                alternatives.append(written)
        if not alternatives:
            raise NoValueError
        return alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}

    def _enum(self, values: list[Json], schema: Mapping[str, Json]) -> Schema:
        allowed = schemas.types(schema) if "type" in schema else None
        fitting = [value for value in values if allowed is None or schemas.is_type(value, allowed)]
        if not fitting:
            raise NoValueError
        self._look_at(len(fitting))
        if all(map(is_plain, fitting)) and len(_json(fitting)) <= _MAX_ENUM:
            return {"enum": fitting}
        return _of_types(dict.fromkeys(map(schemas.type_of, fitting)))

    def _string(self, schema: Mapping[str, Json]) -> Schema:
        kind = schema.get("format")
        if isinstance(kind, str) and kind in _FORMATS:
            return {"type": "string", "format": kind}
        high = min(schemas.count(schema.get("maxLength"), LONGEST_STRING), LONGEST_STRING)
        low = min(schemas.count(schema.get("minLength"), 0), high, self._longest_string)
        written: Schema = {"type": "string"}
        if max(high, low) <= min(self._longest_string, self._bounded_left):
            self._bounded_left -= high
            written["maxLength"] = high
            if low:
                written["minLength"] = low
        return written

    def _array(self, schema: Mapping[str, Json]) -> Schema:
        first, items = schemas.items(schema)
        high = min(schemas.count(schema.get("maxItems"), LONGEST_LIST), LONGEST_LIST)
        low = schemas.count(schema.get("minItems"), 0)
        if low > high:
            raise NoValueError
        if first:  # which words for a tuple are understood differs
            return {"type": "array", "items": _any_value()}
        try:
            item = self._value(True if items is None else items)
        except NoValueError:
            if low:
                raise
            return {"enum": [[]]}
        return {"type": "array", "items": item, "maxItems": high} | ({"minItems": low} if low else {})

    def _object(self, schema: Mapping[str, Json]) -> Schema:
        declared = schemas.properties(schema)
        unnamed = schema.get("additionalProperties", True)
        required = schemas.required(schema)
        members: dict[str, Json] = {}
        for name in dict.fromkeys([*declared, *required]):
            if not is_plain(name):
                return {"type": "object"}
            try:
                members[name] = self._value(declared.get(name, unnamed))
            except NoValueError:
                if name in required:
                    raise
        try:
            others: Json = self._value(said) if isinstance(said := _undeclared(schema), dict) else said
        except NoValueError:
            others = False
        if others is True and not members:
            return {"type": "object"}
        return {
            "type": "object",
            "properties": members,
            "required": list(dict.fromkeys(required)),
            "additionalProperties": others,
        }


def is_plain(value: Json) -> bool:
    """Whether ``value`` is JSON without escapes, which not all converters copy faithfully.

    One of them writes a character beyond 16 bits as two halves, so that no text fits.
    """
    text = _json(value)
    return "\\" not in text and text.isprintable() and max(text) <= "\uffff"


def _undeclared(schema: Mapping[str, Json]) -> Json:
    """The schema of members that ``schema`` does not name: none where it names some and says nothing of others."""
    said = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    if isinstance(said, dict | bool):
        return said
    return not isinstance(schema.get("properties"), dict)


def _bounds(schema: Mapping[str, Json]) -> Schema:
    """``minimum`` and ``maximum`` of an integer, those that are small whole numbers."""
    found: Schema = {}
    for word, exclusive, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        bound, open_bound = schemas.number(schema.get(word)), schemas.number(schema.get(exclusive))
        if open_bound is not None:
            bound = open_bound + step
        if bound is not None and bound == bound.to_integral_value() and abs(bound) < _LARGEST_BOUND:
            found[word] = int(bound)
    return found


def _any_value() -> Schema:
    """Not ``{}``, which llama.cpp takes for any object."""
    return _of_types(_ALL_TYPES)


def _of_types(names: Iterable[str]) -> Schema:
    alternatives: list[Json] = [{"type": name} for name in names]
    return {"anyOf": alternatives} if len(alternatives) > 1 else alternatives[0]


def _json(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "\\"

"""JSON Schemas taken apart: references followed, ``allOf`` merged, types and bounds read leniently.

Clients send schemas of every draft and of none (``"type": "str"``, ``required: true``). What cannot be understood here
is left out, and the schema is read as if it said less. Nothing is ever fetched.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TypeAlias

from proxy.core.arguments import jsontext
from proxy.core.arguments.outline import resolve
from proxy.core.model import Json

Chain: TypeAlias = frozenset[str]
"""The references that were followed without stepping into a member or an item."""

_TYPES = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
} | {name: name for name in ("string", "integer", "number", "boolean", "object", "array", "null")}
"""The types of JSON Schema, and what people write for them."""

_MEANT = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Words that tell the type where ``type`` is missing."""

NOTES = frozenset({
    "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description", "example", "examples",
    "readOnly", "title", "writeOnly",
})  # fmt: skip
"""Words that constrain nothing."""

_A_STEP = 200
"""Members and items that are merged in one step."""

_LEAST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_MOST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})


class NoValueError(Exception):
    """No value fits."""


class TooLargeError(Exception):
    """More than is worth the time."""


def flatten(schema: Json, root: Json, chain: Chain, steps: int = 100) -> tuple[dict[str, Json], Chain]:
    """``schema`` as one object without ``$ref`` and ``allOf``, and the references that this took.

    Raises ``NoValueError`` for a contradiction and for a reference that leads back to itself, ``TooLargeError`` after
    so many ``steps``.
    """
    result: dict[str, Json] = {}
    followed = chain
    waiting = [(schema, chain)]
    while waiting:
        part, before = waiting.pop(0)
        if part is False:
            raise NoValueError
        if not isinstance(part, dict):
            continue
        steps -= 1 + sum(len(value) for value in part.values() if isinstance(value, dict | list)) // _A_STEP
        if steps < 0:
            raise TooLargeError
        part = dict(part)
        reference, parts = part.pop("$ref", None), part.pop("allOf", None)
        if isinstance(reference, str):
            if reference in before:
                raise NoValueError
            before |= {reference}
            followed |= before
            waiting.append((resolve(root, reference), before))
        if isinstance(parts, list):
            waiting += [(each, before) for each in parts]
        result = merge(result, part)
    return result, followed


def merge(first: Mapping[str, Json], second: Mapping[str, Json]) -> dict[str, Json]:
    """One schema that asks for what both do; where that cannot be said simply, for what ``second`` does.

    Raises ``NoValueError`` when they have no type in common.
    """
    merged = {**first, **second}
    one, other = properties(first), properties(second)
    if one or other:
        # What one side does not declare, it may still speak of.
        unnamed = first.get("additionalProperties", True), second.get("additionalProperties", True)
        names = dict.fromkeys([*one, *other])
        merged["properties"] = {n: _both(one.get(n, unnamed[0]), other.get(n, unnamed[1])) for n in names}
    for word in first.keys() & second.keys() - NOTES - {"properties"}:
        merged[word] = _meet(word, first[word], second[word])
    for word in ("anyOf", "oneOf"):
        if word in first and word in second:
            merged[word] = first[word]
            merged["allOf"] = [*merged.get("allOf", ()), {word: second[word]}]
    return merged


def _both(first: Json, second: Json) -> Json:
    if first is True or first == second:
        return second
    return first if second is True else {"allOf": [first, second]}


def _meet(word: str, first: Json, second: Json) -> Json:
    """What ``word`` says when it has to hold with both values."""
    if word in _LEAST or word in _MOST:
        one, other = number(first), number(second)
        if one is None or other is None:
            return second if one is None else first
        return first if (one > other) == (word in _LEAST) else second
    if word in ("items", "additionalProperties", "propertyNames"):
        return _both(first, second)
    if word == "required":
        return list(dict.fromkeys([*strings(first), *strings(second)]))
    if word == "type":
        return _common_types(types({word: first}), types({word: second}))
    if word == "enum" and isinstance(first, list) and isinstance(second, list):
        texts = {jsontext.dumps(value) for value in second}
        return [value for value in first if jsontext.dumps(value) in texts]
    return second


def _common_types(first: list[str] | None, second: list[str] | None) -> list[str] | None:
    if first is None or second is None:
        return second if first is None else first
    common = [name for name in dict.fromkeys([*first, *second]) if name in _wide(first) and name in _wide(second)]
    if not common:
        raise NoValueError
    return common


def _wide(names: Iterable[str]) -> set[str]:
    return {*names, "integer"} if "number" in names else {*names}


def branches(flat: dict[str, Json]) -> Iterator[Json] | None:
    """The schemas of which one must fit, each with all else that ``flat`` says; None if it has none.

    ``flat`` is without them afterwards, and may have others: of ``anyOf`` and ``oneOf`` it takes the first.
    """
    for word in ("anyOf", "oneOf"):
        found = flat.pop(word, None)
        if isinstance(found, list) and found:
            plain = not flat.keys() - NOTES
            return (each if plain else {"allOf": [flat, each]} for each in found)
    return None


def listed(schema: Mapping[str, Json]) -> list[Json]:
    """The values that ``schema`` lists; none if it lists none, or says nothing of that."""
    values = schema.get("enum")
    if not isinstance(values, list):
        values = [schema["const"]] if "const" in schema else []
    return [*values, None] if values and schema.get("nullable") is True else values


def items(schema: Mapping[str, Json]) -> tuple[list[Json], Json]:
    """The schemas of an array's first items, and that of all others; None if nothing is said of those."""
    rest, first = schema.get("items"), schema.get("prefixItems")
    if isinstance(rest, list):  # before draft 2020-12
        rest, first = schema.get("additionalItems"), rest
    return first if isinstance(first, list) else [], rest


def required(schema: Mapping[str, Json]) -> list[str]:
    """The members that an object must have, without those that it cannot have."""
    declared, others = properties(schema), schema.get("additionalProperties", True)
    return [name for name in strings(schema.get("required")) if name in declared or others is not False]


def properties(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The declared members; none where the word is misused."""
    declared = schema.get("properties")
    return declared if isinstance(declared, dict) else {}


def types(schema: Mapping[str, Json]) -> list[str] | None:
    """The types that ``schema`` allows, by its ``type``, else by the other words in it; None for any."""
    said = schema.get("type")
    names = [name.lower() for name in strings(said if isinstance(said, list) else [said])]
    found = [_TYPES[name] for name in names if name in _TYPES]
    found = found or [name for name, words in _MEANT.items() if any(word in schema for word in words)]
    if found and schema.get("nullable") is True:
        found.append("null")
    return list(dict.fromkeys(found)) or None


def type_of(value: Json) -> str:
    """The narrowest type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def is_type(value: Json, allowed: Iterable[str]) -> bool:
    """``value`` is of one of the types ``allowed``."""
    return type_of(value) in _wide(allowed)


def number(value: Json) -> Decimal | None:
    """``value`` as a finite number, None when it is none."""
    match value:
        case bool():
            return None
        case int():
            return Decimal(value)
        case float() if math.isfinite(value):
            return Decimal(repr(value))
        case _:
            return None


def count(value: Json, default: int) -> int:
    """``value`` as a number of things, ``default`` when it is none."""
    exact = number(value)
    return default if exact is None or exact < 0 else int(min(exact, Decimal(10**6)))


def strings(value: Json) -> list[str]:
    """The strings in the list ``value``; none when it is no list."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []

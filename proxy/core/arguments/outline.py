"""What a JSON Schema says about the types in a value, and nothing else.

Coercion needs to know which types a schema leaves room for, not whether a value is valid: ``"5"`` for an integer with a
minimum of 10 is still an integer that came as a string. So this looks at ``type``, ``enum``, ``const``, ``nullable``
(OpenAPI) and what combines or reaches schemas; every other keyword is taken to admit anything.

References are followed inside the schema only, by JSON pointer. A name that cannot be resolved and a ``type`` that JSON
Schema does not know admit anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from typing import TypeAlias
from urllib.parse import unquote

from proxy.core.arguments.jsontext import Number
from proxy.core.model import Json

Nodes: TypeAlias = tuple[Json, ...]
"""Schemas that all apply to one value. None: nothing is said about it."""

KINDS = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_NUMBER = re.compile(r"-?([0-9]+)(?:\.([0-9]*[1-9])?0*)?(?:[eE]([+-]?[0-9]+))?")
_MOST_DIGITS = 18


class Outline:
    """The types that one schema, decoded JSON that is not changed later, allows at each place.

    Values are those of :mod:`proxy.core.arguments.jsontext`, nodes are parts of the schema itself. A schema of
    references a thousand deep raises ``RecursionError``.
    """

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._rooms: dict[tuple[tuple[int, ...], str], tuple[bool, bool]] = {}
        self.root: Nodes = (schema,)

    def admits(self, nodes: Nodes, value: Json) -> bool:
        """Whether ``nodes`` leave room for a value of this type, or for this very value where they list them."""
        kind = kind_of(value)
        some, every = self._room(nodes, kind)
        return every or (some and self._fit(nodes, kind, lambda option: equal(value, option)))

    def kinds(self, nodes: Nodes) -> frozenset[str]:
        """The types of which ``nodes`` admit at least one value."""
        return frozenset(kind for kind in KINDS if self._room(nodes, kind)[0])

    def admits_any_string(self, nodes: Nodes) -> bool:
        """Whether ``nodes`` admit strings without listing them."""
        return self._room(nodes, "string")[1]

    def says_nothing(self, nodes: Nodes) -> bool:
        """Whether ``nodes`` admit values of every type."""
        return self.kinds(nodes) == KINDS and self.admits_any_string(nodes)

    def applied(self, nodes: Nodes, value: Json) -> list[dict[str, Json]]:
        """Every schema object that applies to ``value``, through references and combinations.

        Of alternatives the only one that fits counts; where several do, none.
        """
        found = self._direct(nodes)
        for node in found:
            for options in alternatives(node):
                known = {id(other) for other in found}
                branch = self.branch(options, value)
                found += [other for other in self._direct((branch,)) if id(other) not in known]
        return found

    def branch(self, options: list[Json], value: Json) -> Json:
        """The only one of ``options`` that fits ``value``: by type, else by its required and its listed members."""
        fitting = [option for option in options if self.admits((option,), value)]
        if len(fitting) > 1:
            fitting = [option for option in fitting if self._shaped(option, value)]
        return fitting[0] if len(fitting) == 1 else None

    def _shaped(self, option: Json, value: Json) -> bool:
        if not isinstance(value, dict):
            return True
        for node in self._direct((option,)):
            if any(key not in value for key in _list(node, "required") if isinstance(key, str)):
                return False
            for key, member in _dict(node, "properties").items():
                listed = key in value and any("const" in sub or "enum" in sub for sub in self._direct((member,)))
                if listed and not self.admits((member,), value[key]):
                    return False
        return True

    def _direct(self, nodes: Iterable[Json]) -> list[dict[str, Json]]:
        """The schema objects of ``nodes`` with what they refer to and what they all ask for, each once."""
        found: list[dict[str, Json]] = []
        seen: set[int] = set()
        todo = list(nodes)
        while todo:
            node = todo.pop()
            if isinstance(node, dict) and id(node) not in seen:
                seen.add(id(node))
                found.append(node)
                todo.extend(_list(node, "allOf"))
                todo.append(self.target(node))
        return found

    def target(self, node: dict[str, Json]) -> Json:
        """What ``$ref`` points at. True, the schema that admits anything, if there is none or it cannot be found."""
        reference = node.get("$ref")
        return resolve(self._schema, reference) if isinstance(reference, str) else True

    def _room(self, nodes: Nodes, kind: str) -> tuple[bool, bool]:
        """Whether ``nodes`` admit some value of ``kind``, and whether they admit every one. Looked at once."""
        key = (tuple(map(id, nodes)), kind)
        if key not in self._rooms:
            some = self._fit(nodes, kind, partial(_is_kind, kind))
            self._rooms[key] = some, some and self._fit(nodes, kind, lambda option: False)
        return self._rooms[key]

    def _fit(self, nodes: Nodes, kind: str, listed: Callable[[Json], bool]) -> bool:
        known: dict[int, bool] = {}  # every schema is looked at once, and one that leads to itself says nothing

        def fits(node: Json) -> bool:
            if not isinstance(node, dict):
                return node is not False
            if id(node) not in known:
                known[id(node)] = True
                known[id(node)] = own(node)
            return known[id(node)]

        def own(node: dict[str, Json]) -> bool:
            if kind == "null" and node.get("nullable") is True:
                return True
            if not _admits_kind(node.get("type"), kind):
                return False
            if "const" in node and not listed(node["const"]):
                return False
            if isinstance(node.get("enum"), list) and not any(map(listed, node["enum"])):
                return False
            return (
                all(map(fits, _list(node, "allOf")))
                and fits(self.target(node))
                and all(any(map(fits, options)) for options in alternatives(node))
            )

        return all(map(fits, nodes))


def resolve(root: Json, reference: str) -> Json:
    """What a JSON pointer within ``root`` (``#/$defs/x``) refers to; True, any value, when it refers to nothing."""
    if not reference.startswith("#"):
        return True
    found = root
    for step in unquote(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(found):
            found = found[int(key[:9])]
        else:
            return True
    return found


def member(applied: Iterable[dict[str, Json]], key: str) -> Nodes:
    """What the schemas of an object say about its member ``key``."""
    found: list[Json] = []
    for node in applied:
        if key in _dict(node, "properties"):
            found.append(node["properties"][key])
        elif not node.get("patternProperties") and isinstance(node.get("additionalProperties"), dict):
            found.append(node["additionalProperties"])
    return tuple(found)


def item(applied: Iterable[dict[str, Json]], index: int) -> Nodes:
    """What the schemas of an array say about its item ``index`` (tuples by ``prefixItems``, before 2020 ``items``)."""
    found: list[Json] = []
    for node in applied:
        items = node.get("items")
        prefix = items if isinstance(items, list) else _list(node, "prefixItems")
        if index < len(prefix):
            found.append(prefix[index])
        elif isinstance(items, list):
            found.append(node.get("additionalItems"))
        else:
            found.append(items)
    return tuple(found)


def kind_of(value: Json) -> str:
    """The JSON Schema type of ``value``: ``integer`` for every number without a fraction."""
    if isinstance(value, Number):
        return "integer" if _is_integral(value) else "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"


def equal(value: Json, option: Json) -> bool:
    """Whether ``value`` is ``option``, plain decoded JSON from a schema: ``1.0`` is ``1``, ``true`` is not."""
    if isinstance(value, Number):
        if isinstance(option, bool) or not isinstance(option, (int, float)):
            return False
        try:
            return Decimal(value) == Decimal(str(option))
        except ArithmeticError:  # an exponent beyond all bounds
            return False
    if isinstance(value, dict):
        return (
            isinstance(option, dict)
            and value.keys() == option.keys()
            and all(equal(part, option[key]) for key, part in value.items())
        )
    if isinstance(value, list):
        return isinstance(option, list) and len(value) == len(option) and all(map(equal, value, option))
    return type(value) is type(option) and bool(value == option)


def _is_integral(number: Number) -> bool:
    found = _NUMBER.fullmatch(number)
    if found is None:
        return False
    whole, fraction, exponent = found[1], found[2] or "", found[3] or "0"
    if len(exponent) > _MOST_DIGITS:
        return not exponent.startswith("-") or not (whole + fraction).strip("0")
    digits = (whole + fraction).rstrip("0")
    return not digits or len(digits) <= len(whole) + int(exponent)


def _is_kind(kind: str, option: Json) -> bool:
    if isinstance(option, (int, float)) and not isinstance(option, bool):
        return kind == "number" or (kind == "integer" and float(option).is_integer())
    return kind_of(option) == kind


def _admits_kind(types: Json, kind: str) -> bool:
    names = types if isinstance(types, list) else [types]
    known = [name for name in names if isinstance(name, str) and name in KINDS]
    if len(known) < len(names):
        return True
    return kind in known or (kind == "integer" and "number" in known)


def alternatives(node: dict[str, Json]) -> list[list[Json]]:
    """The lists of schemas in ``node`` of which one must fit."""
    return [options for options in (_list(node, "anyOf"), _list(node, "oneOf")) if options]


def _list(node: dict[str, Json], keyword: str) -> list[Json]:
    found = node.get(keyword)
    return found if isinstance(found, list) else []


def _dict(node: dict[str, Json], keyword: str) -> dict[str, Json]:
    found = node.get(keyword)
    return found if isinstance(found, dict) else {}

"""JSON values that a schema allows, as a hypothesis strategy.

What the strategy knows (types, bounds, lists of values, members, references, combinations) it draws right away; a
validator drops what does not fit the rest. A schema that hardly anything fits makes hypothesis complain.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import TypeAlias
from urllib.parse import unquote

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import SearchStrategy

from proxy.core.arguments.explain import compiled
from proxy.core.arguments.prepare import prepared
from proxy.core.model import Json

Values: TypeAlias = SearchStrategy[Json]

_DEEPEST = 3
_TRICKY = (
    "null", "true", "None", "5", "1e3", "-0", " ", "\n", "\t", "\u2028", "it's", '"', "\\", "\\n", "{", "}", "{{", "}}",
    "[]", '{"a": 1}', "<b>", "</b>", "a < b && b > c", "&lt;", "```", "`", "<think>", "</think>", "<tool_call>",
    "</tool_call>", "<|im_end|>", "é", "🍸", "$ref", "//", "#", "%s",
)  # fmt: skip
"""What strings say that breaks parsers."""

_PLAIN = st.text(alphabet="abc XYZ09.,-_/:", max_size=12)
_ANY = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
TEXTS = st.one_of(_PLAIN, _ANY, st.lists(st.sampled_from(_TRICKY) | _PLAIN, max_size=4).map("".join))
"""Strings: plain ones, any at all, and those that hold what breaks parsers."""

_INTEGERS = st.integers(-100, 100) | st.integers(-(2**63), 2**64)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | _INTEGERS | _FLOATS | TEXTS
KEYS = st.sampled_from(["a", "b", "city", "name", "arguments", "path", "content", "unit2", "type", "_x", "maxItems"])
"""Names of members."""

ANYTHING: Values = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)
"""Any JSON."""

_FORMATS: Mapping[str, SearchStrategy[str]] = {
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
    "time": st.times().map(lambda at: f"{at.isoformat()}Z"),
    "email": st.from_regex(r"[a-z]{1,8}@[a-z]{1,8}\.example", fullmatch=True),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "uri": st.from_regex(r"https://[a-z]{1,8}\.example/[a-z]{0,8}", fullmatch=True),
    "uuid": st.uuids().map(str),
}

_PYTHONS = {"dict": "object", "list": "array", "str": "string", "int": "integer", "float": "number", "bool": "boolean"}
"""Types by the names that they have in Python: no JSON Schema, but offered to models all the same."""


def values(schema: Json) -> Values:
    """Values that ``schema`` allows, as decoded JSON. One that does not compile is taken as far as it is understood."""
    return _values(json.dumps(schema))


@lru_cache(maxsize=256)
def _values(text: str) -> Values:
    schema = json.loads(text)
    drawn = _Drawer(schema).values(schema, 0)
    try:
        validator = compiled(prepared(schema))
    except (ValueError, TypeError):
        return drawn
    return drawn.filter(validator.is_valid)


class _Drawer:
    """Makes strategies of the parts of one schema. ``depth`` counts the references that led to a part."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._of_type: Mapping[str, Callable[[dict[str, Json], int], Values]] = {
            "null": lambda node, depth: st.none(),
            "boolean": lambda node, depth: st.booleans(),
            "integer": lambda node, depth: self._integers(node),
            "number": lambda node, depth: self._numbers(node),
            "string": lambda node, depth: self._strings(node),
            "array": self._arrays,
            "object": self._objects,
        }

    def values(self, node: Json, depth: int) -> Values:
        """Values by the schema ``node``, as far as its keywords are known."""
        if node is False:
            return st.nothing()
        if not isinstance(node, dict):
            return ANYTHING
        if "const" in node:
            return st.just(node["const"])
        if "enum" in node:
            return st.sampled_from(node["enum"])
        if "$ref" in node:
            target = self._target(node["$ref"])
            return st.deferred(lambda: self.values(_both(_without(node, "$ref"), target), depth + 1))
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in node:
                rest = _without(node, keyword)
                if keyword == "allOf":
                    return self.values(reduce(_both, node[keyword], rest), depth)
                return st.one_of([self.values(_both(rest, option), depth) for option in node[keyword]])
        kinds = node.get("type", "object" if "properties" in node else list(self._of_type))
        kinds = [kinds] if isinstance(kinds, str) else [*kinds]
        if node.get("nullable") is True:
            kinds.append("null")
        makers = [self._of_type.get(_PYTHONS.get(kind, kind)) for kind in kinds]
        return st.one_of([make(node, depth) if make else ANYTHING for make in makers])

    def _target(self, pointer: Json) -> Json:
        """The part of the schema that ``pointer`` leads to; True where there is none."""
        found = self._root
        for step in unquote(str(pointer)).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                return True
        return found

    def _integers(self, node: dict[str, Json]) -> Values:
        low, high = _bounds(node)
        if low is None and high is None and "multipleOf" not in node:
            return _INTEGERS
        step = node.get("multipleOf", 1)
        if isinstance(step, float) and not step.is_integer():
            step = 1
        least = None if low is None else math.ceil(low / step)
        most = None if high is None else math.floor(high / step)
        return st.integers(least, most).map(lambda count: count * int(step))

    def _numbers(self, node: dict[str, Json]) -> Values:
        low, high = _bounds(node)
        step = node.get("multipleOf")
        if step is not None:
            least = None if low is None else math.ceil(low / step)
            most = None if high is None else math.floor(high / step)
            return st.integers(least, most).map(lambda count: count * step)
        if low is None and high is None:
            return _FLOATS | _INTEGERS
        return st.floats(
            low,
            high,
            allow_nan=False,
            allow_infinity=False,
            exclude_min="exclusiveMinimum" in node and low == node["exclusiveMinimum"],
            exclude_max="exclusiveMaximum" in node and high == node["exclusiveMaximum"],
        )

    def _strings(self, node: dict[str, Json]) -> Values:
        least, most = node.get("minLength", 0), node.get("maxLength")
        if isinstance(node.get("pattern"), str):
            return _matching(node["pattern"])
        if node.get("format") in _FORMATS:
            return _FORMATS[node["format"]]
        if least:
            return st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=most or least + 12)
        return TEXTS if most is None else TEXTS.map(lambda text: text[:most])

    def _arrays(self, node: dict[str, Json], depth: int) -> Values:
        least = node.get("minItems", 0)
        most = min(node.get("maxItems", least + 3), least + (3 if depth < _DEEPEST else 0))
        first = [self.values(each, depth) for each in node.get("prefixItems", ())]
        if node.get("items") is False:
            counts = st.integers(min(least, len(first)), min(most, len(first)))
            return counts.flatmap(lambda count: st.tuples(*first[:count]).map(list))
        inner = self.values(node.get("items", True), depth)
        rest = st.lists(inner, min_size=max(0, least - len(first)), max_size=max(0, most - len(first)))
        if node.get("uniqueItems"):
            rest = st.lists(
                inner, min_size=least, max_size=most, unique_by=lambda item: json.dumps(item, sort_keys=True)
            )
        return st.tuples(st.tuples(*first), rest).map(lambda parts: [*parts[0], *parts[1]])

    def _objects(self, node: dict[str, Json], depth: int) -> Values:
        members: dict[str, Json] = node.get("properties") or {}
        wanted = [key for key in node.get("required", ()) if isinstance(key, str)]
        others = [key for key in members if key not in wanted] if depth < _DEEPEST else []
        known = st.fixed_dictionaries(
            {key: self.values(members.get(key, True), depth) for key in wanted},
            optional={key: self.values(members[key], depth) for key in others},
        )
        more = node.get("additionalProperties", not members)
        if more is False or (members and more is True) or depth >= _DEEPEST:
            return known
        further = st.dictionaries(KEYS, self.values(more, depth + 1), max_size=3)
        return st.tuples(further, known).map(lambda both: {**both[0], **both[1]})


def _matching(pattern: str) -> SearchStrategy[str]:
    """Strings that match ``pattern``, plain ones if there are such: ``\\d`` is no digit of India's in JSON Schema."""
    for alphabet in (st.characters(min_codepoint=32, max_codepoint=126), st.characters(exclude_categories=["Cs"])):
        with contextlib.suppress(InvalidArgument, re.error):
            found = st.from_regex(pattern, alphabet=alphabet)
            found.validate()
            return found
    return TEXTS


def _bounds(node: Mapping[str, Json]) -> tuple[float | None, float | None]:
    low = [node[key] for key in ("minimum", "exclusiveMinimum") if _is_number(node.get(key))]
    high = [node[key] for key in ("maximum", "exclusiveMaximum") if _is_number(node.get(key))]
    return max(low, default=None), min(high, default=None)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without(node: Mapping[str, Json], keyword: str) -> Json:
    return {key: value for key, value in node.items() if key != keyword}


def _both(one: Json, other: Json) -> Json:
    """One schema that says what both say, as far as two can be made one."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one if other is True else other
    merged = {**one, **other}
    if isinstance(one.get("properties"), dict) and isinstance(other.get("properties"), dict):
        merged["properties"] = {**one["properties"], **other["properties"]}
    if isinstance(one.get("required"), list) and isinstance(other.get("required"), list):
        merged["required"] = [*dict.fromkeys((*one["required"], *other["required"]))]
    return merged

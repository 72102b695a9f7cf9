"""Why arguments are invalid, in words by which a model can mend them.

A validator's own list of errors grows with every alternative of a schema times every level of a value. This looks at
each value once, with the one schema that applies to it, and names the place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind, Validator

from proxy.core.arguments.jsontext import dumps
from proxy.core.arguments.outline import Nodes, Outline, alternatives, item, kind_of, member
from proxy.core.arguments.splice import Path, spoken
from proxy.core.model import Json

_ABOUT_THE_VALUE = frozenset(
    {
        "type", "enum", "const", "required", "dependentRequired", "multipleOf", "minimum", "maximum",
        "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "minItems", "maxItems",
        "uniqueItems", "minProperties", "maxProperties", "propertyNames",
    }
)  # fmt: skip
"""Keywords that look at a value itself; those that lead to other schemas are walked."""

_MOST_NAMES = 20
_SHOWN = 80
_LONGEST = 600
_VALUE = "\0"  # stands for the value in the validator's messages
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=2_000, size_limit=1 << 18, dfa_size_limit=1 << 21)
"""Bounds the time of one pattern on one string to some tenths of a millisecond, and the memory of a pattern."""


def compiled(schema: Json) -> Validator:
    """A validator that fetches nothing and takes formats as remarks. Raises ``ValueError`` if there is none."""
    return jsonschema_rs.validator_for(
        schema, offline=True, validate_formats=False, pattern_options=_PATTERNS, mask=_VALUE
    )


class Explanation:
    """Sentences about the faults of values under one schema, which compiles. ``dialect`` is its ``$schema``."""

    def __init__(self, outline: Outline, dialect: str | None) -> None:
        self._outline = outline
        self._dialect = {} if dialect is None else {"$schema": dialect}
        self._validators: dict[int, Validator] = {}

    def faults(self, value: Json, plain: Json) -> Iterator[str | None]:
        """What is wrong with ``value``, outermost first; None where a pattern took too long to be sure.

        ``plain`` is the same value with ``int`` and ``Decimal`` for numbers.
        """
        todo: list[tuple[Path, Json, Json, Nodes]] = [((), value, plain, self._outline.root)]
        while todo:
            path, value, plain, nodes = todo.pop()
            if any(node is False for node in nodes):
                yield f"{spoken(path)}: must not be given"
                continue
            applied = self._outline.applied(nodes, value)
            for node in applied:
                yield from self._own(node, path, value, plain)
            if isinstance(value, dict):
                todo += (((*path, key), value[key], plain[key], member(applied, key)) for key in reversed(value))
            elif isinstance(value, list):
                todo += (
                    ((*path, index), value[index], plain[index], item(applied, index))
                    for index in reversed(range(len(value)))
                )

    def _own(self, node: dict[str, Json], path: Path, value: Json, plain: Json) -> Iterator[str | None]:
        if id(node) not in self._validators:
            self._validators[id(node)] = compiled(self._dialect | _about_the_value(node))
        for error in self._validators[id(node)].iter_errors(plain):
            if isinstance(error.kind, ValidationErrorKind.BacktrackLimitExceeded):
                yield None
            else:
                yield f"{spoken(path)}: {_short(_told(error, value, node), _LONGEST)}"
        for options in alternatives(node):
            if not any(self._outline.admits((option,), value) for option in options):
                kinds = frozenset[str]().union(*(self._outline.kinds((option,)) for option in options))
                yield f"{spoken(path)}: {_other_type(kinds, value)}"


def _about_the_value(node: dict[str, Json]) -> dict[str, Json]:
    own = {keyword: node[keyword] for keyword in _ABOUT_THE_VALUE & node.keys()}
    if node.get("additionalProperties") is False:
        own["additionalProperties"] = False
        for keyword in ("properties", "patternProperties"):
            own[keyword] = {name: {} for name in node.get(keyword, {})}
    return own


def _told(error: ValidationError, value: Json, node: dict[str, Json]) -> str:
    match error.kind:
        case ValidationErrorKind.Type(types):
            return _other_type(types, value)
        case ValidationErrorKind.Required(name):
            return f"{_short(name)} is required, but missing"
        case ValidationErrorKind.AdditionalProperties(names):
            known = _listed(node.get("properties", {}))
            return f"there is no {_listed(names)}" + (f"; there are {known}" if known else "")
        case ValidationErrorKind.Enum(options):
            return f"must be one of {_listed(map(_json, options))}, not {_short(dumps(value))}"
        case ValidationErrorKind.Constant(option):
            return f"must be {_short(_json(option))}, not {_short(dumps(value))}"
        case ValidationErrorKind.PropertyNames(about):
            return about.message.replace(_VALUE, f"the name {_short(str(about.instance))}", 1)
        case _:
            return error.message.replace(_VALUE, _short(dumps(value)), 1)


def _other_type(types: Iterable[str], value: Json) -> str:
    return f"must be {' or '.join(sorted(types)) or 'something else'}, not the {kind_of(value)} {_short(dumps(value))}"


def _listed(names: Iterable[str]) -> str:
    shown = [_short(name) for name in islice(names, _MOST_NAMES + 1)]
    return ", ".join(shown if len(shown) <= _MOST_NAMES else [*shown[:-1], "…"])


def _json(option: Json) -> str:
    return json.dumps(option, ensure_ascii=False, default=str)


def _short(text: str, most: int = _SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]}…"

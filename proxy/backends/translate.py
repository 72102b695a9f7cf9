"""JSON Schemas to GBNF rules.

What a grammar can say of a JSON Schema is said: members in the order declared, required ones, types, enums, bounds,
formats, references. What it cannot (``pattern``, ``uniqueItems``, ``not``, ``if`` …, and what is said of values beside
listing them) is left to validation. Some of what a schema allows is left out: members that it does not declare, unless
it speaks of them, and very long values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import count

from proxy.backends import gbnf, json_rules, schemas
from proxy.backends.gbnf import choice, literal, repeat, separated, sequence
from proxy.backends.json_rules import DECIMALS, LONGEST_LIST, LONGEST_STRING
from proxy.backends.schemas import Chain, NoValueError, TooLargeError
from proxy.core.arguments import jsontext
from proxy.core.model import Json

_MAX_DEPTH = 64
"""Schemas within schemas."""

_MAX_ENUM = 16_384
"""Characters of an enum; a longer one only tells the types of its values."""

_COMMA = literal(", ")
_NO_CHAIN: Chain = frozenset()


@dataclass(slots=True)
class _Seen:
    """A schema and its expression, "" while that is being written; ``name`` if it was met meanwhile."""

    schema: Json
    expression: str = ""
    name: str = ""


class Translator:
    """Writes rules for the schemas within ``root``, which is where references start from.

    The rules' names begin with ``prefix``. At most ``max_steps`` schemas and declarations are looked at, and
    ``max_size`` characters written: references can multiply without end.
    """

    def __init__(self, root: Json, prefix: str, *, max_steps: int, max_size: int) -> None:
        self.rules: dict[str, str] = {}
        self._root = root
        self._prefix = prefix
        self.steps_left = max_steps
        self._size_left = max_size
        self._numbers = count()
        self._names: dict[str, str] = {}  # the rule that stands for an expression
        self._seen: dict[int, _Seen] = {}  # by identity

    def value(self, schema: Json, chain: Chain = _NO_CHAIN, depth: int = 0) -> str:
        """An expression for the values of ``schema``. Raises ``NoValueError`` or ``TooLargeError``.

        A schema that is met again is not written again, and one that is met within itself becomes a rule.
        """
        if chain or not isinstance(schema, dict):
            return self._expression(schema, chain, depth)
        seen = self._seen.get(id(schema))
        if seen is None:
            seen = self._seen[id(schema)] = _Seen(schema)
            try:
                seen.expression = self._expression(schema, chain, depth)
            finally:
                if seen.name:
                    # Without an expression no value fits: whatever refers to the rule is then given up as well.
                    self.rules[seen.name] = seen.expression or "json"
                if not seen.expression:
                    del self._seen[id(schema)]
        elif not seen.expression and not seen.name:
            seen.name = self._new_name()
        return seen.name or seen.expression

    def _expression(self, schema: Json, chain: Chain, depth: int) -> str:
        self._look_at(1)
        if depth > _MAX_DEPTH:
            raise TooLargeError
        if schema is False:
            raise NoValueError
        if not isinstance(schema, dict):
            return "json"
        flat, chain = schemas.flatten(schema, self._root, chain)
        self._look_at(len(schemas.properties(flat)))
        branches = schemas.branches(flat)
        if branches is not None:
            return self._any_of(branches, chain, depth)
        values = schemas.listed(flat)
        if values:
            return self._enum(values, flat)
        allowed = schemas.types(flat)
        if allowed is None:
            return "json"
        if len(allowed) > 1:
            return self._any_of(({**flat, "type": name, "nullable": False} for name in allowed), chain, depth)
        match allowed[0]:
            case "object":
                return self._object(flat, depth)
            case "array":
                return self._array(flat, depth)
            case "string":
                return self._string(flat)
            case "integer" | "number" as name:
                return self._number(flat, name)
            case name:
                return name

    def _look_at(self, number: int) -> None:
        self.steps_left -= number
        if self.steps_left < 0:
            raise TooLargeError

    def _any_of(self, branches: Iterable[Json], chain: Chain, depth: int) -> str:
        alternatives = []
        for branch in branches:
            try:
                alternatives.append(self.value(branch, chain, depth + 1))
            except NoValueError:
                continue
        if not alternatives:
            raise NoValueError
        return self._rule(choice(alternatives))

    def _enum(self, values: list[Json], schema: Mapping[str, Json]) -> str:
        allowed = schemas.types(schema) if "type" in schema else None
        fitting = [value for value in values if allowed is None or schemas.is_type(value, allowed)]
        texts = {text: "" for value in fitting if (text := _json(value)) is not None}
        if not texts:
            raise NoValueError
        if sum(map(len, texts)) > _MAX_ENUM:
            return self.value({"type": list(dict.fromkeys(map(schemas.type_of, fitting)))})
        return self._rule(gbnf.one_of(texts))

    def _string(self, schema: Mapping[str, Json]) -> str:
        kind = schema.get("format")
        if isinstance(kind, str) and kind in json_rules.FORMATS:
            return self._rule(json_rules.FORMATS[kind])
        high = min(schemas.count(schema.get("maxLength"), LONGEST_STRING), LONGEST_STRING)
        low = min(schemas.count(schema.get("minLength"), 0), high)
        return self._rule(json_rules.string(low, high))

    def _number(self, schema: Mapping[str, Json], name: str) -> str:
        low, open_low = _bound(schema, "minimum", "exclusiveMinimum", max)
        high, open_high = _bound(schema, "maximum", "exclusiveMaximum", min)
        if low is None and high is None:
            return name
        decimals = DECIMALS if name == "number" else 0
        expression = json_rules.between(low, high, open_low=open_low, open_high=open_high, decimals=decimals)
        if expression is None:
            raise NoValueError
        return self._rule(expression)

    def _array(self, schema: Mapping[str, Json], depth: int) -> str:
        first, items = schemas.items(schema)
        high = min(schemas.count(schema.get("maxItems"), LONGEST_LIST), LONGEST_LIST)
        low = schemas.count(schema.get("minItems"), 0)
        if low > high:
            raise NoValueError
        fixed = [self.value(each, depth=depth + 1) for each in first[:high]]
        if fixed and items is None and low <= len(fixed):
            high = len(fixed)  # more could be anything
        low, high = max(low - len(fixed), 0), high - len(fixed)
        try:
            item = self._named(self.value(True if items is None else items, depth=depth + 1)) if high else ""
        except NoValueError:
            if low:
                raise
            item, high = "", 0
        if not fixed:
            return self._rule(sequence('"["', separated(item, low, high), '"]"'))
        more = repeat(f"({_COMMA} {item})", low, high)
        return self._rule(sequence('"["', f" {_COMMA} ".join(fixed), more, '"]"'))

    def _object(self, schema: Mapping[str, Json], depth: int) -> str:
        """Members in the order declared, then undeclared ones; what is not required may be left out."""
        declared = schemas.properties(schema)
        unnamed = schema.get("additionalProperties", True)
        required = schemas.required(schema)
        members: list[tuple[str, bool]] = []
        for name in dict.fromkeys([*declared, *required]):
            try:
                value = self.value(declared.get(name, unnamed), depth=depth + 1)
            except NoValueError:
                if name in required:
                    raise
                continue
            members.append((sequence(literal(f"{jsontext.dumps(name)}: "), value), name in required))
        high = min(schemas.count(schema.get("maxProperties"), LONGEST_LIST), LONGEST_LIST)
        low = schemas.count(schema.get("minProperties"), 0)
        names = [*declared, *required]
        other = self._other_member(_undeclared(schema), names, schema.get("propertyNames"), depth) if high else None
        if not members:
            if low > (high if other else 0):
                raise NoValueError
            return self._rule(sequence('"{"', separated(other, low, high) if other else "", '"}"'))
        return self._rule(self._members(members, other, some=low > 0))

    def _other_member(self, schema: Json, names: list[str], keys: Json, depth: int) -> str | None:
        """The rule of a member that is none of ``names``; None when there is none."""
        try:
            value = self.value(schema, depth=depth + 1)
            if names:
                # Keys are written without escapes, so that they can only meet names that need none.
                key = json_rules.other_key(name for name in names if _json(name) == f'"{name}"')
            elif isinstance(keys, dict):
                key = self.value({"allOf": [keys, {"type": "string"}]}, depth=depth + 1)
            else:
                key = "key"
        except NoValueError:
            return None
        return self._rule(sequence(key, '": "', value))

    def _members(self, members: list[tuple[str, bool]], other: str | None, *, some: bool) -> str:
        """The object of ``members`` (text, required) and any number of ``other``. ``some``: not without members.

        From the last member to the first: ``start`` is what can begin there, ``after`` what can follow a member.
        """
        start = separated(other, 1, LONGEST_LIST) if other else ""
        after = repeat(f"({_COMMA} {other})", 0, LONGEST_LIST) if other else ""
        needed = False  # a required member is among those behind
        for at in range(len(members) - 1, -1, -1):
            text, required = members[at]
            here = sequence(text, after)
            start = here if required or not start else choice([here, self._named(start)])
            needed = needed or required
            if at and not members[at - 1][1]:
                start = self._named(start)
            after = sequence(_COMMA, start) if needed else f"({_COMMA} {start})?"
        return sequence('"{"', start if needed or some else f"({start})?", '"}"')

    def _named(self, expression: str) -> str:
        """``expression`` as a single name."""
        return expression if expression.replace("-", "").isalnum() else self._rule(expression)

    def _rule(self, expression: str) -> str:
        """The name of a rule for ``expression``; the expression itself where it is a name already."""
        if expression in self._names:
            return self._names[expression]
        if expression.replace("-", "").isalnum():
            return expression
        name = self._names[expression] = self._new_name()
        self.rules[name] = expression
        self._size_left -= len(expression)
        if self._size_left < 0:
            raise TooLargeError
        return name

    def _new_name(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


def _undeclared(schema: Mapping[str, Json]) -> Json:
    """The schema of members that ``schema`` does not name; False where it names some and says nothing of others."""
    said = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    if said is not None:
        return said
    if isinstance(schema.get("properties"), dict):
        return False
    patterns = schema.get("patternProperties")
    return next(iter(patterns.values())) if isinstance(patterns, dict) and len(patterns) == 1 else True


def _bound(
    schema: Mapping[str, Json], word: str, exclusive: str, stricter: Callable[[Decimal, Decimal], Decimal]
) -> tuple[Decimal | None, bool]:
    """A bound, and whether it is excluded itself: ``exclusiveMinimum`` is a number, or true (draft 4)."""
    included, excluded = schemas.number(schema.get(word)), schemas.number(schema.get(exclusive))
    if included is None or excluded is None:
        return (included, schema.get(exclusive) is True) if excluded is None else (excluded, True)
    return stricter(included, excluded), stricter(included, excluded) == excluded


def _json(value: Json) -> str | None:
    """The text of ``value``, None for what JSON has no word for."""
    try:
        return jsontext.dumps(value)
    except ValueError:
        return None

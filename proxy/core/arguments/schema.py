"""One tool's parameters: arguments coerced to them, validated against them, and typed by them.

A schema comes from a client. Nothing it names is fetched, a pattern costs a bounded time, and one that does not compile
(``"type": "str"``, ``"required": true`` on a property) serves without validation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import islice

from jsonschema_rs import Validator

from proxy.core.arguments.coerce import coerce, typed
from proxy.core.arguments.explain import Explanation, compiled
from proxy.core.arguments.jsontext import dumps, loads
from proxy.core.arguments.outline import Nodes, Outline, member
from proxy.core.arguments.prepare import prepared
from proxy.core.events import Problem
from proxy.core.model import Json

_MOST_FAULTS = 8
_MOST_DIGITS = 4_000  # Python makes no integer of more than 4,300
_DEEPEST = 500  # the validator recurses on the machine's stack
_READ_ANEW = re.compile(r'"(?:\$ref|const|prefixItems)":')
_NESTING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]')


class ToolSchema:
    """The ``parameters`` of a tool; None: it takes an object of any members. Compiled at the first use, once.

    No method raises, whatever the schema and the text.
    """

    def __init__(self, parameters: Json) -> None:
        self._parameters = True if parameters is None else parameters
        self._outline = Outline(self._parameters)

    @property
    def problem(self) -> Problem | None:
        """A ``schema`` problem that says why arguments are not validated, None when they are."""
        if isinstance(self._check, _Check):
            return None
        return Problem("schema", f"The tool's schema cannot be used, its arguments are not validated: {self._check}.")

    def accepts(self, text: str) -> bool:
        """Whether ``text``, strict JSON, is known to be a valid object as it stands: nothing needs converting then."""
        return isinstance(self._check, _Check) and self._check.accepts(text)

    def coerce(self, text: str) -> tuple[str, tuple[Problem, ...]]:
        """``text`` with values converted to the types the schema asks for, and a ``coerced`` problem for each.

        Everything that is not converted stays byte for byte; text that is no JSON comes back as it is.
        """
        try:
            return coerce(self._outline, text)
        except (ValueError, RecursionError):
            return text, ()

    def validate(self, text: str) -> tuple[Problem, ...]:
        """What is wrong with ``text``: ``invalid_arguments`` problems, none where it is valid or cannot be checked."""
        try:
            value = loads(text)
        except ValueError:
            return (Problem("invalid_arguments", "The arguments are not JSON."),)
        if not isinstance(value, dict):
            return (Problem("invalid_arguments", "The arguments must be a JSON object."),)
        if not isinstance(self._check, _Check):
            return ()
        return tuple(Problem("invalid_arguments", f"{fault}.") for fault in self._check.faults(text, value))

    def typed(self, name: str, raw: str, string: bool | None = None) -> str:
        """``raw``, the text of parameter ``name`` in a dialect without quotes, as JSON text of the type it should have.

        ``string``: the dialect itself says that it is a string, or that it is not.
        """
        if string:
            return dumps(raw)
        try:
            return typed(self._outline, self._nodes(name), raw, explicit=string is False)
        except RecursionError:
            return dumps(raw)

    def admits_string(self, name: str) -> bool:
        """Whether a string that is given for parameter ``name`` stays one, whatever it says."""
        try:
            nodes = self._nodes(name)
            return self._outline.admits_any_string(nodes) or self._outline.kinds(nodes) == {"string"}
        except RecursionError:
            return False

    def names(self, name: str) -> bool:
        """Whether the schema says something of a parameter ``name``."""
        try:
            return bool(self._nodes(name))
        except RecursionError:
            return False

    def is_text(self, name: str, string: bool | None = None) -> bool:
        """Whether ``typed`` makes a string of parameter ``name`` whatever its text; ``string`` as there."""
        if string is not None:
            return string
        try:
            nodes = self._nodes(name)
            return self._outline.admits_any_string(nodes) and self._outline.kinds(nodes) == {"string"}
        except RecursionError:
            return False

    def _nodes(self, name: str) -> Nodes:
        return member(self._outline.applied(self._outline.root, {}), name)

    @cached_property
    def _check(self) -> _Check | str:
        """The compiled schema, or in words why there is none."""
        try:
            return _Check.of(prepared(self._parameters))
        except RecursionError:
            return "it is nested too deeply"
        except (ValueError, TypeError) as error:
            return str(error).partition("\n")[0][:200]


@dataclass(frozen=True, slots=True)
class _Check:
    """``alike``: the validator reads the schema as the outline does, which knows what has come with later dialects."""

    validator: Validator
    explanation: Explanation
    alike: bool

    @classmethod
    def of(cls, schema: Json) -> _Check:
        dialect = schema.get("$schema") if isinstance(schema, dict) else None
        alike = dialect is None or "2020-12" in str(dialect) or _READ_ANEW.search(dumps(schema)) is None
        return cls(compiled(schema), Explanation(Outline(schema), dialect), alike)

    def accepts(self, text: str) -> bool:
        """Whether ``text`` is valid, and nothing of it would be converted; False too where that is not known."""
        if not self.alike or _depth(text) > _DEEPEST:
            return False
        try:
            plain, end = _PLAIN.raw_decode(text)
            return end == len(text) and isinstance(plain, dict) and self.validator.is_valid(plain)
        except (ValueError, ArithmeticError, RecursionError):
            return False

    def faults(self, text: str, value: Json) -> list[str]:
        """What is wrong with ``value``, which ``text`` says: nothing where it cannot be checked."""
        if _depth(text) > _DEEPEST:
            return []
        try:
            plain = _PLAIN.decode(text)
            if self.validator.is_valid(plain):
                return []
            faults = list(islice(self.explanation.faults(value, plain), _MOST_FAULTS))
        except (ValueError, ArithmeticError, RecursionError):
            return []
        return [fault for fault in faults if fault] if faults else ["the arguments do not match the tool's schema"]


def _depth(text: str) -> int:
    if len(text) <= _DEEPEST or text.count("{") + text.count("[") <= _DEEPEST:
        return 0
    depth = deepest = 0
    for found in _NESTING.finditer(text):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(found[0], 0)
        deepest = max(deepest, depth)
    return deepest


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _MOST_DIGITS else Decimal(text)


_PLAIN = json.JSONDecoder(parse_int=_integer, parse_float=Decimal)

"""A tool's definition as a model is shown it: without what says nothing, and in JSON that cannot leave its block."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import NoReturn

from proxy.core import markup
from proxy.core.errors import ClientError
from proxy.core.model import Json, Tool

_TOLD = ("format", "input_examples")
"""Fields of a tool, besides its schema, that say how to call it: the grammar of a free-text tool, sample arguments."""

_KEPT_NULL = frozenset({"default", "const"})
_VALUES = frozenset({"default", "const", "enum", "examples", "example", "input_examples"})
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})


def definition(tool: Tool) -> dict[str, Json]:
    """``name``, ``description`` if there is one, ``parameters`` (``{}`` if none) and what else says how to call it.

    Raises ``RecursionError`` when a schema is nested too deeply.
    """
    shown: dict[str, Json] = {"name": tool.name}
    if tool.description:
        shown["description"] = tool.description
    shown["parameters"] = {} if tool.parameters is None else without_nulls(tool.parameters)
    told = {key: tool.extra[key] for key in _TOLD if tool.extra.get(key) is not None}
    return shown | {key: value if key in _VALUES else without_nulls(value) for key, value in told.items()}


def to_json(value: Json) -> str:
    """Short JSON (15 % fewer tokens than with spaces) that opens and closes none of our tags.

    Raises ``ValueError`` (NaN, an integer of thousands of digits) or ``RecursionError``.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_refuse)
    return markup.neutralise_json(text)


def _refuse(value: object) -> NoReturn:
    words = "a number has thousands of digits" if isinstance(value, Decimal) else f"{type(value).__name__} is no JSON"
    raise ValueError(words)


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Turn what :func:`to_json` raises into a ``ClientError`` that names ``what``."""
    try:
        yield
    except RecursionError:
        raise ClientError(f"{what} cannot be written as JSON: nested too deeply") from None
    except ValueError as error:
        raise ClientError(f"{what} cannot be written as JSON: {error}") from None


def without_nulls(schema: Json) -> Json:
    """``schema`` less the keywords that some clients send as null; a null that is a value (``default`` …) stays."""
    if isinstance(schema, Mapping):
        return {
            key: value if key in _VALUES else _schemas(value) if key in _NAMED_SCHEMAS else without_nulls(value)
            for key, value in schema.items()
            if value is not None or key in _KEPT_NULL
        }
    if isinstance(schema, (list, tuple)):
        return [without_nulls(item) for item in schema]
    return schema


def _schemas(named: Json) -> Json:
    """A mapping of names to schemas: a name is never left out, a null schema admits anything."""
    if not isinstance(named, Mapping):
        return named
    return {name: {} if schema is None else without_nulls(schema) for name, schema in named.items()}

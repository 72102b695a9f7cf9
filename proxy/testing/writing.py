"""What writers of calls are made of: JSON, Python, elements, sketches, and what each of them can say.

A way of writing cannot say everything: a string without quotes ends at its closing tag, whatever it says. So each comes
with a predicate that tells what it can say, lest anybody expects the rest to be read back.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from proxy.core.arguments.schema import ToolSchema
from proxy.core.model import Json, Tool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TYPING = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
_TYPED = re.compile(r"[{\[\"']|[-+.]?\d|(?:null|none|true|false|nan|-?infinity)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a model may want to make: ``arguments``, decoded JSON, of ``tool``."""

    tool: Tool
    arguments: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name


@dataclass(frozen=True, slots=True)
class Way:
    """How one call is written, given its place in the reply, from 0, and whether it can be said so."""

    write: Callable[[Call, int], str]
    says: Callable[[Call], bool]

    def within(self, before: str, after: str) -> Way:
        """The same between ``before`` and ``after``."""
        return Way(lambda call, number: f"{before}{self.write(call, number)}{after}", self.says)


def dumps(value: Json) -> str:
    """``value`` as JSON, as models write it."""
    return json.dumps(value, ensure_ascii=False)


def named(name: str) -> bool:
    """Whether ``name`` is one of plain letters, digits, dots and hyphens, which can stand anywhere."""
    return _NAME.fullmatch(name) is not None


def as_object(name: str = "name", arguments: str = "arguments", **more: str) -> Way:
    """A JSON object; ``more`` are members before the two, in which ``{}`` is the call's place."""

    def write(call: Call, number: int) -> str:
        given = {key: value.format(number) for key, value in more.items()}
        return dumps({**given, name: call.name, arguments: call.arguments})

    return Way(write, lambda call: True)


def keyed() -> Way:
    """A JSON object with the arguments under the name."""
    return Way(lambda call, number: dumps({call.name: call.arguments}), lambda call: True)


def headed(before: str, after: str = "") -> Way:
    """JSON arguments behind a header, in which NAME and NUMBER stand for those of the call."""

    def write(call: Call, number: int) -> str:
        header = before.replace("NUMBER", str(number)).replace("NAME", call.name)
        return f"{header}{dumps(call.arguments)}{after}"

    return Way(write, lambda call: named(call.name))


def as_python() -> Way:
    """A Python call with keyword arguments."""

    def write(call: Call, number: int) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())
        return f"{call.name}({given})"

    def says(call: Call) -> bool:
        names = (call.name, *call.arguments)
        return all(name.isascii() and name.isidentifier() and not keyword.iskeyword(name) for name in names)

    return Way(write, says)


def tags(opening: str, parameter: str, closing_parameter: str, closing: str) -> Way:
    """An opening with the NAME, then each argument behind a ``parameter`` with its KEY, strings without quotes.

    STRING in it becomes ``true`` or ``false``, KIND the type of the value: then a string is one whatever it says. With
    a line break at its end, line breaks around values are layout.
    """
    marks = [mark for mark in (parameter.partition("KEY")[0], closing_parameter.strip(), closing.strip()) if mark]
    told, layout = "STRING" in parameter or "KIND" in parameter, parameter.endswith("\n")

    def write(call: Call, number: int) -> str:
        parts = [opening.replace("NUMBER", str(number + 1)).replace("NAME", call.name)]
        for key, value in call.arguments.items():
            head = parameter.replace("STRING", dumps(isinstance(value, str))).replace("KIND", _kind(value))
            parts.append(head.replace("KEY", key) + _raw(value) + closing_parameter)
        return "".join([*parts, closing])

    def says(call: Call) -> bool:
        return named(call.name) and all(
            named(key)
            and not any(mark in _raw(value) for mark in marks)
            and (layout or not _raw(value).startswith(("\n", "\r")))
            and (told or _is_itself(call.tool, key, value))
            for key, value in call.arguments.items()
        )

    return Way(write, says)


def sketched(quote: str) -> Way:
    """``call:name{key:value}``, strings between ``quote`` marks, keys without quotes."""

    def told(value: Json) -> str:
        if isinstance(value, str):
            return f"{quote}{value}{quote}"
        if isinstance(value, list):
            return "[" + ",".join(map(told, value)) + "]"
        if isinstance(value, Mapping):
            return "{" + ",".join(f"{key}:{told(item)}" for key, item in value.items()) + "}"
        return dumps(value)

    def says(call: Call) -> bool:
        keys = [key for value in _within(call.arguments) if isinstance(value, Mapping) for key in value]
        return all(map(named, (call.name, *keys))) and not any(
            quote in value for value in _within(call.arguments) if isinstance(value, str)
        )

    return Way(lambda call, number: f"call:{call.name}{told(call.arguments)}", says)


def elements(mark: str) -> Way:
    """``<invoke name="…"><key>value</key></invoke>``, each tag behind ``mark``, with elements in values as well."""

    def told(value: Json) -> str:
        if isinstance(value, Mapping):
            return "".join(f"{mark}<{key}>{told(item)}{mark}</{key}>" for key, item in value.items())
        if isinstance(value, list):
            return "".join(f"{mark}<item>{told(item)}{mark}</item>" for item in value)
        return _raw(value)

    def says(call: Call) -> bool:
        return named(call.name) and all(
            named(key)
            and mark not in dumps(value)
            and (_has_texts(value) if isinstance(value, list | dict) else _is_itself(call.tool, key, value))
            for key, value in call.arguments.items()
        )

    return Way(lambda call, number: f'{mark}<invoke name="{call.name}">{told(call.arguments)}{mark}</invoke>', says)


def _raw(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value)


def _kind(value: Json) -> str:
    kinds = {bool: "boolean", str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _is_itself(tool: Tool, key: str, value: Json) -> bool:
    """Whether ``value`` is read as what it is without quotes.

    A string must not look like what else it might be. Where the schema says nothing, digits may be those of a name.
    """
    if isinstance(value, str):
        return ToolSchema(tool.parameters).is_text(key) or _is_text(value)
    return not isinstance(value, int | float) or isinstance(value, bool) or _says_something(tool.parameters, key)


def _says_something(parameters: Json, key: str) -> bool:
    members = parameters.get("properties") if isinstance(parameters, dict) else None
    schema = members.get(key) if isinstance(members, dict) else None
    return isinstance(schema, dict) and bool(_TYPING & schema.keys())


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and value.strip() == value != "" and _TYPED.match(value) is None


def _has_texts(value: Json) -> bool:
    """Whether ``value`` holds texts alone, in lists and objects that are not empty and can be elements."""
    if isinstance(value, list):
        return bool(value) and all(map(_has_texts, value))
    if isinstance(value, dict):
        return bool(value) and all(named(key) and key != "item" and _has_texts(item) for key, item in value.items())
    return _is_text(value)


def _within(value: Json) -> Iterator[Json]:
    """``value`` and all values in it."""
    yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in inner:
        yield from _within(item)

"""Tools as signatures in the manner of TypeScript: fewer tokens than their JSON, and all that it says.

What a type cannot say stands in a comment above it: descriptions as they are, every other keyword of the schema
(limits, formats, examples …) as ``keyword: JSON``. A default stands behind its type. Definitions keep their names, so
recursion needs no care. Only this is taken as read: an object has no other keys than those shown (what a schema leaves
open by saying nothing, a model should not use), an alternative of ``oneOf`` is one of ``anyOf``, a ``title`` that
repeats the name says nothing, nor does the ``$schema`` that tells the draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from proxy.core import markup
from proxy.core.definitions import to_json
from proxy.core.model import Json

DEEPEST = 24
"""Types within types that are written out; what lies deeper is given as JSON."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
_SHAPING = frozenset({"type", "properties", "additionalProperties", "patternProperties", "items", "prefixItems"})
"""Keywords that give a type by themselves: alternatives beside them only narrow it, and stay JSON."""

_KEY = re.compile(r"(?:[^\W\d]|\$)[\w$]*")
_TOOL_NAME = re.compile(r"[\w.-]+")
_WORD = re.compile(r"[^\W\d]\w*")


def signature(tool: Mapping[str, Json]) -> str:
    """The lines for ``tool``, as :func:`~proxy.core.definitions.definition` gives it: comment, function, its types.

    Raises as :func:`~proxy.core.definitions.to_json` does.
    """
    name = tool["name"]
    writer = _Writer(tool["parameters"])
    arguments = writer.arguments(name)
    head = f"function {_written(name, _TOOL_NAME)}("
    lines = _notes({key: value for key, value in tool.items() if key not in ("name", "parameters")})
    if arguments.lines == ["{}"] and "default" not in arguments.unsaid:
        lines += [*_notes(arguments.unsaid), f"{head})"]
    else:
        lines += _around("", _declared(f"{head}arguments: ", arguments), ")")
    return "\n".join([*lines, *writer.types()])


@dataclass(slots=True)
class _Type:
    """A type as lines. ``unsaid`` are the keywords that they leave out; ``loose``: it ends in an alternative."""

    lines: list[str]
    unsaid: dict[str, Json] = field(default_factory=dict)
    loose: bool = False


class _Writer:
    """Writes the schemas of one tool. ``_shape`` and what it calls take from ``unsaid`` what the type then says."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._names: dict[str, str] = {}  # by the pointer of a ``$ref``
        self._defined: list[tuple[str, Json]] = []
        self._depth = 0
        for word in ("$defs", "definitions"):
            defined = schema.get(word) if isinstance(schema, Mapping) else None
            if isinstance(defined, Mapping):
                self._schema = {key: value for key, value in self._schema.items() if key != word}
                for key, value in defined.items():
                    self._name(f"#/{word}/{key.replace('~', '~0').replace('/', '~1')}", key, value)

    def _name(self, pointer: str, key: str, schema: Json) -> None:
        name = re.sub(r"\W", "_", key)
        name = name if _WORD.fullmatch(name) else f"T{name}"
        while name in self._names.values() or name in _KINDS or name in ("any", "never"):
            name += "_"
        self._names[pointer] = name
        self._defined.append((name, schema))

    def arguments(self, tool: str) -> _Type:
        """The type of the whole; no schema at all means no arguments."""
        return self._read({"properties": {}} if self._schema == {} else self._schema, tool)

    def types(self) -> Iterator[str]:
        """The lines that declare the definitions."""
        for name, schema in self._defined:
            yield from _declared(f"type {name} = ", self._read(schema, name))

    def _read(self, schema: Json, name: str = "") -> _Type:
        if isinstance(schema, bool):
            return _Type(["any" if schema else "never"])
        if not isinstance(schema, Mapping) or self._depth == DEEPEST:
            return _Type(["any"], {"schema": schema})
        unsaid = {key: value for key, value in schema.items() if not _says_nothing(key, value, name)}
        self._depth += 1
        made = self._shape(unsaid)
        self._depth -= 1
        made.unsaid = unsaid
        if unsaid.get("nullable") is True:
            del unsaid["nullable"]
            made.lines, made.loose = _around("", made.lines, " | null"), True
        return made

    def _shape(self, unsaid: dict[str, Json]) -> _Type:
        match unsaid:
            case {"$ref": str(ref)} if ref in self._names or unquote(ref) in self._names:
                del unsaid["$ref"]
                return _Type([self._names.get(ref) or self._names[unquote(ref)]])
            case {"const": _}:
                return _literals([unsaid.pop("const")], unsaid)
            case {"enum": [_, *_]}:
                return _literals(unsaid.pop("enum"), unsaid)
        for word, mark in (("anyOf", "|"), ("oneOf", "|"), ("allOf", "&")):
            parts = unsaid.get(word)
            if isinstance(parts, list) and parts and not unsaid.keys() & _SHAPING:
                del unsaid[word]
                return _joined([self._read(part) for part in parts], mark)
        return _joined([self._of_kind(kind, unsaid) for kind in _kinds(unsaid)], "|")

    def _of_kind(self, kind: str, unsaid: dict[str, Json]) -> _Type:
        if kind == "object":
            return _Type(self._object(unsaid))
        return _Type(self._array(unsaid) if kind == "array" else [kind])

    def _object(self, unsaid: dict[str, Json]) -> list[str]:
        members = []
        properties, required = unsaid.get("properties"), unsaid.get("required")
        if isinstance(properties, Mapping):
            del unsaid["properties"]
            must = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
            for name, schema in properties.items():
                head = f"{_written(name, _KEY)}{'' if name in must else '?'}: "
                members.append(_declared(head, self._read(schema, name)))
            if isinstance(required, list) and must.issubset(properties) and len(must) == len(required):
                del unsaid["required"]
        others = unsaid.get("additionalProperties")
        if isinstance(others, (bool, Mapping)):
            del unsaid["additionalProperties"]
            if others is not False:
                members.append(_declared("[key: string]: ", self._read(others)))
        elif not isinstance(properties, Mapping):
            return ["object"]
        return _enclosed("{", members, "}")

    def _array(self, unsaid: dict[str, Json]) -> list[str]:
        for word, rest in (("prefixItems", "items"), ("items", "additionalItems")):
            first = unsaid.get(word)
            if isinstance(first, list):
                del unsaid[word]
                members = [_declared("", self._read(item)) for item in first]
                others = unsaid.pop(rest, True)
                if others is not False:
                    members.append(_around("...", self._array({"items": others}), ""))
                return _enclosed("[", members, "]")
        item = self._read(unsaid.pop("items", True))
        if item.unsaid:
            return ["(", *_declared("", item), ")[]"]
        return _around("(", item.lines, ")[]") if item.loose else _around("", item.lines, "[]")


def _says_nothing(keyword: str, value: Json, name: str) -> bool:
    if keyword == "title" and isinstance(value, str):
        return re.sub(r"[\W_]", "", value).casefold() == re.sub(r"[\W_]", "", name).casefold()
    return keyword == "$schema"


def _literals(values: Sequence[Json], unsaid: dict[str, Json]) -> _Type:
    """The values themselves. Their type is said by that, if it is theirs."""
    types = {made for kind in _words(unsaid.get("type")) for made in _KINDS.get(kind, ())}
    if all(type(value) in types for value in values):
        unsaid.pop("type", None)
    return _Type([" | ".join(to_json(value) for value in values)], loose=len(values) > 1)


def _kinds(unsaid: dict[str, Json]) -> list[str]:
    """The kinds of value: by ``type`` (an unknown word in it is as good to a model), else by the other keywords."""
    kinds = _words(unsaid.get("type"))
    others = unsaid.keys() & (_SHAPING - {"type"})
    if kinds and (not others or _KINDS.keys() >= set(kinds)):
        del unsaid["type"]
        return kinds
    if others:
        return ["array"] if others & {"items", "prefixItems"} else ["object"]
    return ["any"]


def _words(kinds: Json) -> list[str]:
    """``kinds`` as a list, empty if anything in it is not a word."""
    listed = kinds if isinstance(kinds, list) else [kinds]
    return listed if all(isinstance(kind, str) and _WORD.fullmatch(kind) for kind in listed) else []


def _joined(parts: list[_Type], mark: str) -> _Type:
    """Alternatives (``|``) or all at once (``&``); those with a comment have lines of their own."""
    for part in parts:
        if mark == "&" and part.loose:
            part.lines = _around("(", part.lines, ")")
    if any(part.unsaid for part in parts):
        return _Type(["", *(line for part in parts for line in _declared(f"{mark} ", part))], loose=True)
    lines, *others = (part.lines for part in parts)
    for more in others:
        lines = [*lines[:-1], f"{lines[-1]} {mark} {more[0]}", *more[1:]]
    return _Type(lines, loose=len(parts) > 1 or parts[0].loose)


def _declared(head: str, made: _Type) -> list[str]:
    """``made`` behind ``head``, with its comment above and its default behind."""
    unsaid = dict(made.unsaid)
    default = f" = {to_json(unsaid.pop('default'))}" if "default" in unsaid else ""
    return [*_notes(unsaid), *_around(head, made.lines, default)]


def _around(before: str, lines: list[str], after: str) -> list[str]:
    first = [f"{before}{lines[0]}".rstrip(), *lines[1:]]
    return [*first[:-1], first[-1] + after]


def _enclosed(opener: str, members: list[list[str]], closer: str) -> list[str]:
    """On one line, if no member needs more."""
    if all(len(member) == 1 for member in members):
        return [f"{opener}{', '.join(member[0] for member in members)}{closer}"]
    return [opener, *(line for member in members for line in _around("", member, ",")), closer]


def _notes(unsaid: Mapping[str, Json]) -> list[str]:
    """A comment: the description line by line, then the other keywords on one line."""
    description = unsaid.get("description")
    words = markup.neutralise(description).splitlines() if isinstance(description, str) else []
    others = {key: value for key, value in unsaid.items() if key != "description" or not isinstance(value, str)}
    if others:
        words.append(", ".join(f"{_written(key, _KEY)}: {to_json(value)}" for key, value in others.items()))
    return [f"// {line}".rstrip() for line in words]


def _written(name: str, plain: re.Pattern[str]) -> str:
    return name if plain.fullmatch(name) else to_json(name)

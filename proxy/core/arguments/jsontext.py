"""Strict JSON whose numbers stay as written.

A number that passes through ``int`` or ``float`` may come out as another number (``4611686018427387905`` as a float,
``1e400`` as infinity) or not at all (Python refuses integers over 4,300 digits). Here it is a :class:`Number`: its
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import NoReturn

from msgspec import Struct

from proxy.core.model import Json


class Number(str):
    """A JSON number as written (``1e5``, ``-0.10``). Made by :func:`loads` and its kin; the text is not checked."""

    __slots__ = ()


class Member(Struct, frozen=True):
    """A member of an object, and where its value stands: the first index, and the one past the last."""

    key: str
    value: Json
    value_start: int
    value_end: int


def loads(text: str) -> Json:
    """The value of ``text``: numbers as :class:`Number`, the last of duplicate keys.

    Raises ``ValueError`` for anything else than one strict JSON value, ``NaN`` and ``Infinity`` included, and for
    nesting deeper than the interpreter's stack (some 900 levels).
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def scan(text: str, start: int = 0) -> tuple[Json, int]:
    """The value that begins exactly at ``text[start]`` and the index past it; what follows is not looked at.

    Raises ``ValueError`` like :func:`loads`.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def members(text: str, start: int = 0) -> tuple[list[Member], int]:
    """The members, in the order written, of the object whose ``{`` is ``text[start]``, and the index past its ``}``.

    Duplicate keys are all listed. Raises ``ValueError`` when no strict JSON object stands there.
    """
    if text[start : start + 1] != "{":
        raise ValueError(f"no object at {start}")
    found: list[Member] = []
    at = skip_space(text, start + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError(f"no key at {at}")
        key, key_end = scan(text, at)
        colon = skip_space(text, key_end)
        if text[colon : colon + 1] != ":":
            raise ValueError(f"no colon at {colon}")
        value_start = skip_space(text, colon + 1)
        value, value_end = scan(text, value_start)
        found.append(Member(key, value, value_start, value_end))
        end = skip_space(text, value_end)
        match text[end : end + 1]:
            case "}":
                return found, end + 1
            case ",":
                at = skip_space(text, end + 1)
            case _:
                raise ValueError(f"no comma or closing brace at {end}")


def skip_space(text: str, at: int) -> int:
    """The index of the first character from ``at`` on that is not JSON white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it always matches


def dumps(value: Json) -> str:
    """``value`` as strict JSON: text unescaped where JSON allows, lone surrogates as ``\\udXXX``, numbers as written.

    ``Decimal`` is a number too, as the integers are that Python does not make.
    Raises ``ValueError`` for what JSON has no word for (NaN, other types).
    """
    text = encode_basestring(value) if type(value) is str else "".join(_pieces(value))
    return text if text.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _pieces(value: Json) -> Iterator[str]:
    """The text of ``value`` in pieces, without recursion: depth is bounded by memory alone."""
    open_values: list[tuple[Iterator[Json], str]] = []  # what is left of each open list or object, and its closer
    first = True
    while True:
        if isinstance(value, dict):
            yield "{"
            open_values.append((iter(value.items()), "}"))
            first = True
        elif isinstance(value, (list, tuple)):
            yield "["
            open_values.append((iter(value), "]"))
            first = True
        else:
            yield _scalar(value)
            first = False
        while open_values:
            rest, closer = open_values[-1]
            item: Json = next(rest, _END)
            if item is _END:
                yield closer
                open_values.pop()
                first = False
                continue
            if not first:
                yield ", "
            if closer == "}":
                key, value = item
                yield encode_basestring(key) + ": "
            else:
                value = item
            break
        else:
            return


def _scalar(value: Json) -> str:
    if isinstance(value, (Number, Decimal)):
        return str(value)
    if isinstance(value, str):
        return encode_basestring(value)
    try:
        return json.dumps(value, allow_nan=False)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse)
_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_END = object()

"""Long arguments that go out while they are still being written.

What goes out is always the beginning of what the whole arguments will be: the source text, with members whose type is
converted replaced. A member goes out when it is complete and converted; only a string whose schema admits a string
streams from within, and never past a quote before it is seen what follows it.
"""

from __future__ import annotations

import re
from enum import Enum
from io import StringIO

from proxy.core.arguments.jsontext import loads
from proxy.core.arguments.schema import ToolSchema

_QUOTE_OR_ESCAPE = re.compile(r'["\\]')
_STRUCTURE = re.compile(r'["{}\[\],]')
_SPACE = re.compile(r"[ \t\n\r]*")


class _Mode(Enum):
    OPEN = 0  # before the opening brace
    KEY = 1  # white space, comma, key, colon
    STRING = 2  # inside a string that streams
    QUOTE = 3  # behind a quote that may be the string's end
    VALUE = 4  # inside a member that goes out when it is complete
    SHUT = 5  # nothing more can be said before the end


class ArgumentStream:
    """The text of one arguments object, in pieces that are known to be strict JSON so far."""

    def __init__(self, schema: ToolSchema | None) -> None:
        self._schema = schema
        self._mode = _Mode.OPEN
        self._sent = StringIO()
        self._head: list[str] = []  # what stands in front of the value: white space, comma, key, colon
        self._key: list[str] = []
        self._value: list[str] = []
        self._in_string = False
        self._escaped = False
        self._depth = 0
        self._held = ""

    @property
    def sent(self) -> str:
        """All that has gone out."""
        return self._sent.getvalue()

    def feed(self, text: str) -> str:
        """What may go out now that ``text`` has come."""
        out: list[str] = []
        at = 0
        while at < len(text) and self._mode is not _Mode.SHUT:
            match self._mode:
                case _Mode.OPEN:
                    out.append("{")
                    self._mode = _Mode.KEY
                    at += 1
                case _Mode.KEY:
                    at = self._take_key(text, at, out)
                case _Mode.STRING:
                    at = self._take_string(text, at, out)
                case _Mode.QUOTE:
                    at = self._take_quote(text, at, out)
                case _Mode.VALUE:
                    at = self._take_value(text, at, out)
        piece = "".join(out)
        if piece:
            self._sent.write(piece)
        return piece

    def _take_key(self, text: str, at: int, out: list[str]) -> int:
        if self._in_string:
            at, ended = self._take_quoted(text, at, self._key)
            if ended:
                self._head.extend(self._key)
            return at
        char = text[at]
        if char == '"' and not self._key:
            self._in_string = True
            self._key.append(char)
        elif char == "}" and not self._key:
            self._mode = _Mode.SHUT
        elif char in ",: \t\n\r":
            self._head.append(char)
        else:
            return self._open_value(char, at, out)
        return at + 1

    def _open_value(self, char: str, at: int, out: list[str]) -> int:
        key = loads("".join(self._key))
        if char == '"' and (self._schema is None or self._schema.admits_string(key)):
            out.extend((*self._head, '"'))
            self._clear()
            self._mode = _Mode.STRING
            return at + 1
        self._mode = _Mode.VALUE
        return at

    def _clear(self) -> None:
        self._head, self._key, self._value = [], [], []

    def _take_string(self, text: str, at: int, out: list[str]) -> int:
        if self._escaped:
            self._escaped = False
            out.append("\\" + text[at])
            return at + 1
        found = _QUOTE_OR_ESCAPE.search(text, at)
        if found is None:
            out.append(text[at:])
            return len(text)
        out.append(text[at : found.start()])
        if found[0] == "\\":
            self._escaped = True
        else:
            self._held = '"'
            self._mode = _Mode.QUOTE
        return found.end()

    def _take_quote(self, text: str, at: int, out: list[str]) -> int:
        end = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        self._held += text[at:end]
        if end < len(text):
            if text[end] in ",}":
                out.append(self._held)
                self._mode = _Mode.KEY
            else:
                self._mode = _Mode.SHUT
        return end

    def _take_value(self, text: str, at: int, out: list[str]) -> int:
        if self._in_string:
            return self._take_quoted(text, at, self._value)[0]
        found = _STRUCTURE.search(text, at)
        if found is None:
            self._value.append(text[at:])
            return len(text)
        self._value.append(text[at : found.start()])
        char = found[0]
        if self._depth == 0 and char in ",}":
            self._end_value(out)
            return found.start()
        self._value.append(char)
        if char == '"':
            self._in_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
        return found.end()

    def _take_quoted(self, text: str, at: int, kept: list[str]) -> tuple[int, bool]:
        """More of a string that goes out later, up to an escape at most; whether the string has ended."""
        if self._escaped:
            self._escaped = False
            kept.append(text[at])
            return at + 1, False
        found = _QUOTE_OR_ESCAPE.search(text, at)
        end = found.end() if found else len(text)
        kept.append(text[at:end])
        if found:
            self._escaped = found[0] == "\\"
            self._in_string = self._escaped
        return end, not self._in_string

    def _end_value(self, out: list[str]) -> None:
        """A whole member: converted as it will be when all arguments are."""
        raw = "".join(self._value)
        value = raw.rstrip()
        member = "".join(self._key) + ": " + value
        if self._schema is not None:
            member = self._schema.coerce("{" + member + "}")[0][1:-1]
        out.extend((*self._head, member[len("".join(self._key)) + 2 :], raw[len(value) :]))
        self._clear()
        self._mode = _Mode.KEY

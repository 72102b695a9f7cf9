"""A strict JSON automaton that takes its text in pieces and says where a value ends or where it stops being JSON.

It decides what is structure and what is inside a string, so that a closing tag, a brace or a think mark in a string is
data. It builds no value: that is one call of a C parser when the whole text is there.
"""

from __future__ import annotations

import re
from enum import Enum

_IN_STRING = re.compile(r'["\\\x00-\x1f]')
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERAL = re.compile(r"[-+.0-9A-Za-z]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null", re.ASCII)
_ESCAPES = frozenset('"\\/bfnrt')
_HEX = frozenset("0123456789abcdefABCDEF")
_LONGEST_LITERAL = 20_000


class State(Enum):
    """How far a value has come."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"


class _Want(Enum):
    VALUE = 0
    VALUE_OR_END = 1
    KEY = 2
    KEY_OR_END = 3
    COLON = 4
    COMMA = 5


class JsonAutomaton:
    """One JSON object or list, in pieces. ``state`` is ``OPEN`` until it is complete or broken."""

    def __init__(self) -> None:
        self.state = State.OPEN
        self._stack: list[str] = []
        self._want = _Want.VALUE
        self._string = False
        self._key = False
        self._escape = 0  # 1: after a backslash; 2-5: hex digits still wanted after \u, plus one
        self._literal = ""

    def take(self, text: str, at: int) -> int:
        """Read ``text`` from ``at``; the index past the value's end, of the first wrong character, or ``len(text)``."""
        size = len(text)
        while at < size:
            if self._string:
                at = self._take_string(text, at)
            elif self._literal:
                at = self._take_literal(text, at)
            else:
                at = self._take_structure(text, at)
            if self.state is not State.OPEN:
                return at
        return size

    def _take_string(self, text: str, at: int) -> int:
        if self._escape:
            return self._take_escape(text, at)
        found = _IN_STRING.search(text, at)
        if found is None:
            return len(text)
        at = found.start()
        match text[at]:
            case '"':
                self._string = False
                if self._key:
                    self._want = _Want.COLON
                else:
                    self._value_done()
            case "\\":
                self._escape = 1
            case _:
                return self._fail(at)
        return at + 1

    def _take_escape(self, text: str, at: int) -> int:
        char = text[at]
        if self._escape == 1:
            if char == "u":
                self._escape = 5
            elif char in _ESCAPES:
                self._escape = 0
            else:
                return self._fail(at)
        elif char in _HEX:
            self._escape = 0 if self._escape == 2 else self._escape - 1
        else:
            return self._fail(at)
        return at + 1

    def _take_literal(self, text: str, at: int) -> int:
        end = _LITERAL.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        self._literal += text[at:end]
        if end == len(text) and len(self._literal) < _LONGEST_LITERAL:
            return end
        if not _SCALAR.fullmatch(self._literal):
            return self._fail(end)
        self._literal = ""
        self._value_done()
        return end

    def _take_structure(self, text: str, at: int) -> int:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        if at == len(text):
            return at
        char = text[at]
        want = self._want
        if want is _Want.COMMA:
            if char == ",":
                self._want = _Want.KEY if self._stack[-1] == "{" else _Want.VALUE
                return at + 1
            if (char == "}" and self._stack[-1] == "{") or (char == "]" and self._stack[-1] == "["):
                return self._close(at)
        elif want is _Want.COLON:
            if char == ":":
                self._want = _Want.VALUE
                return at + 1
        elif want is _Want.KEY or want is _Want.KEY_OR_END:
            if char == '"':
                self._string = self._key = True
                return at + 1
            if char == "}" and want is _Want.KEY_OR_END:
                return self._close(at)
        else:
            return self._take_value(char, text, at)
        return self._fail(at)

    def _take_value(self, char: str, text: str, at: int) -> int:
        if char in "{[":
            self._stack.append(char)
            self._want = _Want.KEY_OR_END if char == "{" else _Want.VALUE_OR_END
            return at + 1
        if char == "]" and self._want is _Want.VALUE_OR_END:
            return self._close(at)
        if not self._stack:
            return self._fail(at)
        if char == '"':
            self._string, self._key = True, False
            return at + 1
        if _LITERAL.match(text, at).end() > at:  # type: ignore[union-attr]  # it always matches
            return self._take_literal(text, at)
        return self._fail(at)

    def _close(self, at: int) -> int:
        self._stack.pop()
        self._value_done()
        return at + 1

    def _value_done(self) -> None:
        self._want = _Want.COMMA
        if not self._stack:
            self.state = State.DONE

    def _fail(self, at: int) -> int:
        self.state = State.FAILED
        return at

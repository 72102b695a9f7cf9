"""Relaxed literals to JSON text: Python's, and objects whose keys and strings are written otherwise than in JSON."""

from __future__ import annotations

import re
from collections.abc import Callable

from proxy.core.arguments.jsontext import dumps

PYTHON_QUOTES = ("'''", '"""', "'", '"')

_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"[^,:\[\]{}()]*")
_KEY = re.compile(r"[^,:\[\]{}()'\"]+?(?=\s*:)")
_JSON = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_DIGITS = re.compile(r"([-+]?)(0|[1-9][\d_]*)?(?:\.(\d[\d_]*)?)?([eE][-+]?\d+)?", re.ASCII)
_NAMES = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "/": "/",
    "\\": "\\", "'": "'", '"': '"', "\n": "",
}  # fmt: skip
_NEXT = re.compile(r"""\s*(?:[\w.-]+\s*[=(:]|["'\[{(\d-]|True|False|None|true|false|null)""")
_DEEPEST = 100


class Relaxed:
    """Reads values out of ``text``. Everything raises ``ValueError`` where none can be read.

    ``quotes`` open and close strings, longer ones first; the ones of Python know its escapes. ``bare``: a value without
    quotes that is no literal is a string. ``forgiving``: a quote counts as the end of a string only if what follows it
    fits what is open there.
    """

    def __init__(self, text: str, quotes: tuple[str, ...], *, bare: bool = False, forgiving: bool = False) -> None:
        self.text = text
        self.open: list[str] = []  # the brackets that are to be closed, innermost last
        self._quotes = quotes
        self._bare = bare
        self._forgiving = forgiving

    def space(self, at: int) -> int:
        """The index past white space."""
        return _SPACE.match(self.text, at).end()  # type: ignore[union-attr]  # it always matches

    def value(self, at: int) -> tuple[str, int]:
        """The JSON text of the value at ``at``, and the index past it."""
        at = self.space(at)
        for quote in self._quotes:
            if self.text.startswith(quote, at):
                string, at = self._string(at, quote)
                return dumps(string), at
        match self.text[at : at + 1]:
            case "{":
                pairs: dict[str, str] = {}
                at = self.items(at, lambda here: self._pair(here, pairs))
                return "{" + ", ".join(f"{dumps(key)}: {value}" for key, value in pairs.items()) + "}", at
            case "[" | "(":
                values: list[str] = []
                at = self.items(at, lambda here: self._element(here, values))
                return "[" + ", ".join(values) + "]", at
        return self._word(at)

    def items(self, at: int, item: Callable[[int], int]) -> int:
        """Read what stands in the brackets that open at ``at``, separated by commas; the index past them."""
        closer = _BRACKETS[self.text[at]]
        self.open.append(closer)
        if len(self.open) > _DEEPEST:
            raise ValueError("nested too deeply")
        at = self.space(at + 1)
        while not self.text.startswith(closer, at):
            at = self.space(item(at))
            if self.text.startswith(",", at):
                at = self.space(at + 1)
            elif not self.text.startswith(closer, at):
                raise ValueError(f"no {closer} at {at}")
        self.open.pop()
        return at + len(closer)

    def _element(self, at: int, values: list[str]) -> int:
        value, at = self.value(at)
        values.append(value)
        return at

    def _pair(self, at: int, pairs: dict[str, str]) -> int:
        key, at = self._key(at)
        at = self.space(at)
        if not self.text.startswith(":", at):
            raise ValueError(f"no colon at {at}")
        if key in pairs:
            raise ValueError("a key is given twice")
        pairs[key], at = self.value(at + 1)
        return at

    def _key(self, at: int) -> tuple[str, int]:
        for quote in self._quotes:
            if self.text.startswith(quote, at):
                return self._string(at, quote)
        found = _KEY.match(self.text, at)
        if found is None:
            raise ValueError(f"no key at {at}")
        return found[0], found.end()

    def _word(self, at: int) -> tuple[str, int]:
        found = _BARE.match(self.text, at)
        assert found is not None  # noqa: S101 (it always matches)
        word = found[0].strip()
        literal = word if _JSON.fullmatch(word) else _NAMES.get(word) or _number(word)
        if literal is None and self._bare and word and "\n" not in word:
            literal = dumps(word)
        if literal is None:
            raise ValueError(f"no value at {at}")
        return literal, found.end()

    def _string(self, at: int, quote: str) -> tuple[str, int]:
        start = at + len(quote)
        escaped = quote in PYTHON_QUOTES
        end = self.text.find(quote, start)
        while end >= 0:
            if escaped and _is_escaped(self.text, start, end):
                end = self.text.find(quote, end + 1)
            elif self._forgiving and escaped and not self._fits_behind(end + len(quote)):
                end = self.text.find(quote, end + len(quote))
            else:
                raw = self.text[start:end]
                return (_ESCAPE.sub(_unescaped, raw) if escaped else raw), end + len(quote)
        raise ValueError("a string is not closed")

    def _fits_behind(self, at: int) -> bool:
        """Whether the text goes on at ``at`` as it must behind a string there."""
        at = self.space(at)
        if self.text.startswith(":", at):
            return self.open[-1:] == ["}"]
        open_ = list(self.open)
        while open_ and self.text.startswith(open_[-1], at):
            open_.pop()
            at = self.space(at + 1)
        if at == len(self.text):
            return not open_
        return self.text[at] == "," and _NEXT.match(self.text, at + 1) is not None


def _is_escaped(text: str, start: int, at: int) -> bool:
    first = at
    while first > start and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def _unescaped(found: re.Match[str]) -> str:
    octal, short, code, long, other = found.groups()
    if octal:
        return chr(int(octal, 8))
    if short or code or long:
        point = int(short or code or long, 16)
        return chr(point) if point <= 0x10FFFF else found[0]
    return _ESCAPES.get(other, found[0])


def _number(word: str) -> str | None:
    """A number that Python writes and JSON does not (``+1``, ``1_000``, ``.5``, ``5.``) as JSON text."""
    found = _DIGITS.fullmatch(word)
    if found is None or (found[2] is None and found[3] is None):
        return None
    sign, whole, fraction, exponent = (group or "" for group in found.groups())
    text = sign.replace("+", "") + (whole.replace("_", "") or "0")
    if "." in word:
        text += "." + (fraction.replace("_", "") or "0")
    return text + exponent

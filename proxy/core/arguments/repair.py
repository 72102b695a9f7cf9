"""Text that is almost JSON, read where it has one reading, refused where it has none or more than one.

What is mended: raw control characters, single quotes, quotes inside a string, escapes that are none, trailing commas,
comments, bare keys, the literals of Python and JavaScript, brackets missing or left over at the very end, a code fence
around everything, quotes escaped outside of strings. No value is made up, and none is cut where it may have gone on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from proxy.core.arguments.ends import ONLY_CLOSERS, SPACE, STRING, end_of_string
from proxy.core.arguments.jsontext import loads
from proxy.core.arguments.strings import ESCAPE, INNER, NoReadingError, has_escapes, inside

_FENCE = re.compile(r"```[\w-]*+")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.+-])|[A-Za-z]++(?![\w.(\"'])")
_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_JSON_WORDS = frozenset({"true", "false", "null"})
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$]*+")
_ESCAPED = re.compile(r'\\"((?:[^"\\]|\\(?:[bfnrt/]|u[0-9a-fA-F]{4}))*+)\\"')
_DEEPEST = 1_000  # about as deep as strict JSON is read
_MOST_INNER = 8  # strings with quotes inside: each costs a look at all that follows

_COMMA = "a trailing comma was left out"
_SINGLE = "single quotes were read as double ones"
_LITERAL = "a literal of Python or JavaScript was read as JSON"
_MISSING = "closing brackets that were missing at the end were added"
_EXTRA = "closing brackets that were left over at the end were left out"
_FENCED = "the code fence around the JSON was left out"
_OVERESCAPED = "backslashes in front of the quotes around strings were left out"
_BARE = "keys without quotes were quoted"
_COMMENT = "comments were left out"
_SEVERAL = "several values stood side by side"


class Repaired(Struct, frozen=True):
    """The strict JSON that a text was taken for.

    ``texts`` are the values, one or, side by side, several; ``repairs`` says what was done, a sentence without a full
    stop for each kind. ``completed``: closing brackets were added, so the text may have been cut.
    """

    texts: tuple[str, ...]
    repairs: tuple[str, ...] = ()
    completed: bool = False


def repair(text: str) -> Repaired | None:
    """The only reading of ``text``: one value, or objects and arrays with white space, ``,`` or ``;`` between them.

    Strict JSON comes back as it is. None when there is no reading, or more than one. Never raises.
    """
    try:
        loads(text)
    except ValueError:
        pass
    else:
        return Repaired((text,))
    bare = text.strip()
    fence = _FENCE.match(bare)
    mender = _Mender(bare[fence.end() :].removesuffix("```") if fence else bare)
    try:
        texts = mender.values()
        for value in texts:
            loads(value)
    except (NoReadingError, ValueError):
        return None
    if ESCAPE in mender.repairs and has_escapes(text):
        return None  # ``C:\\docs`` and ``C:\\new``: nobody knows whether the writer escaped at all
    repairs = [_FENCED] if fence else []
    return Repaired(tuple(texts), tuple(dict.fromkeys([*repairs, *mender.repairs])), _MISSING in mender.repairs)


class _Mender:
    """Reads from left to right, without recursion, and writes what it read. Raises ``NoReadingError``."""

    def __init__(self, text: str) -> None:
        self.repairs: dict[str, None] = {}
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._closers: list[str] = []  # of the open containers, innermost last
        self._bare: list[bool | None] = []  # whether their keys are without quotes, None until the first
        self._inner = 0
        self._later_item = False

    def values(self) -> list[str]:
        """The strict text of every value."""
        texts: list[str] = []
        self._space()
        while True:
            start = self._at
            self._out = []
            self._value()
            texts.append("".join(self._out))
            self._out = []
            self._space()
            if ONLY_CLOSERS.match(self._text, self._at):
                if self._at < len(self._text):
                    self._unbalanced(_EXTRA)
                return texts
            if self._next() in ",;":
                self._at += 1
                self._space()
                if self._at == len(self._text):
                    self._did(_COMMA)
                    return texts
            if self._next() not in ("{", "[") or self._text[start] not in "{[":
                raise NoReadingError
            self._did(_SEVERAL)

    def _value(self) -> None:
        """One whole value: scalars, and containers until the outermost is closed."""
        self._begin()
        while self._closers:
            self._space()
            closer = self._closers[-1]
            char = self._next()
            if char == ",":
                self._comma(closer)
            elif char == closer:
                self._close()
            else:
                self._end_early()

    def _begin(self) -> None:
        """A value, or the opening of containers up to the first value in them or the closing of an empty one."""
        while True:
            char = self._next()
            if char not in ("{", "["):
                return self._scalar(char)
            self._write(char)
            self._later_item = False
            self._closers.append("}" if char == "{" else "]")
            self._bare.append(None)
            if len(self._closers) > _DEEPEST:
                raise NoReadingError
            self._space()
            if self._next() == self._closers[-1]:
                return self._close()
            if char == "{":
                self._key()

    def _comma(self, closer: str) -> None:
        comma = len(self._out)
        self._write(",")
        self._space()
        if self._next() in ("}", "]"):
            self._out[comma] = ""
            self._did(_COMMA)
            return
        self._later_item = closer == "]"
        if closer == "}":
            self._key()
        self._begin()

    def _close(self) -> None:
        self._write(self._closers.pop())
        self._bare.pop()

    def _end_early(self) -> None:
        """The closing brackets at the very end, where they are not those that are awaited."""
        if not ONLY_CLOSERS.match(self._text, self._at):
            raise NoReadingError
        there = (char for char in self._text[self._at :] if char in "}]")
        awaited = self._closers[::-1]
        if not _is_part(there, awaited):
            raise NoReadingError
        self._unbalanced(_MISSING)
        self._at = len(self._text)
        self._out.extend(awaited)
        self._closers.clear()

    def _key(self) -> None:
        char = self._next()
        if char in ('"', "'"):
            found = STRING[char].match(self._text, self._at)
            if found is None:
                raise NoReadingError
            self._string(found.end() - 1)
        elif char == "\\":
            self._escaped()
        else:
            self._bare_key()
        bare = char not in ('"', "'", "\\")
        if self._bare[-1] not in (None, bare):
            raise NoReadingError  # what looks like a key may be the inside of a string
        self._bare[-1] = bare
        self._space()
        if self._next() != ":":
            raise NoReadingError
        self._write(":")
        self._space()

    def _bare_key(self) -> None:
        found = _BARE_KEY.match(self._text, self._at)
        if found is None or found[0] == "__proto__":  # which is no member in JavaScript
            raise NoReadingError
        self._out.append(f'"{found[0]}"')
        self._at = found.end()
        self._did(_BARE)

    def _scalar(self, char: str) -> None:
        if char == '"' or char == "'":
            end, quotes_inside = end_of_string(self._text, self._at, self._closers, later_item=self._later_item)
            if quotes_inside:
                self._inner += 1
                self._did(INNER)
                if self._inner > _MOST_INNER:
                    raise NoReadingError
            self._string(end)
        elif char == "\\":
            self._escaped()
        else:
            self._literal()

    def _string(self, end: int) -> None:
        """The string from here to the quote at ``end``."""
        quote = self._text[self._at]
        content, done = inside(self._text[self._at + 1 : end], quote)
        if quote == "'":
            self._did(_SINGLE)
        for repair in sorted(done):
            self._did(repair)
        self._out.append(f'"{content}"')
        self._at = end + 1

    def _escaped(self) -> None:
        """A string between ``\\"`` and ``\\"``. Escapes inside must mean the same before and after that is undone."""
        found = _ESCAPED.match(self._text, self._at)
        if found is None:
            raise NoReadingError
        self._out.append(f'"{inside(found[1], chr(34))[0]}"')
        self._at = found.end()
        self._did(_OVERESCAPED)

    def _literal(self) -> None:
        found = _SCALAR.match(self._text, self._at)
        if found is None:
            raise NoReadingError
        word = found[0]
        if word[0].isalpha() and word not in _JSON_WORDS:
            if word not in _WORDS:
                raise NoReadingError
            word = _WORDS[word]
            self._did(_LITERAL)
        self._out.append(word)
        self._at = found.end()

    def _space(self) -> None:
        end = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it always matches
        space = self._text[self._at : end]
        if "/" in space:
            self._did(_COMMENT)
            space = "\n" if "\n" in space else " "
        self._out.append(space)
        self._at = end

    def _unbalanced(self, how: str) -> None:
        if self._inner:
            raise NoReadingError  # then a bracket may as well be the inside of a string
        self._did(how)

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _write(self, char: str) -> None:
        self._out.append(char)
        self._at += 1

    def _did(self, repair: str) -> None:
        self.repairs[repair] = None


def _is_part(some: Iterable[str], of: list[str]) -> bool:
    """Whether ``some`` is what is left of ``of`` when elements are taken out."""
    rest = iter(of)
    return all(char in rest for char in some)

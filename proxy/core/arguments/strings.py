"""What stands between the quotes of a string that is no strict JSON, as the inside of a JSON string."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"""\\(?:u[0-9a-fA-F]{4}|[\s\S])|["\x00-\x1f]""")
_BY_MEANING = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"'}
_KNOWN = frozenset('"\\/bfnrt')
_PYTHON_KNOWS = frozenset("xUNav01234567\n")

CONTROL = "raw control characters in a string were escaped"
ESCAPE = "a backslash that begins no escape was kept as a backslash"
SINGLE = "a single quote in a string needed no backslash"
INNER = "quotes inside a string were escaped"


class NoReadingError(Exception):
    """The text has no reading, or more than one."""


def inside(raw: str, quote: str) -> tuple[str, frozenset[str]]:
    """``raw``, which stood between two ``quote`` characters, for between two double ones, and what was done to it.

    An escape that JSON does not know keeps its backslash (``\\d`` means ``\\d``), except that of a single quote, which
    is one in every language that has it. Between single quotes raises ``NoReadingError`` for one that Python knows.
    """
    done: set[str] = set()

    def mended(found: re.Match[str]) -> str:
        special = found[0]
        if special == '"':
            if quote == '"':
                done.add(INNER)
            return '\\"'
        if special[0] != "\\":
            done.add(CONTROL)
            return _control(special)
        if len(special) > 2 or special[1] in _KNOWN:
            return special
        if special[1] == "'":
            if quote == '"':
                done.add(SINGLE)
            return "'"
        if quote == "'" and special[1] in _PYTHON_KNOWS:
            raise NoReadingError
        done.add(ESCAPE)
        return "\\\\" + (_control(special[1]) if special[1] < " " else special[1])

    return _SPECIAL.sub(mended, raw), frozenset(done)


def has_escapes(text: str) -> bool:
    """Whether a backslash in ``text`` begins an escape that JSON knows, other than that of a quote."""
    return any(len(found) > 2 or found[1] in _KNOWN - {'"'} for found in _SPECIAL.findall(text) if found[0] == "\\")


def _control(char: str) -> str:
    return _BY_MEANING.get(char) or f"\\u{ord(char):04x}"

"""What stands between the quotes of a string that is no strict JSON, as the inside of a JSON string."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"""\\(?:u[0-9a-fA-F]{4}|[\s\S])|["\x00-\x1f]""")
_BY_MEANING = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"'}
_KNOWN = frozenset('"\\/bfnrt')
_PYTHON_ONLY = re.compile(r"\\[xUNav0-7\n]")

CONTROL = "raw control characters in a string were escaped"
ESCAPE = "a backslash that begins no escape was kept as a backslash"
INNER = "quotes inside a string were escaped"


class NoReadingError(Exception):
    """The text has no reading, or more than one."""


def inside(raw: str, quote: str) -> tuple[str, frozenset[str]]:
    """``raw``, which stood between two ``quote`` characters, for between two double ones, and what was done to it.

    An escape that JSON does not know keeps its backslash (``\\d`` means ``\\d``). Where another backslash of the string
    does begin an escape, nobody knows whether the writer escaped at all (``C:\\docs\\new``): raises ``NoReadingError``.
    """
    done: set[str] = set()
    escapes = [found for found in _SPECIAL.findall(raw) if found[0] == "\\"]
    unknown = {found for found in escapes if not _is_escape(found, quote)}
    if unknown:
        if any(found not in ('\\"', "\\'") for found in escapes if found not in unknown):
            raise NoReadingError
        if quote == "'" and any(map(_PYTHON_ONLY.match, unknown)):
            raise NoReadingError
        done.add(ESCAPE)

    def mended(found: re.Match[str]) -> str:
        special = found[0]
        if special == '"':
            if quote == '"':
                done.add(INNER)
            return '\\"'
        if special[0] != "\\":
            done.add(CONTROL)
            return _control(special)
        if special == "\\'" and quote == "'":
            return "'"
        if special in unknown:
            last = special[1]
            return "\\\\" + (_control(last) if last < " " else last)
        return special

    return _SPECIAL.sub(mended, raw), frozenset(done)


def _is_escape(found: str, quote: str) -> bool:
    return len(found) > 2 or found[1] in _KNOWN or found[1] == quote


def _control(char: str) -> str:
    return _BY_MEANING.get(char) or f"\\u{ord(char):04x}"

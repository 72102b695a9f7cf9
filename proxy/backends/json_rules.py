r"""JSON values as GBNF rules, bounded in every direction so that a small model comes to an end.

White space is fixed to ``", "`` and ``": "``, as in the calls that the prompt shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import groupby
from typing import TypeAlias

from proxy.backends.gbnf import MOST_REPETITIONS, choice, inside_class, literal, repeat, sequence

LONGEST_STRING = MOST_REPETITIONS
"""Characters of a string."""

LONGEST_LIST = 64
"""Items of an array, and members of an object whose keys no schema names."""

LONGEST_KEY = 64
"""Characters of a key that no schema names."""

INTEGER_DIGITS = 18
"""Digits before the point: every such integer fits 64 bits, and the ids of most services are that long at most."""

DECIMALS = 6
"""Digits after the point of a number that has bounds."""

_TOLD_APART = 3
"""Characters within which a key that no schema names must differ from those that one names."""

_MORE = f"{{0,{LONGEST_LIST - 1}}}"
_PLAIN = r'\x00-\x1f\x7f"\\'
"""Control characters, quote and backslash, as the beginning of a negated class."""

RULES: Mapping[str, str] = {
    "char": rf'[^{_PLAIN}] | "\\" (["\\bfnrt] | "u" unit)',
    # A UTF-16 unit that is no half of a surrogate pair; what lies beyond is written as it is.
    "unit": "[0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex",
    "hex": "[0-9a-fA-F]",
    "string": rf'"\"" char{{0,{LONGEST_STRING}}} "\""',
    "key": rf'"\"" [^{_PLAIN}] rest "\""',
    "rest": f"[^{_PLAIN}]{{0,{LONGEST_KEY - _TOLD_APART}}}",
    "integer": f'"-"? ("0" | [1-9] [0-9]{{0,{INTEGER_DIGITS - 1}}})',
    "number": f'integer ("." [0-9]{{1,{INTEGER_DIGITS}}})? ([eE] [-+]? [0-9]{{1,2}})?',
    "boolean": '"true" | "false"',
    "null": '"null"',
    "scalar": "string | number | boolean | null",
    # Any value: two levels of brackets in it, since a small model would open them for ever.
    "json": f'scalar | "[" (inner (", " inner){_MORE})? "]" | "{{" (branch (", " branch){_MORE})? "}}"',
    "inner": f'scalar | "[" (scalar (", " scalar){_MORE})? "]" | "{{" (leaf (", " leaf){_MORE})? "}}"',
    "branch": 'key ": " inner',
    "leaf": 'key ": " scalar',
    "object": f'"{{" (member (", " member){_MORE})? "}}"',
    "member": 'key ": " json',
    # RFC 3339. The 29th of February is left in for every year.
    "date": '[12] [0-9]{3} "-" ("02-" ("0" [1-9] | [12] [0-9])'
    ' | ("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30")'
    ' | ("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]))',
    "clock": '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9]',
    "time": 'clock ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [+-] clock)',
    "uuid": 'hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12}',
}
"""Rules that any grammar may refer to."""

FORMATS: Mapping[str, str] = {
    "date": r'"\"" date "\""',
    "time": r'"\"" time "\""',
    "date-time": r'"\"" date "T" time "\""',
    "uuid": r'"\"" uuid "\""',
}
"""Strings of a ``format``, as expressions."""


def string(low: int, high: int) -> str:
    """A string of ``low`` to ``high`` characters."""
    return "string" if (low, high) == (0, LONGEST_STRING) else sequence(r'"\""', repeat("char", low, high), r'"\""')


def other_key(names: Iterable[str]) -> str:
    """A key that differs from each of ``names`` within its first few characters.

    Keys that differ only later are left out, for the grammar's size. ``names`` hold no escapes; neither does the key.
    """
    return sequence(r'"\""', _other_than(list(names), _TOLD_APART), r'"\""')


def _other_than(names: list[str], within: int) -> str:
    firsts = sorted({name[0] for name in names if name})
    alternatives = [f"[^{_PLAIN}{inside_class(firsts)}] rest"]
    if within > 1:
        for first in firsts:
            tails = [name[1:] for name in names if name.startswith(first)]
            inside = _other_than(tails, within - 1)
            alternatives.append(sequence(literal(first), inside if "" in tails else f"{inside}?"))
    return f"({' | '.join(alternatives)})"


def between(
    low: Decimal | None, high: Decimal | None, *, open_low: bool = False, open_high: bool = False, decimals: int = 0
) -> str | None:
    """A number from ``low`` to ``high`` with at most so many ``decimals``; None when there is none.

    ``open_low`` / ``open_high``: the bound itself is not allowed. No number has more than :data:`INTEGER_DIGITS` digits
    before the point, whatever the bounds.
    """
    limit = Decimal(10**INTEGER_DIGITS)
    if low is None or low <= -limit:
        low, open_low = -limit, True
    if high is None or high >= limit:
        high, open_high = limit, True
    if low >= limit or high <= -limit:
        return None
    alternatives: list[str] = []
    for places in range(decimals + 1):
        step = Decimal(1).scaleb(-places)
        first, last = low.quantize(step, ROUND_CEILING), high.quantize(step, ROUND_FLOOR)
        # In units of the last decimal.
        least = int(first.scaleb(places)) + (open_low and first == low)
        most = int(last.scaleb(places)) - (open_high and last == high)
        if least < 0:
            alternatives += [f'"-" {text}' for text in _magnitudes(max(0, -most), -least, places)]
        alternatives += _magnitudes(max(0, least), most, places)
    return choice(alternatives) if alternatives else None


def _magnitudes(low: int, high: int, places: int) -> Iterator[str]:
    """Expressions for ``low`` to ``high``, both counted in units of the last of so many decimal ``places``."""
    shortest, longest = places + 1, places + INTEGER_DIGITS
    whole: list[int] = []  # the lengths of which every number is in range
    for length in range(shortest, longest + 1):
        smallest, largest = 0 if length == shortest else 10 ** (length - 1), 10**length - 1
        least, most = max(low, smallest), min(high, largest)
        if length > shortest and (least, most) == (smallest, largest):
            whole.append(length)
        elif least <= most:
            for digits in _same_length(f"{least:0{length}}", f"{most:0{length}}"):
                yield _with_point(_runs(digits[: length - places]), _runs(digits[length - places :]))
    if whole:
        before = sequence("[1-9]", repeat("[0-9]", whole[0] - shortest, whole[-1] - shortest))
        yield _with_point(before, repeat("[0-9]", places, places))


_Digits: TypeAlias = tuple[tuple[str, str], ...]
"""The digits of some numbers, each from a lowest to a highest."""


def _same_length(low: str, high: str) -> list[_Digits]:
    """Alternatives that together are the numbers from ``low`` to ``high``, which have equally many digits."""
    if not low:
        return [()]
    first, last, rest = low[0], high[0], len(low) - 1
    if first == last:
        return [((first, first), *tail) for tail in _same_length(low[1:], high[1:])]
    zeros, nines = "0" * rest, "9" * rest
    beginning: list[_Digits] = []
    ending: list[_Digits] = []
    if low[1:] != zeros:
        beginning = [((first, first), *tail) for tail in _same_length(low[1:], nines)]
        first = chr(ord(first) + 1)
    if high[1:] != nines:
        ending = [((last, last), *tail) for tail in _same_length(zeros, high[1:])]
        last = chr(ord(last) - 1)
    middle: list[_Digits] = [((first, last), *[("0", "9")] * rest)] if first <= last else []
    return beginning + middle + ending


def _runs(digits: _Digits) -> str:
    parts = []
    for (low, high), same in groupby(digits):
        count = len(list(same))
        parts.append(literal(low * count) if low == high else repeat(f"[{low}-{high}]", count, count))
    return " ".join(parts)


def _with_point(before: str, after: str) -> str:
    return sequence(before, '"."', after) if after else before

r"""GBNF, llama.cpp's notation for grammars, as text.

An *expression* is text that can stand in a sequence: alternatives are always in brackets. A *rule* is a name (letters,
digits and ``-``) and what it stands for. Within one rule a repetition is never repeated again: llama.cpp multiplies the
counts and refuses 2,000.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby, takewhile

MOST_REPETITIONS = 1999
"""Stock builds of llama.cpp refuse a repetition of 2,000 and more."""

_MAX_NESTING = 24
"""Brackets within brackets that :func:`one_of` writes: llama.cpp reads them by recursion."""

_ESCAPES = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_ESCAPES_IN_CLASS = {"\\": r"\\", "]": r"\]", "^": r"\x5e", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_UNSAFE = re.compile(r'["\\\x00-\x1f]')
_NAME = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|([a-zA-Z][a-zA-Z0-9-]*)')
_REPEATED = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|\{(?:\d+,)?(\d+)\}')


def literal(text: str) -> str:
    """Exactly ``text``."""
    return '"' + _UNSAFE.sub(lambda found: _ESCAPES.get(found[0]) or f"\\x{ord(found[0]):02x}", text) + '"'


def inside_class(chars: Iterable[str]) -> str:
    """``chars`` as they may stand at the end of a class.

    What all readers of the notation take alike: xgrammar reads on in ``\\x3c`` when more hexadecimal digits follow,
    llguidance knows no ``\\u003c``, and llama.cpp no ``\\-``.
    """
    written = (_ESCAPES_IN_CLASS.get(char, char) for char in chars)
    return "".join(sorted(written, key=lambda text: (text == "-", text.startswith("\\x"))))


def sequence(*expressions: str) -> str:
    """One after another; empty ones are left out."""
    return " ".join(filter(None, expressions))


def choice(expressions: Iterable[str]) -> str:
    """One of ``expressions``, of which there must be one at least."""
    alternatives = list(dict.fromkeys(expressions))
    return alternatives[0] if len(alternatives) == 1 else f"({' | '.join(alternatives)})"


def repeat(expression: str, low: int, high: int) -> str:
    """``low`` to ``high`` times ``expression``, which is a single name, literal, class or bracket."""
    if low == high:
        return "" if high == 0 else expression if high == 1 else f"{expression}{{{high}}}"
    return f"{expression}?" if (low, high) == (0, 1) else f"{expression}{{{low},{high}}}"


def separated(item: str, low: int, high: int) -> str:
    """``low`` to ``high`` times ``item``, which is a single name, with ``", "`` between them."""
    if high == 0:
        return ""
    some = sequence(item, repeat(f'(", " {item})', max(low - 1, 0), high - 1))
    return some if low else f"({some})?"


def one_of(texts: Mapping[str, str], depth: int = 0) -> str:
    """One of the keys of ``texts``, followed by the expression that it maps to (``""`` for nothing).

    Common beginnings are written once: llama.cpp's cost per token grows with the alternatives that are still open (500
    of them cost it more than a small model itself).
    """
    alternatives = []
    for _, same in groupby(sorted(texts), key=lambda text: text[:1]):
        group = list(same)
        if len(group) == 1 or depth >= _MAX_NESTING:
            alternatives += [sequence(literal(text), texts[text]) for text in group]
        else:
            start = _common_start(group[0], group[-1])
            rest = one_of({text[len(start) :]: texts[text] for text in group}, depth + 1)
            alternatives.append(sequence(literal(start), rest))
    return choice(alternatives)


def _common_start(first: str, last: str) -> str:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(char for char, _ in pairs)


def without(marker: str, name: str) -> dict[str, str]:
    """Rules by which ``name`` is any text that does not hold ``marker``.

    It has two characters at least, and the first is nowhere else in it.
    """
    others = f"[^{inside_class(marker[0])}]*"
    states = [f"{name}-{matched}" for matched in range(1, len(marker))]
    rules = {name: f"{others} ({literal(marker[0])} {states[0]})*"}
    for state, char, then in zip(states, marker[1:], [*states[1:], ""], strict=True):
        broken = f"[^{inside_class(marker[0] + char)}] {others}"
        rules[state] = f"({broken} | {literal(char)} {then})?" if then else f"({broken})?"
    return rules


def cost(expression: str) -> int:
    """What ``expression`` costs the engine, roughly in elements: its text, and every repetition written out."""
    return len(expression) + sum(int(found[1]) for found in _REPEATED.finditer(expression) if found[1])


def write(rules: Mapping[str, str], library: Mapping[str, str]) -> str:
    """The grammar whose first rule is ``root``: of ``rules`` and ``library`` those that it needs, a line each."""
    needed: dict[str, str] = {}
    waiting = ["root"]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = rules[name] if name in rules else library[name]
            waiting += reversed([found[1] for found in _NAME.finditer(needed[name]) if found[1]])
    return "".join(f"{name} ::= {expression}\n" for name, expression in needed.items())

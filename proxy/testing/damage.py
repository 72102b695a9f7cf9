"""The damage that real models do to a call, as a table of named kinds.

Each kind takes a text to one that is damaged, at a place that is ``pick``ed of those where it can be, and to None where
it would change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

Pick: TypeAlias = Callable[[int], int]
"""A number below the one that is given, which is at least 1."""

Damage: TypeAlias = Callable[[str, Pick], str | None]


def _one(pattern: str, instead: str) -> Damage:
    """Replace one match."""
    places = re.compile(pattern, re.DOTALL)

    def damage(text: str, pick: Pick) -> str | None:
        found = [*places.finditer(text)]
        if not found:
            return None
        match = found[pick(len(found))]
        return text[: match.start()] + match.expand(instead) + text[match.end() :]

    return damage


def _every(*pairs: tuple[str, str]) -> Damage:
    """Replace each text of ``pairs`` by its other, all at once."""
    instead = dict(pairs)
    places = re.compile("|".join(map(re.escape, instead)))

    def damage(text: str, pick: Pick) -> str | None:
        changed = places.sub(lambda match: instead[match[0]], text)
        return None if changed == text else changed

    return damage


def _last(pattern: str) -> Damage:
    """Leave out the last match."""
    places = re.compile(pattern, re.DOTALL)

    def damage(text: str, pick: Pick) -> str | None:
        found = [*places.finditer(text)]
        return text[: found[-1].start()] + text[found[-1].end() :] if found else None

    return damage


def _around(before: str, after: str) -> Damage:
    return lambda text, pick: f"{before}{text}{after}" if text else None


def _cut_off(text: str, pick: Pick) -> str | None:
    return text[: pick(len(text))] if text else None


def _doubled(text: str, pick: Pick) -> str | None:
    return text + text if text else None


_TAG = r"<[^<>\n]{1,80}>|\[/?[A-Z_]{4,20}\]"

DAMAGES: Mapping[str, Damage] = MappingProxyType(
    {
        "missing-closer": _last(_TAG),
        "missing-opener": _one(rf"\A((?:(?!{_TAG}).)*)(?:{_TAG})", r"\1"),
        "doubled-opener": _one(rf"\A((?:(?!{_TAG}).)*)({_TAG})", r"\1\2\2"),
        "lost-tag": _one(_TAG, ""),
        "missing-brace": _last(r"[}\])]"),
        "extra-brace": _one(r"(?<=})", "}"),
        "doubled-braces": _every(("{", "{{"), ("}", "}}")),
        "trailing-comma": _one(r"(?<![\s,{\[])\s*(?=[}\])])", ","),
        "missing-comma": _one(r",(?= ?[\"'{\[])", ""),
        "single-quotes": _every(('"', "'")),
        "smart-quotes": _one(r'"([^"\n]*)"', "“\\1”"),
        "unquoted-key": _one(r'"(\w+)":', r"\1:"),
        "lost-quote": _one(r'"', ""),
        "escaped-quotes": _every(('"', '\\"')),
        "python-literals": _every((": true", ": True"), (": false", ": False"), (": null", ": None")),
        "raw-line-breaks": _every(("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r")),
        "raw-control": _one(r"(?<=\w)(?=\w)", "\x0b"),
        "fence": _around("```json\n", "\n```"),
        "fence-left-open": _around("```\n", ""),
        "comment": _one(r"(?<=,)\s", " // as asked\n"),
        "ellipsis": _one(r"(?<=[\[,]) ?(?=[\"{\d])", "... "),
        "entities": _every(('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")),
        "cut-off": _cut_off,
        "said-twice": _doubled,
        "chatter": _around("Sure! ", "\nLet me know if you need anything else."),
        "end-of-turn": _around("", "<|im_end|>"),
        "made-up-result": _around("", "\n<tool_response>\n{}\n</tool_response>\n"),
    }
)

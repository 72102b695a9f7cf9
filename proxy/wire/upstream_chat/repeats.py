"""The tokens of a stream differ from each other in one string: where that stands is learned from one of them.

Whatever stands around the string is compared character for character with a chunk that was read as JSON, and what
stands in between is one string. So it is what JSON would have given, at a fraction of the cost.
"""

from __future__ import annotations

import json
import re

_CONTENT = re.compile(r'"content"\s*:\s*"')
_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
_STRING = re.compile(r'(?:[^"\\\x00-\x1f\ud800-\udfff]++|\\["\\/bfnrt])++')
_MOST_MISSES = 16
"""Chunks in a row that are like none before them, after which nothing is learned any more."""


class Repeats:
    """The tokens of one stream."""

    __slots__ = ("_after", "_before", "_misses")

    def __init__(self) -> None:
        self._before = ""
        self._after = ""
        self._misses = 0

    def text(self, data: str) -> str | None:
        """The text of a chunk that is like the one that was learned from, None if it has to be read as JSON."""
        before, after = self._before, self._after
        if not before or not data.startswith(before) or not data.endswith(after):
            return None
        found = _STRING.fullmatch(data, len(before), len(data) - len(after))
        if found is None:
            return None
        self._misses = 0
        text = found[0]
        return str(json.loads(f'"{text}"')) if "\\" in text else text

    def learn(self, data: str, text: str) -> None:
        """The chunk ``data`` was read as JSON, and says ``text`` and nothing else."""
        if self._misses >= _MOST_MISSES or data.count('"content"') != 1 or not _PLAIN.fullmatch(text):
            return
        self._misses += 1
        found = _CONTENT.search(data)
        if found is not None and data.startswith(text + '"', found.end()):
            self._before, self._after = data[: found.end()], data[found.end() + len(text) :]

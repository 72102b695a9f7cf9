"""The tokens of a stream differ from each other in one string: where that stands is learned from one of them.

Whatever stands around the text is compared byte for byte with a chunk that was read as JSON, and a text that is taken
holds neither quotes nor escapes. So it is what JSON would have given, at a fraction of the cost.
"""

from __future__ import annotations

import re

_CONTENT = re.compile(r'"content"\s*:\s*"')
_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
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
        found = _PLAIN.fullmatch(data, len(before), len(data) - len(after))
        if found is None:
            return None
        self._misses = 0
        return found[0]

    def learn(self, data: str, text: str) -> None:
        """The chunk ``data`` was read as JSON, and says ``text`` and nothing else."""
        if self._misses >= _MOST_MISSES or data.count('"content"') != 1 or not _PLAIN.fullmatch(text):
            return
        self._misses += 1
        found = _CONTENT.search(data)
        if found is not None and data.startswith(text + '"', found.end()):
            self._before, self._after = data[: found.end()], data[found.end() + len(text) :]

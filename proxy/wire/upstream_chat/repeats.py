"""The tokens of a stream differ from each other in one string: where that stands is learned from one of them.

Whatever stands around the string is compared character for character with a chunk that was read as JSON, and what
stands in between is one string. So it is what JSON would have given, at a fraction of the cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from proxy.wire.sse import Frame

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

    def texts(self, frames: Sequence[Frame], at: int = 0) -> tuple[str, int]:
        """The text of the frames from ``at`` on that are like the one that was learned from, all together, and the
        index of the first that is not, which has to be read as JSON.
        """
        before, after = self._before, self._after
        start, behind = len(before), len(after)
        pieces: list[str] = []
        if before:
            for index in range(at, len(frames)):
                data = frames[index].data
                if frames[index].event != "message" or not data.startswith(before) or not data.endswith(after):
                    break
                found = _STRING.fullmatch(data, start, len(data) - behind)
                if found is None:
                    break
                pieces.append(found[0])
        if not pieces:
            return "", at
        self._misses = 0
        text = "".join(pieces)
        return str(json.loads(f'"{text}"')) if "\\" in text else text, at + len(pieces)

    def learn(self, data: str, text: str) -> None:
        """The chunk ``data`` was read as JSON, and says ``text`` and nothing else."""
        if self._misses >= _MOST_MISSES or data.count('"content"') != 1 or not _PLAIN.fullmatch(text):
            return
        self._misses += 1
        found = _CONTENT.search(data)
        if found is not None and data.startswith(text + '"', found.end()):
            self._before, self._after = data[: found.end()], data[found.end() + len(text) :]

"""The tokens of a stream differ from each other in one string: where that stands is learned from one of them.

Whatever stands around the string is compared character for character with a chunk that was read as JSON, and what
stands in between is one string. So it is what JSON would have given, at a fraction of the cost.
"""

from __future__ import annotations

import json
import re

from proxy.wire.sse import Frame

REPEATED = "\n"
"""The ``event`` of a frame that stands for one or more chunks of text; its ``data`` is the text. No server can name an
event so, since a line break ends the name."""

_CONTENT = re.compile(r'"content"\s*:\s*"')
_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt])++')
_MOST_MISSES = 16
"""Chunks in a row that are like none before them, after which nothing is learned any more."""


class Repeats:
    """The tokens of one stream."""

    __slots__ = ("_after", "_before", "_between", "_misses")

    def __init__(self) -> None:
        self._before = b""  # what stands in front of the text on the wire, and behind it
        self._after = b""
        self._between = ""  # what stands between two texts
        self._misses = 0

    def read(self, events: bytes) -> Frame | None:
        """One frame for ``events``, which are whole; None unless all are like the one that was learned from."""
        before, after = self._before, self._after
        if not (before and events.startswith(before) and events.endswith(after)):
            return None
        try:
            text = events[len(before) : -len(after)].decode()
        except UnicodeDecodeError:
            return None
        if not _STRING.fullmatch(text):
            pieces = text.split(self._between)
            if not all(map(_STRING.fullmatch, pieces)):
                return None
            text = "".join(pieces)
        self._misses = 0
        return Frame(REPEATED, str(json.loads(f'"{text}"')) if "\\" in text else text)

    def learn(self, data: str, text: str) -> None:
        """The chunk ``data`` was read as JSON, and says ``text`` and nothing else."""
        if self._misses >= _MOST_MISSES or data.count('"content"') != 1 or not _PLAIN.fullmatch(text):
            return
        self._misses += 1
        found = _CONTENT.search(data)
        if found is not None and data.startswith(text + '"', found.end()):
            before, after = "data: " + data[: found.end()], data[found.end() + len(text) :] + "\n\n"
            self._before, self._after, self._between = before.encode(), after.encode(), after + before

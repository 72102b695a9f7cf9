"""Names and shell-style patterns of names, and which of them speaks for a name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import Generic, TypeVar

Value = TypeVar("Value")

_WILD = re.compile(r"\[!?\]?[^\]]*\]|[*?]")


def is_pattern(text: str) -> bool:
    """Whether ``text`` stands for more than the name that it is: it holds ``*``, ``?`` or ``[``."""
    return any(char in text for char in "*?[")


class Patterns(Generic[Value]):
    """Values by name or pattern (``*`` any characters, ``?`` one, ``[abc]`` one of these; upper and lower case differ).

    The name itself comes first, then the pattern with the most characters that are no wildcards, then the one that was
    given first.
    """

    def __init__(self, entries: Iterable[tuple[str, Value]]) -> None:
        self._exact: dict[str, Value] = {}
        patterns: list[tuple[int, re.Pattern[str], Value]] = []
        for text, value in entries:
            if is_pattern(text):
                patterns.append((len(_WILD.sub("", text)), re.compile(fnmatch.translate(text)), value))
            else:
                self._exact.setdefault(text, value)
        patterns.sort(key=lambda entry: -entry[0])
        self._patterns = [(pattern, value) for _, pattern, value in patterns]

    def find(self, name: str) -> Value | None:
        """What speaks for ``name``, None if nothing does."""
        if name in self._exact:
            return self._exact[name]
        return next((value for pattern, value in self._patterns if pattern.match(name)), None)

"""Which declared tool a name stands for."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

_MARK = "__"
"""What stands between a name space and a name: ``mcp__server__f``."""

_OTHER_MARKS = str.maketrans(dict.fromkeys("./:", _MARK))
"""What models and clients write instead: ``functions.f``, ``server/f``."""


class Names:
    """The names of the declared tools."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = declared

    def match(self, name: str) -> str | None:
        """The tool that ``name`` stands for: itself, else the only one that differs from it by case, by ``-`` for
        ``_``, by ``.`` for ``__``, or by a name space in front of one of the two. None if there is none, or more than
        one.
        """
        if name in self._declared:
            return name
        plain = _plain(name)
        if not plain:
            return None
        found = self._by_plain.get(plain) or [
            tool for other, tools in self._by_plain.items() if _same_but_for_name_space(plain, other) for tool in tools
        ]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_plain(self) -> dict[str, list[str]]:
        """The names by what they have in common with those that mean the same."""
        found: dict[str, list[str]] = {}
        for tool in self._declared:
            found.setdefault(_plain(tool), []).append(tool)
        return found


def _plain(name: str) -> str:
    return name.strip().casefold().replace("-", "_").translate(_OTHER_MARKS)


def _same_but_for_name_space(one: str, other: str) -> bool:
    short, long = (one, other) if len(one) < len(other) else (other, one)
    return bool(short) and long.endswith(_MARK + short)

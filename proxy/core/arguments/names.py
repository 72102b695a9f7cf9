"""Which declared tool a name stands for."""

from __future__ import annotations

from collections.abc import Collection

_MARK = "__"
"""What stands between a name space and a name: ``mcp__server__f``."""

_OTHER_MARKS = str.maketrans(dict.fromkeys("./:", _MARK))
"""What models and clients write instead: ``functions.f``, ``server/f``."""


def match_name(name: str, declared: Collection[str]) -> str | None:
    """The tool of ``declared`` that ``name`` stands for: itself, else the only one that differs from it by case, by
    ``-`` for ``_``, by ``.`` for ``__``, or by a name space in front of one of the two. None if there is none, or more
    than one.
    """
    if name in declared:
        return name
    plain = _plain(name)
    if not plain:
        return None
    for alike in (_same, _same_but_for_name_space):
        found = [tool for tool in declared if alike(plain, _plain(tool))]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _plain(name: str) -> str:
    return name.strip().casefold().replace("-", "_").translate(_OTHER_MARKS)


def _same(one: str, other: str) -> bool:
    return one == other


def _same_but_for_name_space(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return bool(short) and long.endswith(_MARK + short)

"""Values replaced in JSON text, everything else byte for byte as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from proxy.core.arguments.jsontext import scan

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys of objects and indices of arrays, from the outside in."""

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')


def spoken(path: Path) -> str:
    """``path`` as people write it: ``items[2].id``; of the whole value: ``the arguments``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".") or "the arguments"


def splice(text: str, edits: Mapping[Path, str]) -> str:
    """``text``, strict JSON, with the scalars at the paths of ``edits`` replaced by those texts.

    Of members with the same key the last is meant, as for :func:`~proxy.core.arguments.jsontext.loads`.
    """
    places: dict[Path, tuple[int, int]] = {}
    path: list[str | int] = []  # of the value that is being read
    lists: list[bool] = []  # whether each open container is an array
    at_key = False
    for found in _TOKEN.finditer(text):
        match found[0]:
            case "{" | "[" as opener:
                lists.append(opener == "[")
                path.append(0)
                at_key = opener == "{"
            case "}" | "]":
                lists.pop()
                path.pop()
                at_key = False
            case ",":
                last = path[-1]
                if isinstance(last, int):
                    path[-1] = last + 1
                at_key = not lists[-1]
            case ":":
                at_key = False
            case token if at_key:
                path[-1] = scan(token)[0]
            case _:
                places[tuple(path)] = found.span()
    pieces: list[str] = []
    end = 0
    for start, stop, new in sorted((*places[at], new) for at, new in edits.items()):
        pieces += text[end:start], new
        end = stop
    return "".join((*pieces, text[end:]))

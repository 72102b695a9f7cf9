"""The examples in ``docs/examples``: their files, the blocks of their pages, and the address that they all name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "examples"
ADDRESS = "http://127.0.0.1:8787"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXPORT = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    """All blocks of all pages."""
    for path in sorted(FOLDER.glob("*.md")):
        yield from (Block(path.name, language, text) for language, text in _BLOCK.findall(path.read_text("utf-8")))


def block(page: str, language: str) -> str:
    """The one block of ``page`` in ``language``."""
    (text,) = (each.text for each in blocks() if (each.page, each.language) == (page, language))
    return text


def exports(page: str) -> dict[str, str]:
    """The environment that ``page`` sets in its block for the shell."""
    return dict(_EXPORT.findall(block(page, "sh")))


def at(address: str, text: str) -> str:
    """``text`` with ``address`` in place of the examples'. Raises ``AssertionError`` if it names none."""
    assert ADDRESS in text, text
    return text.replace(ADDRESS, address)

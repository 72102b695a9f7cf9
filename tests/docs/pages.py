"""The pages of the documentation, and what stands in them: blocks of code, code within a line, links, headings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

SHELL = ("sh", "bash", "console")

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of a page."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        """Where it stands: the name of a test."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> list[Found]:
    """The blocks of code in one of ``languages``, of all pages."""
    return [
        Found(page, text.count("\n", 0, block.start()) + 1, block[3])
        for page, text in _pages()
        for block in _BLOCK.finditer(text)
        if block[2] in languages
    ]


def spans() -> list[Found]:
    """Code that stands within a line, of all pages; where it is broken, the lines are joined."""
    return _each(_SPAN, 1)


def links() -> list[Found]:
    """Where the links of all pages lead."""
    return _each(_LINK, 1)


def anchors(page: Path) -> set[str]:
    """The names by which the headings of ``page`` are linked to, as GitHub makes them."""
    headings = _HEADING.findall(_prose(page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}


def commands(shell: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a block, each in words and with the sign that stands before it (a line break, ``|`` …)."""
    text = re.sub(r"(?m)(^|\s+)#\s.*$", "", shell).replace("\\\n", " ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words: list[str] = []
    before = "\n"
    for word in lexer:
        if word.strip(";|&\n"):
            words.append(word)
            continue
        if words:
            yield words, before
        words, before = [], word.strip("\n") or "\n"
    if words:
        yield words, before


def _each(pattern: re.Pattern[str], group: int) -> list[Found]:
    return [
        Found(page, text.count("\n", 0, found.start()) + 1, " ".join(found[group].split()))
        for page, text in _pages()
        for found in pattern.finditer(_prose(text))
    ]


def _pages() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        yield page, page.read_text("utf-8")


def _prose(text: str) -> str:
    """``text`` with its blocks of code left empty; the lines stay where they are."""
    return _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)

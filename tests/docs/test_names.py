"""What the pages about the code name is in the code."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

import pytest

from tests.docs.pages import ROOT, blocks

PAGES = ("architecture.md", "contributing.md", "security.md")
PATH = re.compile(r"`((?:proxy|tests|fixtures)/[\w./-]*)`")
NAME = re.compile(r"`([A-Z][a-z]\w*(?:\.\w+)*|[\w.]+(?=\(\)))(?:\(\))?`")


def paragraphs(page: str) -> list[str]:
    """The paragraphs, items and rows of a page, with their line breaks taken out."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return [" ".join(part.split()) for part in re.split(r"\n\n|\n(?=\s*(?:[-|]|\d+\.) ?)", text)]


def said() -> list[tuple[str, str]]:
    return [(page, text) for page in PAGES for text in paragraphs(page) if PATH.search(text)]


def modules(text: str) -> list[ModuleType]:
    names = [path.rstrip("/").removesuffix(".py").replace("/", ".") for path in PATH.findall(text)]
    return [import_module(name) for name in names if name.startswith("proxy.")]


def has(module: ModuleType, name: str) -> bool:
    there: object = module
    for part in name.split("."):
        if not hasattr(there, part):
            return False
        there = getattr(there, part)
    return True


@pytest.mark.parametrize(("page", "text"), said())
def test_files_and_what_is_in_them_are_there(page: str, text: str) -> None:
    for path in PATH.findall(text):
        assert (ROOT / path).exists(), path
    if page == "architecture.md":
        for name in NAME.findall(text):
            assert any(has(module, name) for module in modules(text)), name


def test_the_walk_is_looked_at() -> None:
    """Names are found at all, in the way in which the page writes them."""
    found = {name for page, text in said() if page == "architecture.md" for name in NAME.findall(text)}
    assert {"Parser.feed", "Relay.answer", "Exchange.write", "render_prompt", "StreamEncoder"} <= found


def test_every_layer_is_in_the_table() -> None:
    """The packages and modules right below ``proxy``, but for the command line's own ``__main__``."""
    told = " ".join(text for page, text in said() if page == "architecture.md" and text.startswith("|"))
    for file in sorted((ROOT / "proxy").iterdir()):
        if (file.suffix == ".py" and not file.name.startswith("__")) or (file / "__init__.py").is_file():
            assert f"`proxy/{file.name}{'/' if file.is_dir() else ''}`" in told, file.name


@pytest.mark.parametrize(
    ("begins", "path"),
    [
        ("SOLAR_CALL =", "proxy/core/notations.py"),
        ("Dialect(", "proxy/core/dialects.py"),
        ("Writer(", "proxy/testing/renderings.py"),
    ],
)
def test_the_worked_example_is_what_stands_there(begins: str, path: str) -> None:
    (shown,) = (
        "\n".join(line.removeprefix("   ") for line in block.text.splitlines())
        for block in blocks("text")
        if block.page.name == "contributing.md" and block.text.lstrip().startswith(begins)
    )
    assert shown in (ROOT / path).read_text("utf-8")

"""Links within the project lead somewhere, and every page can be reached from the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Found, anchors, links

WITHIN = [link for link in links() if "://" not in link.text and not link.text.startswith("mailto:")]


def target(link: Found) -> Path:
    """The file or folder that ``link`` leads to."""
    name = link.text.partition("#")[0]
    return (link.page.parent / name).resolve() if name else link.page


@pytest.mark.parametrize("link", WITHIN, ids=str)
def test_a_link_leads_somewhere(link: Found) -> None:
    there, anchor = target(link), link.text.partition("#")[2]
    assert there.exists()
    assert ROOT in there.parents or there == ROOT
    assert not anchor or anchor in anchors(there)


def test_every_page_can_be_reached_from_the_first() -> None:
    reached: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            todo += [there for link in WITHIN if link.page == page and (there := target(link)) in PAGES]
    assert reached == set(PAGES)

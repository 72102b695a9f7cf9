from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.scanner import Found, Marks

MARKS = ("<a>", "<ab>", "<a><b>", "[", "[end]", "~~~")
TEXTS = st.text(alphabet="<ab>[end]~x", max_size=40)


def test_find_takes_the_earliest_and_then_the_longest() -> None:
    marks = Marks(MARKS)
    assert marks.find("xx<a><b>") == Found(2, 8, "<a><b>")
    assert marks.find("[end]<a>") == Found(0, 5, "[end]")
    assert marks.find("nothing here") is None
    assert marks.find("<a>x<a>", 1) == Found(4, 7, "<a>")


def test_a_mark_that_may_still_grow_waits() -> None:
    marks = Marks(MARKS)
    assert marks.find("<a><", final=False) is None
    assert marks.hold("<a><") == 0
    assert marks.find("<a><", final=True) == Found(0, 3, "<a>")
    assert marks.find("<a>x", final=False) == Found(0, 3, "<a>")


def test_at_and_may_start() -> None:
    marks = Marks(MARKS)
    assert marks.at("x<ab>", 1) == "<ab>"
    assert marks.at("x<ab>", 0) is None
    assert marks.may_start("x~~", 1)
    assert not marks.may_start("x~~~", 1)


@pytest.mark.parametrize(("text", "held"), [("abc", 3), ("ab<", 2), ("ab<a", 2), ("ab<a>", 2), ("a~b", 3), ("a~~", 1)])
def test_hold(text: str, held: int) -> None:
    assert Marks(MARKS).hold(text) == held


@given(TEXTS, st.integers(0, 5), st.booleans())
def test_a_text_is_split_where_a_mark_stands_or_may_begin(text: str, at: int, final: bool) -> None:
    marks = Marks(MARKS)
    at = min(at, len(text))
    found = marks.find(text, at, final=final)
    end = found.start if found else len(text) if final else marks.hold(text, at)
    assert marks.split(text, at, final=final) == (end, found)


def test_no_marks_hold_nothing() -> None:
    marks = Marks(())
    assert marks.find("<a>") is None
    assert marks.hold("<a") == 2
    assert marks.split("<a", final=False) == (2, None)


@given(TEXTS, st.lists(st.integers(0, 40), max_size=5))
def test_pieces_find_what_the_whole_has(text: str, places: list[int]) -> None:
    marks = Marks(MARKS)
    whole, at = [], 0
    while found := marks.find(text, at):
        whole.append((found.start, found.mark))
        at = found.end
    bounds = [0, *sorted(place for place in places if place < len(text)), len(text)]
    pieces, pending, base = [], "", 0
    for start, end in pairwise(bounds):
        pending += text[start:end]
        final = end == len(text)
        at = 0
        while found := marks.find(pending, at, final=final):
            pieces.append((base + found.start, found.mark))
            at = found.end
        at = len(pending) if final else marks.hold(pending, at)
        base, pending = base + at, pending[at:]
    assert pieces == whole

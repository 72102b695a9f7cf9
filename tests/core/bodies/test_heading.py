"""Headings: told from text by their first bytes."""

from __future__ import annotations

import re

import pytest

from proxy.core.bodies.heading import length, stands
from proxy.core.forms import Heading

HEADING = Heading(re.compile(r"<\w+>!"), until="!")


@pytest.mark.parametrize(
    ("text", "standing"),
    [("<a>! b", True), ("<a>", None), ("<", None), ("", None), ("a!", False), ("<a b>!", False)],
)
def test_stands(text: str, standing: bool | None) -> None:
    assert stands(HEADING, text, final=False) is standing
    if standing is None:
        assert stands(HEADING, text, final=True) is False


def test_a_heading_is_not_waited_for_without_end() -> None:
    assert stands(HEADING, "<a" * 100, final=False) is None
    assert stands(HEADING, "<a" * 200, final=False) is False


def test_length() -> None:
    assert length(HEADING, "<a>! b") == 4
    assert length(HEADING, "b") == 0

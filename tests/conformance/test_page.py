"""docs/conformance.md says what is so: the figures that are quickly measured are, and its parts can be told apart."""

from __future__ import annotations

import pytest

from tests.conformance.page import CLIENTS, PAGE, failures, fixtures_table, probe_table, section, with_section

TEXT = PAGE.read_text("utf-8")


def test_the_dialects_are_read_as_the_page_says() -> None:
    assert section(TEXT, "fixtures") == fixtures_table()


def test_the_probe_passes_what_the_page_says() -> None:
    assert section(TEXT, "probe") == probe_table()


def test_every_fixture_that_is_answered_otherwise_is_explained() -> None:
    assert section(TEXT, "failures") == failures()


@pytest.mark.parametrize("name", sorted({client.name for client in CLIENTS}))
def test_every_client_has_its_rows(name: str) -> None:
    assert f"\n| {name} |" in section(TEXT, "clients")


def test_a_part_is_replaced_and_the_words_around_it_stay() -> None:
    changed = with_section(TEXT, "failures", "- nothing.")
    assert section(changed, "failures") == "- nothing."
    assert with_section(changed, "failures", failures()) == TEXT
    with pytest.raises(ValueError, match="substring"):
        section(TEXT, "no such part")

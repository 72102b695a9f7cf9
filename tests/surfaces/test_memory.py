from __future__ import annotations

import pytest

from proxy.surfaces.memory import Memory
from proxy.wire import jsonio

ANN = "ann"
SIZE = len(jsonio.dumps({"id": "a", "text": "x" * 100}))


def item(name: str, text: str = "x" * 100) -> dict[str, str]:
    return {"id": name, "text": text}


def test_items_come_back_by_their_ids() -> None:
    memory = Memory()
    memory.keep(ANN, item("a"))
    assert memory.recall(ANN, "a") == item("a")
    assert memory.recall(ANN, "b") is None


@pytest.mark.parametrize("other", ["bob", None])
def test_what_one_client_was_told_is_no_other_s(other: str | None) -> None:
    memory = Memory()
    memory.keep(ANN, item("a"))
    assert memory.recall(other, "a") is None
    memory.keep(other, item("a", "another"))
    assert (memory.recall(ANN, "a"), memory.recall(other, "a")) == (item("a"), item("a", "another"))


def test_what_was_not_asked_for_longest_goes_first() -> None:
    memory = Memory(3 * SIZE)
    for name in "abc":
        memory.keep(ANN, item(name))
    memory.recall(ANN, "a")
    memory.keep(ANN, item("d"))
    assert [name for name in "abcd" if memory.recall(ANN, name)] == ["a", "c", "d"]


def test_an_item_that_is_kept_again_counts_once() -> None:
    memory = Memory(2 * SIZE)
    for text in "xyz":
        memory.keep(ANN, item("a", text * 100))
    memory.keep(ANN, item("b"))
    assert memory.recall(ANN, "a") == item("a", "z" * 100)
    assert memory.recall(ANN, "b")


def test_an_item_beyond_the_limit_is_not_kept() -> None:
    memory = Memory(SIZE)
    memory.keep(ANN, item("a", "x" * 1000))
    assert memory.recall(ANN, "a") is None
    memory.keep(ANN, item("b"))
    assert memory.recall(ANN, "b")

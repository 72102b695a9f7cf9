from __future__ import annotations

from proxy.surfaces.memory import Memory
from proxy.wire import jsonio

SIZE = len(jsonio.dumps({"id": "a", "text": "x" * 100}))


def item(name: str, text: str = "x" * 100) -> dict[str, str]:
    return {"id": name, "text": text}


def test_items_come_back_by_their_ids() -> None:
    memory = Memory()
    memory.keep(item("a"))
    assert memory.recall("a") == item("a")
    assert memory.recall("b") is None


def test_what_was_not_asked_for_longest_goes_first() -> None:
    memory = Memory(3 * SIZE)
    for name in "abc":
        memory.keep(item(name))
    memory.recall("a")
    memory.keep(item("d"))
    assert [name for name in "abcd" if memory.recall(name)] == ["a", "c", "d"]


def test_an_item_that_is_kept_again_counts_once() -> None:
    memory = Memory(2 * SIZE)
    for text in "xyz":
        memory.keep(item("a", text * 100))
    memory.keep(item("b"))
    assert memory.recall("a") == item("a", "z" * 100)
    assert memory.recall("b")


def test_an_item_beyond_the_limit_is_not_kept() -> None:
    memory = Memory(SIZE)
    memory.keep(item("a", "x" * 1000))
    assert memory.recall("a") is None
    memory.keep(item("b"))
    assert memory.recall("b")

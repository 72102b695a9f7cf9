from __future__ import annotations

from proxy.core.model import ToolCall, ToolResult
from proxy.core.pairing import Ledger, MadeCall, Stray


def calls(*ids: str) -> list[ToolCall]:
    return [ToolCall(call_id, f"tool_{number}") for number, call_id in enumerate(ids)]


def answered(made: list[MadeCall]) -> list[list[str]]:
    """The ids of the results of each call."""
    return [[result.call_id for result in entry.results] for entry in made]


def test_ids_decide_whatever_the_order() -> None:
    ledger = Ledger()
    made = ledger.add(calls("a", "b"))
    assert ledger.pair([ToolResult("b"), ToolResult("a")], made) == []
    assert answered(made) == [["a"], ["b"]]


def test_an_id_of_this_turn_goes_before_the_same_id_of_an_earlier_one() -> None:
    ledger = Ledger()
    before = ledger.add(calls("a"))
    made = ledger.add(calls("a", "a"))
    assert ledger.pair([ToolResult("a"), ToolResult("a")], made) == []
    assert (answered(before), answered(made)) == ([[]], [["a"], ["a"]])
    late = ToolResult("a")
    assert ledger.pair([late], []) == [Stray(late, before[0])]


def test_no_id_takes_the_first_unanswered_call() -> None:
    ledger = Ledger()
    made = ledger.add(calls("a", "", "c"))
    assert ledger.pair([ToolResult(""), ToolResult("a"), ToolResult("")], made) == []
    assert answered(made) == [["a"], [""], [""]]


def test_no_id_and_no_open_call_here_takes_the_nearest_earlier_one() -> None:
    ledger = Ledger()
    ledger.add(calls("a"))
    before = ledger.add(calls("b"))
    late = ToolResult("")
    assert ledger.pair([late], []) == [Stray(late, before[0])]


def test_an_unknown_id_takes_a_call_of_this_turn_only() -> None:
    ledger = Ledger()
    ledger.add(calls("a"))
    gone = ToolResult("gone")
    assert ledger.pair([gone], []) == [Stray(gone, None)]
    made = ledger.add(calls("b"))
    assert ledger.pair([gone], made) == []
    assert answered(made) == [["gone"]]


def test_a_name_must_fit_where_no_id_does() -> None:
    ledger = Ledger()
    made = ledger.add(calls("", ""))
    other = ToolResult("", name="other")
    assert ledger.pair([other, ToolResult("", name="tool_1"), ToolResult("", name="tool_0")], made) == [
        Stray(other, None)
    ]
    assert [entry.results[0].name for entry in made] == ["tool_0", "tool_1"]


def test_a_second_result_joins_the_first_and_takes_no_other_call() -> None:
    ledger = Ledger()
    made = ledger.add(calls("a", "b"))
    assert ledger.pair([ToolResult("a"), ToolResult("a")], made) == []
    assert answered(made) == [["a", "a"], []]


def test_a_missing_id_is_the_number_of_the_call() -> None:
    ledger = Ledger()
    assert [entry.id for entry in [*ledger.add(calls("", "x")), *ledger.add(calls(""))]] == ["call_1", "x", "call_3"]


def test_a_turn_of_very_many_calls_is_paired_without_looking_through_all_of_them_for_each_result() -> None:
    many = 50_000  # compared one with another these would take minutes
    ledger = Ledger()
    made = ledger.add(calls(*(f"id_{number}" for number in range(many))))
    results = [ToolResult(f"id_{number}") for number in reversed(range(0, many, 2))] + [ToolResult("")] * (many // 2)
    assert ledger.pair(results, made) == []
    assert all(len(entry.results) == 1 for entry in made)

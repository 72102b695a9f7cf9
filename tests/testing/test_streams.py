from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.parser import Parser, parse
from proxy.testing import assert_stream_equals_whole, cuts, essence
from tests.support.reading import tool

TEXT = 'Now: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call> done'


class Naive:
    """It looks for a tag in each piece alone, and never raises but for a piece of white space."""

    def __init__(self, tag: str = "<call>") -> None:
        self._tag = tag
        self.closed: object = None

    def feed(self, text: str) -> list[str]:
        if text.isspace():
            raise ValueError("nothing in it")
        return text.replace(self._tag, "CALL").split("|")

    def close(self, *reason: object) -> str | None:
        self.closed = reason
        return str(reason[0]) if reason else None


def failure(text: str, **how: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_stream_equals_whole(text, Naive, **how)
    return str(caught.value)


def test_our_own_parser_of_any_kind() -> None:
    assert_stream_equals_whole(TEXT)
    assert_stream_equals_whole(TEXT, lambda: Parser([tool("g")]))
    assert_stream_equals_whole(TEXT, whole=lambda text: essence(parse(text)))
    assert_stream_equals_whole("a</think>b")  # told too late: the stream says so
    assert_stream_equals_whole(TEXT[:30], ending=("length",))


def test_a_parser_of_any_make() -> None:
    assert_stream_equals_whole("no call", Naive, chunkings=[["no ", "call"]])
    assert_stream_equals_whole(
        "no call", Naive, chunkings=[["no ", "call"]], ending=("stop",), whole=lambda text: f"{text}stop"
    )
    assert_stream_equals_whole("<call>", Naive, chunkings=[["<c", "all>"]], fold=len, whole=lambda text: 2)


def test_a_failure_shows_the_fewest_cuts_and_what_differs() -> None:
    said = failure("so:<call>more")
    assert said.startswith("The text is cut into 'so:<")
    assert said.count(" | ") == 1
    assert "--- whole\n+++ in pieces\n" in said
    assert "-'so:CALLmore'" in said
    assert "+'so:<call>more'" in said


def test_a_failure_with_far_apart_cuts_leaves_out_what_is_between() -> None:
    text = "x" * 100 + "<call>" + "y" * 100
    said = failure(text, chunkings=[[text[:50], text[50:103], text[103:]]])
    assert said.startswith(f"The text is cut into …'{'x' * 21}<ca' | 'll>{'y' * 21}'…, and what")


def test_a_parser_that_raises_in_pieces_fails() -> None:
    said = failure("a b", chunkings=[["a", " ", "b"]])
    assert said == "The text is cut into 'a' | ' ' | 'b', and it raises ValueError('nothing in it')."


def test_a_whole_that_is_said_to_be_another() -> None:
    said = failure("a", chunkings=[["a"]], whole=lambda text: "b")
    assert said.startswith("The text is in one piece, and what comes out is not the same:\n")


def test_pieces_of_another_text() -> None:
    with pytest.raises(ValueError, match="not pieces of the text"):
        assert_stream_equals_whole("ab", Naive, chunkings=[["a"]])


def test_things_that_are_no_texts_are_compared_as_a_list() -> None:
    class Deltas(Naive):
        def feed(self, text: str) -> Any:
            return {"delta": text}

    with pytest.raises(AssertionError, match=r"\+\[\{'delta': 'a'\}, \{'delta': 'b'\}\]"):
        assert_stream_equals_whole("ab", Deltas)
    joined = lambda items: "".join(item["delta"] for item in items)  # noqa: E731
    assert_stream_equals_whole("ab", Deltas, fold=joined)


@given(st.text(max_size=30))
def test_cuts_are_the_text_and_always_the_same(text: str) -> None:
    made = list(cuts(text))
    assert all("".join(pieces) == text for pieces in made)
    assert made == list(cuts(text))
    assert [*text] in made


def test_the_essence_of_a_reply() -> None:
    said = essence(parse(TEXT))
    assert json.loads(said["calls"][0][1]) == {"a": 1}
    assert said["content"] == "Now:  done"

from __future__ import annotations

import json

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from proxy.core.arguments.schema import ToolSchema
from proxy.core.model import Tool
from proxy.core.parser import Parser, parse
from proxy.testing import (
    DAMAGES,
    DIALECTS,
    Call,
    assert_stream_equals_whole,
    calls,
    chunkings,
    damaged,
    rendering,
    soup,
    tools,
)
from tests.support.effort import EXAMPLES
from tests.support.reading import tool

SAY = tool("say", text="string", times="integer")


@given(st.data())
def test_calls_of_any_tools_are_valid_and_read_back(data: st.DataObject) -> None:
    offered = data.draw(tools())
    assert len({each.name for each in offered}) == len(offered)
    made = data.draw(rendering(data.draw(calls(offered))))
    assert made.dialect in DIALECTS
    for call in made.calls:
        assert call.tool in offered
        assert not ToolSchema(call.tool.parameters).validate(json.dumps(call.arguments))
    assert [call.name for call in parse(made.text, offered, dialect=made.dialect).calls] == [
        call.name for call in made.calls
    ]


@given(st.data())
@settings(max_examples=EXAMPLES * 3)
def test_no_damage_makes_pieces_differ_from_the_whole(data: st.DataObject) -> None:
    made = data.draw(rendering(data.draw(calls([SAY]))))
    broken = data.draw(damaged(made.text))
    assert broken.text != made.text or broken.kind in ("said-twice", "cut-off")
    cut = data.draw(chunkings(broken.text))
    for dialect in ("auto", made.dialect):
        assert_stream_equals_whole(
            broken.text,
            lambda dialect=dialect: Parser([SAY], dialect=dialect, stream_arguments_after=None),  # type: ignore[misc]
            chunkings=[cut, list(broken.text)],
        )


@pytest.mark.parametrize("kind", DAMAGES)
def test_every_kind_of_damage_can_be_drawn(kind: str) -> None:
    text = '<tool_call>{"name": "say", "arguments": {"text": "a\\nb", "more": [true, 2]}, "x": null}</tool_call>'
    assert find(damaged(text, [kind]), lambda broken: broken.text != text).kind == kind


def test_damage_that_is_not_known_or_not_possible() -> None:
    with pytest.raises(ValueError, match="unknown damage 'rust'; there are: missing-closer"):
        damaged("x", ["rust"])
    with pytest.raises(Unsatisfiable):
        find(damaged("x", ["single-quotes"]), lambda broken: True)


@given(st.data())
def test_chunks_are_the_text(data: st.DataObject) -> None:
    text = data.draw(soup(["say"]))
    assert "".join(data.draw(chunkings(text))) == text


def test_chunks_are_single_characters_too_and_shrink_to_the_whole() -> None:
    assert find(chunkings("abcdef"), lambda pieces: True) == ["abcdef"]
    assert find(chunkings("abcdef"), lambda pieces: len(pieces) == 6 and "" not in pieces) == [*"abcdef"]
    assert find(chunkings("abcdef"), lambda pieces: "cd" in pieces) == ["ab", "cd", "ef"]


def test_tools_in_any_shape() -> None:
    shaped = {"type": "function", "function": {"name": "look", "parameters": {"properties": {"at": {"const": 1}}}}}
    assert find(calls([shaped]), lambda made: "at" in made[0].arguments)[0] == Call(Tool.of(shaped), {"at": 1})
    assert find(calls([{"name": "f"}], max_size=1), lambda made: True)[0].arguments == {}
    with pytest.raises(ValueError, match="no tools"):
        calls([])


def test_what_a_family_cannot_say_is_not_drawn() -> None:
    with pytest.raises(Unsatisfiable):
        find(rendering([Call(SAY, {"text": "</parameter>"})], "minimax-m2"), lambda made: True)
    made = find(
        rendering([Call(SAY, {"text": "</parameter>"})], "qwen3-coder", prose=st.just("Hm.")), lambda made: True
    )
    assert made.text == 'Hm.\n<function=say>{"text": "</parameter>"}</function>\nHm.'
    assert made.prose == ("Hm.", "Hm.")

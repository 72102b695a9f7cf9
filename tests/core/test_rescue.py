from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.collect import Reply, collect
from proxy.core.events import (
    Event,
    Extra,
    Finish,
    FinishReason,
    Problem,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import Tool
from proxy.core.rescue import Rescue, RescueReader

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (Tool("weather", parameters=SCHEMA), Tool("time"))
BARE = '{"name": "weather", "arguments": {"city": "Oslo"}}'
CALL = f"<tool_call>{BARE}</tool_call>"
TIME = '<tool_call>{"name": "time", "arguments": {}}</tool_call>'
INVALID = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'


def reader(*, parallel: bool = True) -> RescueReader:
    return RescueReader(Rescue(TOOLS, parallel=parallel, new_id=lambda: "id"))


def read(text: str, *cuts: int, finish: FinishReason = "stop", parallel: bool = True) -> list[Event]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    reading = reader(parallel=parallel)
    pieces: list[Event] = [TextDelta(text[start:end]) for start, end in pairwise(places)]
    return [passed for event in [*pieces, Finish(finish)] for passed in reading.feed(event)]


def reply(text: str, *cuts: int, finish: FinishReason = "stop", parallel: bool = True) -> Reply:
    return collect(read(text, *cuts, finish=finish, parallel=parallel))


def test_a_call_that_the_answer_is_about_stays_text() -> None:
    text = f"You would write {CALL} like that."
    assert reply(text) == reply(text, *range(len(text))) == Reply(content=text, finish="stop")


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    ("text", "content"),
    [
        (BARE, ""),
        (f"```json\n{BARE}\n```", ""),
        (CALL, ""),
        ("[weather(city='Oslo')]", ""),
        ("<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>", ""),
        (f"\n\nLet me look.\n{CALL}", "\n\nLet me look."),
        (f"Let me look.\n{CALL}\nDone. ", "Let me look.\n\nDone."),
        (f"Look:\n```json\n{CALL}\n```", "Look:"),
        (f"I will <b>.\n<tool_calls>\n{CALL}\n</tool_calls>", "I will <b>."),
        (f"Oh.\n<tool_calls> <tool_calls>\n{CALL}", "Oh."),
        ("<function_calls><invoke name='weather'><parameter name='city'>Oslo</parameter></invoke>", ""),
        (f"{INVALID}\n{CALL}", INVALID),
        (f"<think>hm {TIME}</think>\n{CALL}", f"<think>hm {TIME}</think>"),
        (f"hm {TIME}</think>\n{CALL}", f"hm {TIME}</think>"),
        (f"<think>hm {CALL}</think>", f"<think>hm {CALL}</think>"),
        (f"{CALL}\n<tool_response>12 degrees</tool_response> It is 12.", ""),
    ],
)
def test_a_call_in_the_text_becomes_one(text: str, content: str, cut: bool) -> None:
    got = reply(text, *(range(len(text)) if cut else ()))
    assert [(call.name, call.arguments.replace(" ", "")) for call in got.calls] == [("weather", '{"city":"Oslo"}')]
    assert (got.content, got.reasoning, got.finish) == (content, "", "tool_calls")
    assert [problem.kind for problem in got.problems if problem.call is not None] == ["rescued"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " It is <b>noon</b>.\n ",
        INVALID,
        '{"name": "clock", "arguments": {}}',
        '{"name": "weather", "arguments": {"town": "Oslo"}}',
        f"Like so:\n{BARE}",
        f"Like so: `{CALL}`, see?",
        f"```\n{CALL}\n```\nis how a call looks.",
        CALL[:-30],
        f"<think>{CALL}</think> No need.",
        f"{CALL}</think> No need.",
        "<|im_end|>",
        "</tool_call>",
        "<tool_response>12 degrees</tool_response> It is 12.",
    ],
)
def test_other_text_comes_back_as_it_is(text: str) -> None:
    for cuts in ((), range(len(text))):
        got = reply(text, *cuts)
        assert got == Reply(content=text, finish="stop")


def test_text_flows_while_it_cannot_be_a_call() -> None:
    reading = reader()
    assert reading.feed(TextDelta("It is {x")) == [TextDelta("It is {x")]
    assert reading.feed(TextDelta(" noon \n")) == [TextDelta(" noon")]
    assert reading.feed(TextDelta("<tool_")) == []
    assert reading.feed(TextDelta("box>")) == [TextDelta(" \n<tool_box>")]
    assert reading.feed(TextDelta("<tool_calls><tool_call>no")) == []
    assert reading.feed(TextDelta("pe, ")) == [TextDelta("<tool_calls><tool_call>nope,")]
    assert reading.feed(TextDelta("no")) == [TextDelta(" no")]


def test_several_calls_and_the_one_that_is_allowed() -> None:
    both = f"{CALL}\n{TIME}"
    assert [call.name for call in reply(both).calls] == ["weather", "time"]
    assert [call.name for call in reply(both, parallel=False).calls] == ["weather"]


def test_a_reply_that_is_cut_keeps_the_calls_before() -> None:
    got = reply(f"{CALL}\n{TIME[:20]}", finish="length")
    assert ([call.name for call in got.calls], got.finish) == (["weather"], "length")
    assert reply(CALL[:30], finish="length") == Reply(content=CALL[:30], finish="length")


NATIVE = (ToolCallStart(0, "a", "time"), ToolArgumentsDelta(0, "{}"), ToolCallEnd(0), Finish("tool_calls"))


def test_where_the_backend_calls_tools_itself_text_is_text() -> None:
    reading = reader()
    events = [passed for event in (TextDelta(CALL), *NATIVE, Usage(1, 2)) for passed in reading.feed(event)]
    assert events == [TextDelta(CALL), *NATIVE, Usage(1, 2)]
    assert reading.close() == []


def test_a_refusal_is_an_answer() -> None:
    reading = reader()
    events = [passed for event in (TextDelta(BARE), Refusal("No."), Finish("stop")) for passed in reading.feed(event)]
    assert events == [TextDelta(BARE), Refusal("No."), Finish("stop")]


def test_what_is_no_text_passes_at_once() -> None:
    reading = reader()
    assert reading.feed(TextDelta("<tool_call>")) == []
    for event in (ReasoningDelta(CALL), Extra({"audio": 1}), Problem("cut", "…")):
        assert reading.feed(event) == [event]
    assert not reading.done


def test_how_the_reply_stopped_is_kept() -> None:
    reading = reader()
    reading.feed(TextDelta(CALL))
    assert reading.feed(Finish("stop", stop_sequence="END"))[-1] == Finish("tool_calls", stop_sequence="END")
    assert reading.feed(Usage(1, 2)) == [Usage(1, 2)]
    assert reading.close() == []


def test_a_reply_without_finish_can_be_closed() -> None:
    reading = reader()
    reading.feed(TextDelta(BARE))
    assert [type(event) for event in reading.close()][-2:] == [ToolCallEnd, Finish]
    assert reading.close() == []
    for reason, text in ((None, BARE[:20]), ("error", BARE)):
        reading = reader()
        reading.feed(TextDelta(text))
        assert reading.close(reason)[0] == TextDelta(text)  # type: ignore[arg-type]


PIECES = [
    CALL,
    TIME,
    BARE,
    INVALID,
    "text",
    " ",
    "\n",
    "`",
    "```json\n",
    "<think>",
    "</think>",
    "<tool_call>",
    "<tool_calls>",
    "{",
    "[",
    ".",
]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data(), st.sampled_from(["stop", "length"]))
def test_however_the_text_is_cut_the_reply_is_the_same(pieces: list[str], data: st.DataObject, finish: str) -> None:
    text = "".join(pieces)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    whole = reply(text, finish=finish)  # type: ignore[arg-type]
    assert reply(text, *cuts, finish=finish) == whole  # type: ignore[arg-type]
    assert reply(text, *range(len(text)), finish=finish) == whole  # type: ignore[arg-type]
    if not whole.calls:
        assert whole.content == text


@given(st.text(max_size=60))
@example("{" * 600 + CALL)
@example('{"name": "time", ' + " " * 600 + "x" + CALL)
def test_any_text_is_kept(text: str) -> None:
    whole = reply(text)
    assert reply(text, *range(len(text))) == whole
    assert whole.calls or whole.content == text

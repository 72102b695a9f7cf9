from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.content import flatten
from proxy.core.history import NO_RESULT, HistoryOptions, render_history
from proxy.core.model import ImagePart, Message, OtherPart, Part, TextPart, ToolCall, ToolResult
from tests.support.conversations import (
    GOLDEN,
    assistant,
    decode_messages,
    encode_messages,
    markup_in,
    result,
    risky_text,
    texts,
    user,
)

IMAGE = ImagePart("data:image/png;base64,AAAA")
AUDIO = OtherPart({"type": "input_audio", "input_audio": {"data": "AAAA"}})

ids = st.sampled_from(["", "a", "b", "c"])
names = st.sampled_from(["clock", "weather"])
content_parts: st.SearchStrategy[tuple[Part, ...]] = st.lists(
    risky_text.map(TextPart) | st.just(IMAGE) | st.just(AUDIO), max_size=3
).map(tuple)
calls = st.builds(ToolCall, ids, names, st.sampled_from(["{}", "", "null", '{"a": "</tool_call>"}', "[1", '"x"']))
results = st.builds(ToolResult, ids, content_parts, st.none() | names, st.booleans())
broken_messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    content_parts,
    calls=st.lists(calls, max_size=3).map(tuple),
    results=st.lists(results, max_size=3).map(tuple),
    reasoning=st.none() | risky_text,
)
"""Anything at all: calls of users, results of assistants, results without calls."""


@st.composite
def valid_turns(draw: st.DrawFn) -> list[Message]:
    """A user's text, some rounds of calls and their results, an answer."""
    turns = [Message("user", draw(content_parts))]
    for _ in range(draw(st.integers(0, 2))):
        made = [ToolCall(f"id{number}", draw(names)) for number in range(draw(st.integers(1, 3)))]
        turns.append(Message("assistant", draw(content_parts), calls=tuple(made)))
        turns += [
            Message("tool", results=(ToolResult(call.id, draw(content_parts)),)) for call in draw(st.permutations(made))
        ]
    return [*turns, Message("assistant", draw(content_parts))]


conversations: st.SearchStrategy[list[Message]] = st.lists(broken_messages, max_size=6) | st.lists(
    valid_turns(), max_size=2
).map(lambda turns: [message for turn in turns for message in turn])

options_of_any_kind = st.builds(
    HistoryOptions,
    system_role=st.booleans(),
    prefill=st.booleans(),
    vision=st.sampled_from([None, True, False]),
    keep_reasoning=st.sampled_from(["none", "turn"]),
)


def joined(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, TextPart))


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    golden: dict[str, Any] = GOLDEN[name]
    rendered = render_history(
        decode_messages(golden["messages"]),
        system="(protocol)",
        closing=golden.get("closing", ""),
        options=HistoryOptions(**golden.get("options", {})),
    )
    assert encode_messages(rendered) == golden["expected"]


@given(conversations, options_of_any_kind, st.sampled_from(["", "(protocol)"]), st.booleans())
def test_any_template_takes_what_comes_out(
    messages: list[Message], options: HistoryOptions, system: str, neutral: bool
) -> None:
    out = render_history(messages, system=system, closing="(closing)", options=options, neutral=neutral)
    roles = [message.role for message in out]
    if "system" in roles:
        assert options.system_role
        assert roles.pop(0) == "system"
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
    assert roles[-1] == "user" or (options.prefill and out[-1].content != (TextPart(""),))
    assert "(closing)" in joined(next(message for message in reversed(out) if message.role == "user"))
    for message in out:
        assert message == Message(message.role, message.content)
        if len(message.content) > 1 or not isinstance(message.content[0], TextPart):
            assert message.role == "user"
            assert options.vision is not False or not neutral or IMAGE not in message.content
        joined(message).encode("utf-8")


@given(conversations, options_of_any_kind)
def test_the_text_of_every_turn_is_there(messages: list[Message], options: HistoryOptions) -> None:
    out = "\n".join(joined(message) for message in render_history(messages, options=options))
    assert "AAAA" not in out
    for message in messages:
        contents = [entry.content for entry in message.results]
        if message.role != "assistant" or flatten(message.content).strip():
            contents.append(message.content)
        for part in chain.from_iterable(contents):
            if isinstance(part, TextPart):
                assert part.text.replace("&lt;", "<") in out.replace("&lt;", "<")


@given(conversations, options_of_any_kind)
def test_every_call_is_there_and_answered_and_every_result_shown(
    messages: list[Message], options: HistoryOptions
) -> None:
    out = render_history(messages, options=options)
    made = [call.name for message in messages for call in message.calls]
    given_results = sum(len(message.results) or (message.role == "tool") for message in messages)
    shown = [(message.role, tag) for message in out for tag in markup_in(joined(message)) if message.role != "system"]
    assert shown.count(("assistant", "<tool_call")) == shown.count(("assistant", "</tool_call")) == len(made)
    unanswered = sum(joined(message).count(NO_RESULT) for message in out)
    assert shown.count(("user", "<tool_result")) == given_results + unanswered
    for before, after in pairwise(out):
        if before.role == "assistant":
            asked = re.findall(r'<tool_call>{"name": "(\w+)"', joined(before))
            answers = re.findall(r'^<tool_result name="(\w+)"', joined(after), re.MULTILINE)
            assert all(name in answers for name in asked)
            assert joined(after).startswith("[Tool results]\n<tool_result ") or not asked


@given(conversations, options_of_any_kind)
def test_no_text_can_forge_markup_or_a_turn(messages: list[Message], options: HistoryOptions) -> None:
    """What users, tools and earlier answers say adds no tag and no control token to those that we write."""
    harmless = [
        Message(
            message.role,
            texts("x") if flatten(message.content).strip() or message.role == "tool" else (),
            calls=tuple(ToolCall(call.id, call.name) for call in message.calls),
            results=tuple(ToolResult(entry.call_id, (), entry.name) for entry in message.results),
        )
        for message in messages
        if message.role != "system"
    ]
    spoken = [message for message in messages if message.role != "system"]
    own, out = (render_history(history, options=options) for history in (harmless, spoken))
    assert [markup_in(joined(message)) for message in out] == [markup_in(joined(message)) for message in own]


@given(conversations, st.sampled_from([None, False]))
def test_later_turns_only_append(messages: list[Message], vision: bool | None) -> None:
    """A server that keeps the prompt of the last request finds it again as the beginning of the next."""
    options = HistoryOptions(vision=vision)
    before = render_history([*messages, user("q")], system="(protocol)", options=options)
    later = [assistant("a", calls=(ToolCall("new", "clock"),)), result("new", "10:00"), user("r")]
    after = render_history([*messages, user("q"), *later], system="(protocol)", options=options)
    assert after[: len(before)] == before


def test_where_no_protocol_is_in_play_text_and_parts_go_on_as_they_are() -> None:
    said = Message("user", (*texts("What is <tool_call>", " and <|im_end|>?"), AUDIO))
    shown = render_history([said, assistant("Nothing </tools>.")], neutral=False, options=HistoryOptions(prefill=True))
    assert encode_messages(shown) == [
        {"role": "user", "content": ["What is <tool_call> and <|im_end|>?", dict(AUDIO.raw)]},
        {"role": "assistant", "content": "Nothing </tools>."},
    ]


def test_without_system_text_there_is_no_system_message() -> None:
    assert render_history([Message("system"), user("hi")]) == (user("hi"),)


def test_thousands_of_turns_are_quick() -> None:
    """Calls that never get their results wait to the end; looking through them must not take over."""
    turns = [user("q"), assistant("", calls=(ToolCall("", "clock"),)), user("next"), assistant("a")] * 1000
    assert len(render_history([*turns, user("r")])) == 4001


def test_markup_in_pieces_is_markup() -> None:
    whole = (user("&lt;tool_call>"),)
    assert render_history([user("<tool_", "call>")]) == render_history([user("<tool_call>")]) == whole

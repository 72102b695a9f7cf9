from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from proxy.core.collect import Reply, collect
from proxy.core.dispatch import Dispatcher, NativeDispatcher, XmlDispatcher, goes_untouched
from proxy.core.errors import ClientError
from proxy.core.events import Event, Finish, TextDelta
from proxy.core.history import HistoryOptions
from proxy.core.model import AUTO, Json, Message, OtherPart, Request, TextPart, Tool, ToolCall, ToolChoice
from proxy.core.prompt import PromptOptions, render_format, render_past, render_protocol
from tests.support.conversations import assistant, result, user

CLOCK = Tool("clock", "What time it is.")
WEATHER = Tool("weather", parameters={"type": "object", "properties": {"days": {"type": "integer"}}})
TOOLS = (CLOCK, WEATHER)
ASKED = Request((user("Time?"),), model="m", tools=TOOLS, stream=True)
PAST = (user("Time?"), assistant(calls=(ToolCall("a", "clock"),)), result("a", "10:00"))
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
CALL = '<tool_call>{"name": "%s", "arguments": {}}</tool_call>'


def system_of(request: Request) -> str:
    first = request.messages[0]
    return first.text if first.role == "system" else ""


def reply(request: Request, *pieces: str, dispatcher: Dispatcher | None = None) -> Reply:
    reader = (dispatcher or XmlDispatcher()).reader(request)
    events: list[Event] = [*(TextDelta(piece) for piece in pieces), Finish("stop")]
    return collect([passed for event in events for passed in reader.feed(event)])


def test_tools_become_a_system_prompt() -> None:
    prepared = XmlDispatcher().prepare(replace(ASKED, messages=(Message("system", (TextPart("Be kind."),)), *PAST)))
    assert system_of(prepared) == f"Be kind.\n\n{render_protocol(TOOLS)}"
    assert [message.role for message in prepared.messages] == ["system", "user", "assistant", "user"]
    assert (prepared.tools, prepared.tool_choice, prepared.parallel) == ((), AUTO, True)
    assert (prepared.model, prepared.stream) == ("m", True)


def test_what_cannot_be_shown_is_refused_where_it_is_to_be_answered() -> None:
    audio = OtherPart({"type": "input_audio", "input_audio": {"data": "AAAA"}})
    spoken = Message("user", (TextPart("What is this?"), audio))
    with pytest.raises(ClientError, match="'input_audio'"):
        XmlDispatcher().prepare(replace(ASKED, messages=(spoken,)))
    later = XmlDispatcher().prepare(replace(ASKED, messages=(spoken, assistant("A bird."), user("Which?"))))
    assert later.messages[1].text == "What is this?\n[input_audio left out]"
    assert XmlDispatcher().prepare(Request((spoken,))).messages[0].content[1] == audio
    noted = Message("user", (OtherPart({"type": "document", "source": {"type": "text", "data": "A note."}}),))
    assert XmlDispatcher().prepare(replace(ASKED, messages=(noted,))).messages[-1].text == "A note."


def test_a_call_of_a_tool_that_is_not_allowed_is_text() -> None:
    asked = replace(ASKED, tool_choice=ToolChoice(allowed=frozenset({"clock"})))
    assert [call.name for call in reply(asked, CALL % "clock").calls] == ["clock"]
    refused = reply(asked, CALL % "weather")
    assert (refused.calls, refused.content) == ((), CALL % "weather")


def test_several_choices_cannot_be_read_from_text() -> None:
    with pytest.raises(ClientError, match="`n` must be 1") as caught:
        XmlDispatcher().prepare(replace(ASKED, extra={"n": 2}))
    assert caught.value.param == "n"
    assert XmlDispatcher().prepare(replace(ASKED, extra={"n": 1})).extra == {"n": 1}


def test_probabilities_of_tokens_are_not_asked_for_since_no_event_holds_them() -> None:
    assert XmlDispatcher().prepare(replace(ASKED, extra={"logprobs": True, "top_logprobs": 2, "seed": 1})).extra == {
        "seed": 1
    }


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, False),
        ({"n": 1, "logprobs": False}, False),
        ({"n": None}, False),
        ({"n": 2}, True),
        ({"logprobs": 1}, True),
    ],
)
def test_what_events_cannot_hold_goes_untouched_unless_tools_are_in_play(
    extra: Mapping[str, Json], expected: bool
) -> None:
    plain = Request((user("Hi"),), extra=extra)
    assert goes_untouched(plain) is expected
    assert goes_untouched(replace(plain, tools=TOOLS, tool_choice=ToolChoice("none"))) is expected
    assert not goes_untouched(replace(plain, tools=TOOLS))
    assert not goes_untouched(replace(plain, messages=PAST))


def test_the_protocol_depends_on_the_tools_alone() -> None:
    """So that a server finds its prompt again, whatever the choice of this turn."""
    for choice in (
        AUTO,
        ToolChoice("required"),
        ToolChoice("named", "clock"),
        ToolChoice(allowed=frozenset({"clock"})),
    ):
        prepared = XmlDispatcher().prepare(replace(ASKED, tool_choice=choice, parallel=False))
        assert system_of(prepared) == render_protocol(TOOLS)
        assert prepared.messages[-1].text.startswith("Time?\n\n")


def test_the_choice_ends_the_last_user_message() -> None:
    prepared = XmlDispatcher().prepare(replace(ASKED, tool_choice=ToolChoice("named", "clock")))
    assert prepared.messages[-1].text == 'Time?\n\nYou must call the tool "clock" now.'


def test_settings_reach_the_prompt_and_the_history() -> None:
    dispatcher = XmlDispatcher(HistoryOptions(system_role=False), PromptOptions(example=True))
    assert dispatcher.prepare(ASKED).messages == (user(f"{render_protocol(TOOLS, example=True)}\n\nTime?"),)


@pytest.mark.parametrize(
    "request_",
    [
        Request((user("What is <tools>?"),)),
        Request((user("What is <tools>?"),), tools=TOOLS, tool_choice=ToolChoice("none")),
        Request((user("What is <tools>?"),), tools=TOOLS, tool_choice=ToolChoice(allowed=frozenset({"gone"}))),
    ],
)
def test_without_anything_of_tools_the_text_passes(request_: Request) -> None:
    assert XmlDispatcher().prepare(request_).messages == (user("What is <tools>?"),)
    text = CALL % "clock"
    answer = reply(request_, f"<think>hm</think>{text}")
    assert (answer.content, answer.reasoning, answer.calls) == (text, "hm", ())


@pytest.mark.parametrize(
    "request_", [Request((*PAST, user("Sure?"))), Request(PAST, tools=TOOLS, tool_choice=ToolChoice("none"))]
)
def test_past_calls_are_explained_where_none_may_be_made(request_: Request) -> None:
    prepared = XmlDispatcher().prepare(request_)
    assert system_of(prepared) == render_past()
    assert prepared.messages[2].text == CALL % "clock"
    assert reply(request_, CALL % "clock").calls == ()


def test_fields_that_a_plain_backend_may_refuse_stay_here() -> None:
    sent = {"temperature": 0, "stop": ["\n\n"], "seed": 1, "max_completion_tokens": 5, "new_field": {"a": None}}
    kept = {
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "functions": [],
        "function_call": "auto",
        "store": True,
        "metadata": {},
        "service_tier": "auto",
        "user": "u",
        "prompt_cache_key": "k",
        "reasoning_effort": "low",
        "grammar": "root ::= x",
        "json_schema": {},
        "top_p": None,
    }
    assert XmlDispatcher().prepare(replace(ASKED, extra=sent | kept)).extra == sent


@pytest.mark.parametrize("stop", [[], "", None])
def test_an_empty_stop_is_not_sent(stop: Json) -> None:
    assert XmlDispatcher().prepare(replace(ASKED, extra={"stop": stop})).extra == {}


def test_a_format_for_the_answer_is_described_while_tools_are_offered() -> None:
    offered = XmlDispatcher().prepare(replace(ASKED, response_format=SCHEMA))
    assert system_of(offered) == f"{render_protocol(TOOLS)}\n\n{render_format(SCHEMA)}"
    assert offered.response_format is None
    assert XmlDispatcher().prepare(replace(ASKED, tools=(), response_format=SCHEMA)).response_format == SCHEMA


def test_calls_are_read_against_the_tools() -> None:
    answer = reply(ASKED, '<tool_call>{"name": "Weather", "arguments": {"days": "2"}}</tool_call>')
    assert [(made.name, made.arguments) for made in answer.calls] == [("weather", '{"days": 2}')]
    assert [problem.kind for problem in answer.problems] == ["renamed", "coerced"]


def test_an_unknown_tool_passes_unless_a_call_is_required() -> None:
    assert [made.name for made in reply(ASKED, CALL % "gone").calls] == ["gone"]
    missing = reply(replace(ASKED, tool_choice=ToolChoice("required")), CALL % "gone")
    assert (missing.calls, missing.content, missing.finish) == ((), CALL % "gone", "stop")
    assert "missing_call" in [problem.kind for problem in missing.problems]


def test_only_the_named_tool_counts() -> None:
    named = replace(ASKED, tool_choice=ToolChoice("named", "clock"), parallel=False)
    answer = reply(named, f"Both: {CALL % 'weather'}", f"\n{CALL % 'clock'}", CALL % "clock")
    assert [made.name for made in answer.calls] == ["clock"]
    assert answer.content.split("\n")[:2] == ["Both:", CALL % "weather"]


def test_one_call_only() -> None:
    one = replace(ASKED, parallel=False)
    reader = XmlDispatcher().reader(one)
    reader.feed(TextDelta(CALL % "clock"))
    assert reader.done
    assert [made.name for made in reply(one, CALL % "clock", CALL % "weather").calls] == ["clock"]


def test_settings_reach_the_parser() -> None:
    dispatcher = XmlDispatcher(starts_in_reasoning=True, new_id=lambda: "id7")
    answer = reply(ASKED, f"hm</think>{CALL % 'clock'}", dispatcher=dispatcher)
    assert (answer.reasoning, answer.calls) == ("hm", (ToolCall("id7", "clock"),))
    fragments = XmlDispatcher(stream_arguments_after=0).reader(ASKED)
    assert fragments.feed(TextDelta('<tool_call>{"name": "weather", "arguments": {"days": 1, '))
    with pytest.raises(ValueError, match="nobody"):
        XmlDispatcher(dialect="nobody").reader(ASKED)


def test_a_whole_reply_can_still_learn_that_it_began_with_reasoning() -> None:
    pieces = ("a plan", "</think>an answer")
    assert reply(ASKED, *pieces).content.startswith("a plan")
    whole = reply(replace(ASKED, stream=False), *pieces)
    assert (whole.reasoning, whole.content) == ("a plan", "an answer")


def test_native_changes_nothing_but_a_broken_past() -> None:
    dispatcher = NativeDispatcher()
    assert dispatcher.prepare(ASKED) == ASKED
    cut = replace(ASKED, messages=(*ASKED.messages, Message("assistant", calls=(ToolCall("c", "clock", "{"),))))
    call, result = dispatcher.prepare(cut).messages[-2:]
    assert (call.calls[0].arguments, result.results[0].call_id) == ('{"unreadable_arguments": "{"}', "c")
    assert reply(ASKED, CALL % "clock", dispatcher=dispatcher).content == CALL % "clock"


def test_each_dispatcher_says_its_mode() -> None:
    dispatchers: list[Dispatcher] = [XmlDispatcher(), NativeDispatcher()]
    assert [dispatcher.mode for dispatcher in dispatchers] == ["xml", "native"]

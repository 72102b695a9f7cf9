from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall

from proxy.core.collect import collect
from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
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
from proxy.wire.openai_responses import KEEP_ALIVE, Answering, StreamEncoder, encode_reply
from proxy.wire.openai_responses.tools import ClientTool
from tests.support.responses import events as frames
from tests.support.responses import final, response

KNOWN = {
    "get_weather": ClientTool("function", "get_weather"),
    "crm__find": ClientTool("function", "find", "crm"),
    "patch": ClientTool("custom", "patch"),
    "local_shell": ClientTool("local_shell", "local_shell"),
}


def encoder(**raw: Any) -> StreamEncoder:
    return StreamEncoder(Answering("resp_1", 7, "m", raw, KNOWN))


def stream(*events: Event, **raw: Any) -> bytes:
    encoding = encoder(**raw)
    return encoding.start() + encoding.encode(events) + encoding.done()


def call(index: int, name: str, *pieces: str, end: bool = True) -> list[Event]:
    start: list[Event] = [ToolCallStart(index, f"call_{index}", name)]
    return start + [ToolArgumentsDelta(index, piece) for piece in pieces] + ([ToolCallEnd(index)] if end else [])


def kinds(data: bytes) -> list[str]:
    return [event["type"].removeprefix("response.") for event in frames(data)]


def test_a_text_has_every_event_in_its_order() -> None:
    data = stream(TextDelta("Hel"), TextDelta("lo\n“you”"), Finish("stop"), Usage(3, 4))
    assert kinds(data) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    last = final(data)
    assert last["output"][0]["content"][0]["text"] == "Hello\n“you”"
    assert last["usage"]["total_tokens"] == 7


def test_reasoning_text_and_calls_are_items_one_after_another() -> None:
    data = stream(
        ReasoningDelta("Two "),
        ReasoningDelta("cities."),
        TextDelta("I look."),
        Problem("repaired", "x"),
        *call(0, "get_weather", '{"city"', ': "Oslo"}'),
        TextDelta("\n"),
        *call(1, "get_weather", '{"city": "Rome"}'),
        Finish("tool_calls"),
    )
    last = final(data)
    assert [item["type"] for item in last["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert len({item["id"] for item in last["output"]}) == 4
    thought, _, oslo, rome = last["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": "Two cities."}]
    assert (oslo["call_id"], oslo["name"], oslo["arguments"]) == ("call_0", "get_weather", '{"city": "Oslo"}')
    assert rome["arguments"] == '{"city": "Rome"}'
    assert "function_call_arguments.delta" in kinds(data)


def test_words_after_a_call_are_a_message_of_their_own_and_keep_their_space() -> None:
    first, second = call(0, "get_weather", "{}"), call(1, "get_weather", "{}")
    events = [TextDelta("A"), *first, TextDelta("\n"), *second, TextDelta("\n"), TextDelta("\nB"), Finish("stop")]
    output = final(stream(*events))["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "function_call", "message"]
    words = "".join(item["content"][0]["text"] for item in output if item["type"] == "message")
    assert words == collect(events).content == "A\n\n\nB"


def test_reasoning_is_a_summary_for_clients_that_ask_for_one() -> None:
    data = stream(ReasoningDelta("Hm."), TextDelta("Yes."), Finish("stop"), reasoning={"summary": "auto"})
    assert final(data)["output"][0]["summary"] == [{"type": "summary_text", "text": "Hm."}]
    assert kinds(data)[2:8] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]


def test_a_refusal_is_a_part_of_the_message() -> None:
    data = stream(TextDelta("Well: "), Refusal("I "), Refusal("won't."), Finish("stop"))
    assert [part["type"] for part in final(data)["output"][0]["content"]] == ["output_text", "refusal"]
    assert "refusal.delta" in kinds(data)
    assert "refusal.done" in kinds(data)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert final(stream(*call(0, "get_weather"), Finish("tool_calls")))["output"][0]["arguments"] == "{}"


def test_a_namespaced_call_has_both_parts_of_its_name() -> None:
    data = stream(*call(0, "crm__find", "{}"), Finish("tool_calls"))
    for item in (frames(data)[2]["item"], final(data)["output"][0]):
        assert (item["namespace"], item["name"]) == ("crm", "find")


def test_the_input_of_a_custom_tool_comes_once_the_call_is_complete() -> None:
    data = stream(*call(0, "patch", '{"inp', 'ut": "a\\nb"}'), Finish("tool_calls"))
    (item,) = final(data)["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", "a\nb")
    assert [event["delta"] for event in frames(data) if event["type"].endswith(".delta")] == ["a\nb"]


def test_a_call_of_a_tool_with_a_type_is_the_item_of_that_type() -> None:
    (item,) = final(stream(*call(0, "local_shell", '{"command": ["ls"]}'), Finish("tool_calls")))["output"]
    assert item["action"] == {"type": "exec", "env": {}, "command": ["ls"]}
    (item,) = final(stream(*call(0, "local_shell", "[]"), Finish("tool_calls")))["output"]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", "local_shell", "[]")


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_a_cut_reply_is_incomplete(finish: FinishReason, reason: str) -> None:
    last = final(stream(TextDelta("Half a"), Finish(finish)))
    assert (last["status"], last["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert last["output"][0]["status"] == "incomplete"


def test_a_call_that_does_not_fit_its_own_item_is_a_function_call_with_all_its_events() -> None:
    data = stream(*call(0, "local_shell", '{"x"', ": 1}"), Finish("tool_calls"))
    assert kinds(data)[2:-1] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    added, delta, done, item_done = frames(data)[2:-1]
    assert (added["item"]["type"], added["item"]["arguments"]) == ("function_call", "")
    assert delta["delta"] == done["arguments"] == item_done["item"]["arguments"] == '{"x": 1}'
    (item,) = final(data)["output"]
    assert ResponseFunctionToolCall.model_validate(item).name == "local_shell"


@pytest.mark.parametrize("name", ["get_weather", "patch", "local_shell"])
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_a_cut_call_is_never_done(name: str, finish: FinishReason) -> None:
    data = stream(*call(0, "get_weather", "{}"), *call(1, name, '{"city": "Os', end=False), Finish(finish))
    last = final(data)
    assert last["status"] == "incomplete"
    assert [item["call_id"] for item in last["output"]] == ["call_0"]


def test_an_empty_reply_is_an_empty_message() -> None:
    assert final(stream(Finish("stop")))["output"][0]["content"][0]["text"] == ""
    assert len(final(stream(ReasoningDelta("Hm."), Finish("stop")))["output"]) == 2
    assert final(stream(Finish("length")))["output"] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UpstreamError("It broke.", code="backend_broke_off"), "server_error"),
        (UpstreamError("Slow down.", status=429), "rate_limit_exceeded"),
        (ClientError("No."), "invalid_prompt"),
    ],
)
def test_a_failure_ends_the_stream(error: ToolgraftError, code: str) -> None:
    encoding = encoder()
    data = encoding.start() + encoding.encode([*call(0, "get_weather", "{}"), TextDelta("Wha")])
    data += encoding.error(error)
    last = frames(data)[-1]["response"]
    assert last["status"] == "failed"
    assert last["error"] == {"code": code, "message": error.message}
    assert [item["type"] for item in last["output"]] == ["function_call"]
    assert encoding.done() == b""


def test_a_failure_before_the_start_is_a_whole_stream() -> None:
    assert final(encoder().error(UpstreamError("Gone.")))["error"]["message"] == "Gone."


def test_a_stream_that_ends_without_a_finish_failed() -> None:
    assert final(stream(TextDelta("Wha")))["status"] == "failed"
    assert final(stream(TextDelta("Wha"), Finish("error", "It stopped.")))["error"]["message"] == "It stopped."


def test_the_stream_says_what_the_whole_reply_says() -> None:
    events: list[Event] = [
        ReasoningDelta("Hm."),
        TextDelta("Look: "),
        TextDelta("there."),
        Extra({"annotations": []}),
        *call(0, "get_weather", '{"city": "</tool_call>"}'),
        *call(1, "patch", '{"input": "x"}'),
        *call(2, "local_shell", '{"command": ["ls"]}'),
        Finish("tool_calls"),
        Usage(1, 2, {"prompt_tokens_details": {"cached_tokens": 1}}),
    ]
    streamed = final(stream(*events))
    whole = encode_reply(collect(events), Answering("resp_1", 7, "m", {}, KNOWN))
    response(whole)
    assert json.loads(whole) == streamed


def test_half_a_character_does_no_harm() -> None:
    assert b'"delta":"\\ud83d"' in stream(TextDelta("\ud83d"), TextDelta("\ude00"), Finish("stop"))


def test_silence_is_filled_with_comments() -> None:
    assert KEEP_ALIVE.startswith(b":")
    assert frames(KEEP_ALIVE) == []


TEXTS = st.text(' \n"\\aé', max_size=2) | st.text(st.characters(codec="utf-8"), max_size=5)
SAYINGS = st.builds(TextDelta, TEXTS) | st.builds(ReasoningDelta, TEXTS) | st.builds(Refusal, TEXTS)
CALLS = st.tuples(st.sampled_from([*KNOWN, "other"]), st.lists(TEXTS, max_size=3))


@given(st.lists(SAYINGS | CALLS, max_size=8), st.sampled_from(["stop", "length"]), st.booleans(), st.booleans())
def test_any_reply_is_a_stream_in_order(said: list[Any], finish: FinishReason, summarised: bool, cut: bool) -> None:
    events: list[Event] = []
    calls = 0
    for one in said:
        if isinstance(one, tuple):
            events += call(calls, one[0], *one[1])
            calls += 1
        else:
            events.append(one)
    if cut:
        events += call(calls, "get_weather", '{"', end=False)
    events.append(Finish(finish))
    raw = {"reasoning": {"summary": "auto"}} if summarised else {}
    last = final(stream(*events, **raw))
    reply = collect(events)
    parts = [part for item in last["output"] if item["type"] == "message" for part in item["content"]]
    words = "".join(part["text"] for part in parts if part["type"] == "output_text")
    assert words.strip() == reply.content.strip()
    assert "".join(part["refusal"] for part in parts if part["type"] == "refusal") == reply.refusal
    assert [item["call_id"] for item in last["output"] if "call_id" in item] == [call.id for call in reply.calls]
    assert (last["status"] == "completed") == (finish == "stop" and not cut)

import json
from collections.abc import Iterable

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import ParsedMessage, RawMessageStreamEvent
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from proxy.core.collect import collect
from proxy.core.errors import ClientError
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
from proxy.core.model import Json
from proxy.core.replay import UNREADABLE
from proxy.wire.anthropic_messages import KEEP_ALIVE, StreamEncoder, encode_reply
from proxy.wire.anthropic_messages.reply import SIGNATURE
from proxy.wire.anthropic_messages.stream import HELD
from proxy.wire.sse import SseDecoder

END = [Finish("stop")]
ADAPTER: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)


def encoder() -> StreamEncoder:
    return StreamEncoder(id="msg_1", model="m", input_tokens=9, stop_sequences=["END"])


def stream(events: Iterable[Event]) -> bytes:
    stream = encoder()
    return stream.start() + stream.encode(events) + stream.done()


def read(raw: bytes) -> list[Json]:
    """The events of a stream; each has its name in both places."""
    frames = SseDecoder().feed(raw)
    payloads = [json.loads(frame.data) for frame in frames]
    assert [frame.event for frame in frames] == [payload["type"] for payload in payloads]
    return payloads


def told(events: Iterable[Event]) -> list[Json]:
    """What a whole stream says between its first event and its last two."""
    first, *between, delta, stop = read(stream(events))
    assert (first["type"], delta["type"], stop) == ("message_start", "message_delta", {"type": "message_stop"})
    return between


def merged(raw: bytes) -> ParsedMessage[None]:
    """The message that the SDK makes of a stream."""
    message: ParsedMessage[None] | None = None
    buffers: dict[int, bytes] = {}
    for payload in read(raw):
        event = ADAPTER.validate_python(payload, strict=True)
        message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)
    assert message is not None
    return message


def call(index: int, call_id: str, name: str, *pieces: str) -> list[Event]:
    return [
        ToolCallStart(index, call_id, name),
        *(ToolArgumentsDelta(index, piece) for piece in pieces),
        ToolCallEnd(index),
    ]


def test_the_first_event_is_the_message_still_empty() -> None:
    (start,) = read(encoder().start())
    assert start == {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 0},
        },
    }


def test_one_block_after_another() -> None:
    events = [
        ReasoningDelta("h"),
        ReasoningDelta("m"),
        TextDelta("A "),
        TextDelta("moment."),
        *call(0, "a", "clock", '{"zone"', ': "UTC"}'),
        *call(1, "b", "clock"),
        *END,
    ]
    assert told(events) == [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "h"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": SIGNATURE}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "A "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "moment."}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "a", "name": "clock", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"zone": "UTC"}'},
        },
        {"type": "content_block_stop", "index": 2},
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {"type": "tool_use", "id": "b", "name": "clock", "input": {}},
        },
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 3},
    ]


def test_white_space_opens_no_block_and_is_not_lost_before_words() -> None:
    assert told([TextDelta("\n"), ReasoningDelta(" "), *call(0, "a", "clock"), TextDelta("\n"), *END])[0]["index"] == 0
    assert told([TextDelta("\n"), *END]) == []
    said = told([TextDelta("\n"), TextDelta(" "), TextDelta("x"), TextDelta(" "), TextDelta("y"), *END])
    assert [event["delta"]["text"] for event in said if "delta" in event] == ["\n x", " ", "y"]


@pytest.mark.parametrize(
    "event", [TextDelta(""), ReasoningDelta(""), Refusal(""), Extra({"a": 1}), Problem("repaired", "x"), Usage(1, 1)]
)
def test_what_does_not_show(event: Event) -> None:
    assert encoder().encode([event]) == b""


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([TextDelta("a"), Finish("stop")], "end_turn"),
        ([*call(0, "c", "clock"), Finish("stop")], "tool_use"),
        ([*call(0, "c", "clock"), Finish("length")], "max_tokens"),
        ([TextDelta("a"), Finish("stop", stop_sequence="END")], "stop_sequence"),
        ([Refusal("No."), Finish("stop")], "refusal"),
        ([Finish("content_filter")], "refusal"),
    ],
)
def test_why_it_stopped(events: list[Event], expected: str) -> None:
    message = merged(stream(events))
    assert message.stop_reason == expected
    assert message.stop_sequence == ("END" if expected == "stop_sequence" else None)
    assert bool(message.stop_details) == (expected == "refusal")


def test_the_count_of_tokens_comes_last() -> None:
    *_, delta, _ = read(stream([TextDelta("a"), Finish("stop"), Usage(3, 1)]))
    assert delta["usage"] == {"input_tokens": 3, "output_tokens": 1}
    usage = merged(stream([TextDelta("a"), Finish("stop"), Usage(3, 1)])).usage
    assert (usage.input_tokens, usage.output_tokens) == (3, 1)


def test_of_a_call_that_was_cut_nothing_is_told() -> None:
    raw = stream([TextDelta("a"), ToolCallStart(0, "c", "clock"), ToolArgumentsDelta(0, '{"a'), Finish("stop")])
    message = merged(raw)
    assert [block.type for block in message.content] == ["text"]
    assert message.stop_reason == "max_tokens"


LONG = json.dumps({"text": "x" * HELD})


def test_long_arguments_flow_once_they_are_long() -> None:
    running = encoder()
    assert running.encode([ToolCallStart(0, "c", "write"), ToolArgumentsDelta(0, LONG[:HELD])]) == b""
    start, delta = read(running.encode([ToolArgumentsDelta(0, LONG[HELD:-1])]))
    assert start["content_block"]["name"] == "write"
    assert delta["delta"]["partial_json"] == LONG[:-1]
    more, stop = read(running.encode([ToolArgumentsDelta(0, LONG[-1:]), ToolCallEnd(0)]))
    assert more["delta"]["partial_json"] == LONG[-1:]
    assert stop["type"] == "content_block_stop"


def test_a_long_call_that_was_cut_ends_as_one_that_was() -> None:
    message = merged(stream([ToolCallStart(0, "c", "write"), ToolArgumentsDelta(0, LONG[:-1]), Finish("stop")]))
    assert [block.type for block in message.content] == ["tool_use"]
    assert message.stop_reason == "max_tokens"


def test_arguments_that_are_no_object_are_told_as_what_the_model_wrote() -> None:
    (block,) = merged(stream([*call(0, "c", "clock", "{zone}"), *END])).content
    assert block.type == "tool_use"
    assert block.input == {UNREADABLE: "{zone}"}


def test_once_they_have_flowed_the_stream_ends_with_an_error() -> None:
    *_, delta, last = read(stream([*call(0, "c", "write", LONG[:-1]), TextDelta("more"), *END]))
    assert delta["type"] == "content_block_delta"
    assert last["type"] == "error"
    assert "no JSON object" in last["error"]["message"]


def test_an_error_ends_the_stream() -> None:
    *_, last = read(stream([TextDelta("a"), Finish("error", "The backend gave up.")]))
    assert last == {"type": "error", "error": {"type": "api_error", "message": "The backend gave up."}}


def test_an_error_from_outside() -> None:
    running = encoder()
    assert read(running.error(ClientError("Too slow.")))[0]["error"]["message"] == "Too slow."
    assert running.done() == b""


def test_a_stream_that_never_finished_ends_with_an_error() -> None:
    assert "broke off" in read(stream([TextDelta("half")]))[-1]["error"]["message"]


def test_keep_alives_are_pings() -> None:
    assert read(KEEP_ALIVE) == [{"type": "ping"}]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CALLS = st.lists(
    st.tuples(st.sampled_from(["clock", "weather"]), st.dictionaries(TEXT, TEXT | st.integers(0, 99), max_size=2)),
    max_size=3,
)


@given(
    st.lists(TEXT, max_size=4),
    st.lists(TEXT, max_size=4),
    CALLS,
    st.sampled_from(["stop", "tool_calls", "length", "content_filter"]),
)
def test_the_sdk_makes_the_same_message_of_a_stream_and_of_a_whole_reply(
    reasoning: list[str], text: list[str], calls: list[tuple[str, Json]], reason: FinishReason
) -> None:
    events: list[Event] = [*map(ReasoningDelta, reasoning), *map(TextDelta, text)]
    for index, (name, arguments) in enumerate(calls):
        events += call(index, f"call_{index}", name, json.dumps(arguments))
    events += [Finish(reason), Usage(1, 2)]
    whole = ParsedMessage.model_validate_json(encode_reply(collect(events), id="msg_1", model="m"))
    assert merged(stream(events)).to_dict() == whole.to_dict()

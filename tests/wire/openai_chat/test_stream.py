import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

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
from proxy.wire.openai_chat import KEEP_ALIVE, StreamEncoder
from proxy.wire.sse import SseDecoder

END = [Finish("stop")]


def encoder(*, include_usage: bool = False, legacy: bool = False) -> StreamEncoder:
    return StreamEncoder(
        id="chatcmpl-1", created=1700000000, model="m", include_usage=include_usage, legacy=legacy, custom={"shell"}
    )


def stream(events: Iterable[Event], *, include_usage: bool = False, legacy: bool = False) -> bytes:
    stream = encoder(include_usage=include_usage, legacy=legacy)
    return stream.start() + stream.encode(events) + stream.done()


def data(raw: bytes) -> list[str]:
    decoder = SseDecoder()
    return [frame.data for frame in (*decoder.feed(raw), *decoder.close())]


def chunks(raw: bytes) -> list[Json]:
    """The chunks of a whole stream, each checked against the SDK's type."""
    *bodies, done = data(raw)
    assert done == "[DONE]"
    for body in bodies:
        ChatCompletionChunk.model_validate_json(body, strict=True)
    return [json.loads(body) for body in bodies]


def deltas(raw: bytes) -> list[Json]:
    return [choice["delta"] for chunk in chunks(raw) for choice in chunk["choices"]]


def call(index: int, call_id: str, name: str, *pieces: str) -> list[Event]:
    return [
        ToolCallStart(index, call_id, name),
        *(ToolArgumentsDelta(index, piece) for piece in pieces),
        ToolCallEnd(index),
    ]


def test_the_first_chunk_is_the_role_and_nothing_repeats_it() -> None:
    first, *rest = deltas(stream([TextDelta("a"), *call(0, "c", "clock"), *END]))
    assert first == {"role": "assistant", "content": None}
    assert not any("role" in delta for delta in rest)


def test_every_chunk_carries_the_same_identity() -> None:
    events = [ReasoningDelta("r"), TextDelta("a"), *call(0, "c", "clock", "{}"), Finish("stop"), Usage(1, 2)]
    for chunk in chunks(stream(events, include_usage=True)):
        assert [chunk[key] for key in ("id", "object", "created", "model")] == [
            "chatcmpl-1",
            "chat.completion.chunk",
            1700000000,
            "m",
        ]
        assert [choice["index"] for choice in chunk["choices"]] in ([0], [])


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        (TextDelta('say "hi"\n'), {"content": 'say "hi"\n'}),
        (TextDelta("東京🌧"), {"content": "東京🌧"}),
        (ReasoningDelta("hm"), {"reasoning_content": "hm"}),
        (Refusal("No."), {"refusal": "No."}),
        (Extra({"audio": {"id": "a"}}), {"audio": {"id": "a"}}),
    ],
)
def test_plain_deltas(event: Event, delta: Json) -> None:
    assert deltas(stream([event, *END]))[1] == delta


@pytest.mark.parametrize(
    "event", [TextDelta(""), ReasoningDelta(""), Refusal(""), Extra({}), Problem("repaired", "x"), Usage(1, 1)]
)
def test_what_does_not_show(event: Event) -> None:
    assert encoder().encode([event]) == b""


def test_calls_come_one_by_one_and_name_themselves_once() -> None:
    events = [*call(0, "a", "clock", '{"zone"', ': "UTC"}'), *call(1, "b", "clock", "", "{}"), *END]
    assert deltas(stream(events))[1:] == [
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "clock", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"zone"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ': "UTC"}'}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "clock", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]


def test_no_arguments_are_an_empty_object() -> None:
    assert deltas(stream([*call(0, "a", "clock", ""), *END]))[2] == {
        "tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]
    }


def test_a_custom_call_carries_its_text() -> None:
    bodies = [json.loads(body) for body in data(stream([*call(0, "a", "shell", '{"input"', ': "ls"}'), *END]))[:-1]]
    assert [body["choices"][0]["delta"].get("tool_calls") for body in bodies[1:]] == [
        [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "shell", "input": ""}}],
        [{"index": 0, "custom": {"input": "ls"}}],
        None,
    ]


def test_the_older_shape_has_one_call() -> None:
    events = [*call(0, "a", "clock", '{"zone": ', '"UTC"}'), *call(1, "b", "clock", "{}"), *END]
    raw = stream(events, legacy=True)
    assert deltas(raw)[1:] == [
        {"function_call": {"name": "clock", "arguments": ""}},
        {"function_call": {"arguments": '{"zone": '}},
        {"function_call": {"arguments": '"UTC"}'}},
        {},
    ]
    assert chunks(raw)[-1]["choices"][0]["finish_reason"] == "function_call"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([TextDelta("a"), Finish("stop")], "stop"),
        ([TextDelta("a"), Finish("tool_calls")], "stop"),
        ([*call(0, "c", "clock"), Finish("stop")], "tool_calls"),
        ([*call(0, "c", "clock"), Finish("length")], "length"),
        ([*call(0, "c", "clock"), Finish("content_filter")], "content_filter"),
        ([ToolCallStart(0, "c", "clock"), ToolArgumentsDelta(0, '{"a'), Finish("length")], "length"),
        ([ToolCallStart(0, "c", "clock"), ToolArgumentsDelta(0, '{"a'), Finish("stop")], "length"),
    ],
)
def test_one_finish_reason_in_the_last_choice(events: list[Event], expected: str) -> None:
    reasons = [choice["finish_reason"] for chunk in chunks(stream(events)) for choice in chunk["choices"]]
    assert reasons[-1] == expected
    assert set(reasons[:-1]) == {None}


def test_a_reply_without_words_has_empty_content() -> None:
    assert deltas(stream(END))[-1] == {"content": ""}
    assert deltas(stream([TextDelta("a"), *END]))[-1] == {}


def test_usage_only_on_request_and_last() -> None:
    events: list[Event] = [
        TextDelta("a"),
        Finish("stop"),
        Usage(3, 1, {"prompt_tokens": 3, "prompt_tokens_details": {"x": 1}}),
    ]
    assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks(stream(events)))
    last = chunks(stream(events, include_usage=True))[-1]
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "total_tokens": 4,
        "prompt_tokens_details": {"x": 1},
    }
    assert chunks(stream(END, include_usage=True))[-1]["usage"]["total_tokens"] == 0


def test_an_error_ends_the_stream_without_finish_and_done() -> None:
    bodies = data(stream([TextDelta("a"), Finish("error", "The backend gave up.")], include_usage=True))
    assert json.loads(bodies[-1]) == {
        "error": {"message": "The backend gave up.", "type": "upstream_error", "param": None, "code": None}
    }
    assert all(json.loads(body)["choices"][0]["finish_reason"] is None for body in bodies[:-1])


def test_an_error_from_outside() -> None:
    running = encoder()
    assert json.loads(data(running.error(ClientError("Too slow.", code="late")))[0])["error"]["code"] == "late"
    assert running.done() == b""


def test_a_stream_that_never_finished_ends_with_an_error() -> None:
    bodies = data(stream([TextDelta("half")]))
    assert "broke off" in json.loads(bodies[-1])["error"]["message"]


def test_keep_alives_are_comments() -> None:
    assert data(KEEP_ALIVE + stream(END)) == data(stream(END))


def test_halves_of_a_character_in_two_deltas_meet_again() -> None:
    bodies = data(stream([TextDelta("\ud83d"), TextDelta("\ude00"), *END]))
    assert [json.loads(body)["choices"][0]["delta"] for body in bodies[1:3]] == [
        {"content": "\ud83d"},
        {"content": "\ude00"},
    ]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PIECES = st.lists(TEXT, max_size=4)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["clock", "weather"]),
        st.dictionaries(TEXT, TEXT | st.integers(), max_size=2).map(json.dumps),
        st.lists(st.integers(0, 20), max_size=3),
    ),
    max_size=3,
)


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


@given(PIECES, PIECES, CALLS, st.sampled_from(["stop", "tool_calls", "content_filter"]), st.integers(0, 300))
def test_the_sdk_puts_the_reply_together_again(
    reasoning: list[str],
    text: list[str],
    calls: list[tuple[str, str, list[int]]],
    reason: FinishReason,
    read: int,
) -> None:
    events: list[Event] = [*map(ReasoningDelta, reasoning), *map(TextDelta, text)]
    for index, (name, arguments, places) in enumerate(calls):
        events += call(index, f"call_{index}", name, *cut(arguments, places))
    raw = stream([*events, Finish(reason), Usage(1, 2)], include_usage=True)
    decoder = SseDecoder()
    frames = [*decoder.feed(raw[:read]), *decoder.feed(raw[read:]), *decoder.close()]
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for frame in frames[:-1]:
        state.handle_chunk(ChatCompletionChunk.model_validate_json(frame.data, strict=True))
    completion = state.current_completion_snapshot
    message = completion.choices[0].message
    assert message.role == "assistant"
    assert message.content == ("".join(text) or (None if calls else ""))
    assert (message.model_extra or {}).get("reasoning_content", "") == "".join(reasoning)
    assert [(made.id, made.function.name, made.function.arguments) for made in message.tool_calls or []] == [
        (f"call_{index}", name, arguments) for index, (name, arguments, _) in enumerate(calls)
    ]
    expected = "tool_calls" if calls and reason != "content_filter" else reason if reason != "tool_calls" else "stop"
    assert completion.choices[0].finish_reason == expected
    assert completion.usage is not None
    assert completion.usage.total_tokens == 3

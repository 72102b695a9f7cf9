import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.collect import Reply, collect
from proxy.core.errors import UpstreamError
from proxy.core.events import Event, Extra, Finish, FinishReason, ReasoningDelta, Refusal, TextDelta, Usage
from proxy.core.model import Json, ToolCall
from proxy.wire.openai_chat import StreamEncoder, encode_reply
from proxy.wire.sse import Frame, SseDecoder
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply

FIXTURES = Path(__file__).parents[3] / "fixtures" / "wire"
DONE = Frame("message", "[DONE]")


def chunk(delta: Json = None, finish: Json = None, **fields: Json) -> Frame:
    return Frame("message", json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields}))


def raw(payload: Json) -> Frame:
    return Frame("message", json.dumps(payload))


def numbered() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"new_{next(numbers)}"


def read(*frames: Frame) -> list[Event]:
    decoder = ChunkDecoder(new_id=numbered())
    return [event for frame in frames for event in decoder.feed(frame)] + decoder.close()


def read_file(name: str) -> Reply:
    decoder, sse = ChunkDecoder(), SseDecoder()
    frames = [*sse.feed((FIXTURES / "streams" / name).read_bytes()), *sse.close()]
    reply = collect([event for frame in frames for event in decoder.feed(frame)])
    assert decoder.saw_done
    assert decoder.finished
    assert decoder.close() == []
    return reply


def test_llama_cpp_calls() -> None:
    reply = read_file("llama_cpp_two_calls.sse")
    assert reply.calls == (
        ToolCall("Xk2", "river_level", '{"river": "Elbe"}'),
        ToolCall("Yz9", "river_level", '{"river": "Oder"}'),
    )
    assert (reply.content, reply.finish) == ("Two rivers.", "tool_calls")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (180, 21)
    assert reply.usage.raw["prompt_tokens_details"] == {"cached_tokens": 64}


def test_a_call_cut_by_the_token_limit() -> None:
    assert read_file("llama_cpp_cut_call.sse") == Reply(finish="length")


def test_reasoning_of_llama_cpp() -> None:
    assert read_file("llama_cpp_reasoning.sse") == Reply(content="Good day.", reasoning="Small talk.", finish="stop")


def test_llama_cpp_python_says_everything_twice() -> None:
    assert read_file("llama_cpp_python_named.sse") == Reply(
        calls=(ToolCall("call__0_river_level_cmpl-1f", "river_level", '{ "river": "Elbe" }'),), finish="tool_calls"
    )


def test_ollama_text() -> None:
    reply = read_file("ollama_text.sse")
    assert (reply.content, reply.finish) == ("Good day.", "length")
    assert reply.usage == Usage(9, 2, {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11})


@pytest.mark.parametrize(
    ("delta", "events"),
    [
        (None, []),
        ({}, []),
        ("x", []),
        ({"role": "assistant", "content": None}, []),
        ({"role": "assistant", "content": ""}, []),
        ({"content": "a"}, [TextDelta("a")]),
        ({"content": [{"type": "text", "text": "a"}]}, [TextDelta("a")]),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "a"},
                ]
            },
            [ReasoningDelta("r"), TextDelta("a")],
        ),
        ({"reasoning_content": "r"}, [ReasoningDelta("r")]),
        ({"reasoning": "r", "content": None}, [ReasoningDelta("r")]),
        ({"reasoning_content": "r", "reasoning": "r", "content": "a"}, [ReasoningDelta("r"), TextDelta("a")]),
        ({"thinking": "r"}, [ReasoningDelta("r")]),
        ({"refusal": "No."}, [Refusal("No.")]),
        ({"refusal": None, "annotations": [], "audio": None}, []),
        ({"annotations": [1], "audio": {"id": "x"}}, [Extra({"annotations": [1], "audio": {"id": "x"}})]),
        ({"tool_calls": None, "function_call": None}, []),
    ],
)
def test_deltas(delta: Json, events: list[Event]) -> None:
    assert read(chunk(delta), DONE) == events


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"choices": []},
        {"choices": None},
        {"choices": [None]},
        {"choices": [{"index": 0}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
    ],
)
def test_chunks_that_say_nothing(payload: Json) -> None:
    assert read(raw(payload), DONE) == []


def test_a_choice_without_an_index_is_the_first() -> None:
    assert read(raw({"choices": [{"delta": {"content": "a"}}]}), DONE) == [TextDelta("a")]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("max_tokens", "length"),
        ("MODEL_LENGTH", "length"),
        ("eos", "stop"),
    ],
)
def test_finish_reasons(word: str, reason: FinishReason) -> None:
    assert read(chunk({}, word), DONE) == [Finish(reason)]


def test_a_backend_that_gives_up() -> None:
    [finish] = read(chunk({}, "abort"), DONE)
    assert isinstance(finish, Finish)
    assert finish.reason == "error"
    assert "'abort'" in (finish.message or "")


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ({"stop_reason": "END"}, "END"),  # vLLM
        ({"matched_stop": "END"}, "END"),  # SGLang
        ({"stop_reason": 151645}, None),  # a token's number
        ({"stop_reason": None}, None),
        ({}, None),
    ],
)
def test_where_the_backend_stopped(told: Json, at: str | None) -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "stop", **told}
    assert read(Frame("message", json.dumps({"choices": [choice]})), DONE) == [Finish("stop", stop_sequence=at)]


def test_finish_and_usage_come_at_the_end_whatever_follows_the_reason() -> None:
    first = chunk({}, "stop", usage={"prompt_tokens": 1, "completion_tokens": 1})
    late = chunk({"content": "late"}, "", usage={"prompt_tokens": 1, "completion_tokens": 2})
    assert read(first, late, DONE) == [
        TextDelta("late"),
        Finish("stop"),
        Usage(1, 2, {"prompt_tokens": 1, "completion_tokens": 2}),
    ]


@pytest.mark.parametrize(
    ("frames", "finished", "saw_done", "events"),
    [
        ([chunk({"content": "a"}, "stop"), DONE], True, True, [TextDelta("a"), Finish("stop")]),
        ([chunk({"content": "a"}, "stop")], True, False, [TextDelta("a"), Finish("stop")]),
        ([chunk({"content": "a"}), DONE], False, True, [TextDelta("a")]),
        ([chunk({"content": "a"})], False, False, [TextDelta("a")]),
        ([], False, False, []),
    ],
)
def test_how_a_stream_ended(frames: list[Frame], finished: bool, saw_done: bool, events: list[Event]) -> None:
    decoder = ChunkDecoder()
    read = [event for frame in frames for event in decoder.feed(frame)] + decoder.close()
    assert (decoder.finished, decoder.saw_done, read) == (finished, saw_done, events)


CUT_CALL = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "level", "arguments": '{"river": "El'}}]}


@pytest.mark.parametrize(
    ("frames", "finish"),
    [
        ([chunk(CUT_CALL, "length"), DONE], "length"),
        ([chunk(CUT_CALL, "tool_calls"), DONE], "length"),
        ([chunk(CUT_CALL, "stop")], "length"),
        ([chunk(CUT_CALL), DONE], "length"),
        ([chunk(CUT_CALL, "content_filter"), DONE], "content_filter"),
        ([chunk(CUT_CALL, "error"), DONE], "error"),
        ([chunk(CUT_CALL)], None),
    ],
)
def test_a_cut_call_is_not_a_call_whatever_the_backend_says(frames: list[Frame], finish: str | None) -> None:
    reply = collect(read(*frames))
    assert (reply.calls, reply.finish) == ((), finish)


def test_nothing_counts_after_done() -> None:
    assert read(chunk({}, "stop"), DONE, chunk({"content": "late"}), Frame("error", "{}")) == [Finish("stop")]


@pytest.mark.parametrize(
    ("frame", "status", "words", "code"),
    [
        (raw({"error": {"message": "busy, try later", "type": "server_error", "code": None}}), 502, "busy", None),
        (raw({"error": {"message": "no", "type": "invalid_request_error"}}), 400, "no", None),
        (raw({"error": {"message": "no", "code": 429}}), 429, "no", None),
        (raw({"error": "an error was encountered"}), 502, "an error was encountered", None),
        (raw({"object": "error", "message": "no", "code": 422}), 422, "no", None),
        (
            Frame("error", '{"code":400,"message":"request is larger than the context size"}'),
            400,
            "larger than the context size",
            "context_length_exceeded",
        ),
        (Frame("error", "out of memory"), 502, "out of memory", None),
        (Frame("error", '{"what": 1}'), 502, '{"what":1}', None),
        (Frame("message", "<html>"), 502, "not a chunk: <html>", None),
        (Frame("message", '"text"'), 502, 'not a chunk: "text"', None),
        (Frame("message", "x" * 1000), 502, "x" * 200 + "…", None),
    ],
)
def test_errors_in_a_stream(frame: Frame, status: int, words: str, code: str | None) -> None:
    with pytest.raises(UpstreamError) as caught:
        read(chunk({"content": "a"}), frame)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert words in caught.value.message


def test_an_error_that_is_null_is_none() -> None:
    assert read(chunk({"content": "a"}, error=None), DONE) == [TextDelta("a")]


def whole(name: str) -> Reply:
    return collect(decode_reply((FIXTURES / "replies" / name).read_bytes()))


def test_whole_replies() -> None:
    reply = whole("llama_cpp_call.json")
    assert reply.calls == (ToolCall("Xk2", "river_level", '{"river": "Elbe"}'),)
    assert (reply.content, reply.finish) == ("", "tool_calls")
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == 180
    reply = whole("llama_cpp_python_call.json")
    assert reply.calls == (ToolCall("call__0_river_level_cmpl-1f", "river_level", '{ "river" : "Elbe" }'),)


def test_a_cut_call_that_is_called_finished() -> None:
    reply = whole("llama_cpp_python_cut_call.json")
    assert (reply.calls, reply.finish) == ((), "length")


@pytest.mark.parametrize(
    ("choice", "reply"),
    [
        ({"message": {"content": "a"}}, Reply(content="a", finish="stop")),
        ({"message": {"content": None}, "finish_reason": None}, Reply(finish="stop")),
        ({"message": {"content": [{"type": "text", "text": "a"}]}}, Reply(content="a", finish="stop")),
        ({"message": {"content": "a", "reasoning": "r"}}, Reply(content="a", reasoning="r", finish="stop")),
        (
            {"message": {"content": None, "function_call": {"name": "level", "arguments": None}}},
            Reply(calls=(ToolCall("new_1", "level"),), finish="stop"),
        ),
        ({"message": {}, "finish_reason": "length"}, Reply(finish="length")),
    ],
)
def test_messages(choice: Json, reply: Reply) -> None:
    body = json.dumps({"choices": [choice]}).encode()
    assert collect(decode_reply(body, new_id=numbered())) == reply


def test_calls_without_an_id_get_one_of_their_own() -> None:
    made = {"message": {"tool_calls": [{"function": {"name": "level"}}, {"function": {"name": "level"}}]}}
    first, second = collect(decode_reply(json.dumps({"choices": [made]}).encode())).calls
    assert first.id != second.id
    assert first.id.startswith("call_")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 502, "empty"),
        (b"<html>", 502, "not a chat completion: <html>"),
        (b'"hi"', 502, "not a chat completion"),
        (b'{"choices": []}', 502, "not a chat completion"),
        (b'{"choices": [{"index": 0, "text": "a"}]}', 502, "not a chat completion"),
        (b'{"error": {"message": "no", "code": 503}}', 503, "no"),
        (b'{"error": "no", "choices": [{"message": {"content": ""}}]}', 502, "no"),
        (b"\xff\xfe", 502, "not a chat completion"),
    ],
)
def test_what_is_no_reply(body: bytes, status: int, words: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        decode_reply(body)
    assert caught.value.status == status
    assert words in caught.value.message


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
REPLIES = st.builds(
    Reply,
    content=TEXT,
    reasoning=TEXT,
    refusal=TEXT,
    calls=st.lists(
        st.builds(lambda value: ("level", json.dumps(value)), st.dictionaries(TEXT, TEXT, max_size=2)), max_size=3
    ).map(lambda made: tuple(ToolCall(f"call_{index}", name, text) for index, (name, text) in enumerate(made))),
    finish=st.sampled_from(["length", "content_filter"]),
)


@given(REPLIES, st.integers(1, 200))
def test_what_our_own_encoder_writes_is_read_back(reply: Reply, step: int) -> None:
    body = encode_reply(reply, id="x", created=1, model="m")
    events = decode_reply(body)
    assert collect(events) == Reply(
        reply.content, reply.reasoning, reply.refusal, reply.calls, reply.finish, usage=collect(events).usage
    )
    encoder = StreamEncoder(id="x", created=1, model="m")
    stream = encoder.start() + encoder.encode(events) + encoder.done()
    sse, decoder = SseDecoder(), ChunkDecoder()
    pieces = [stream[start : start + step] for start in range(0, len(stream), step)]
    streamed = [event for piece in pieces for frame in sse.feed(piece) for event in decoder.feed(frame)]
    assert collect(streamed) == reply

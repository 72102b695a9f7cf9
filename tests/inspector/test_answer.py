from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.collect import Reply, collect
from proxy.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.inspector.answer import chat_events, frames_of, read_answer
from proxy.surfaces.chat import Chat
from proxy.surfaces.messages import Messages
from proxy.surfaces.responses import Responses

TOOL = {"name": "weather", "input_schema": {"type": "object"}, "parameters": {"type": "object"}, "type": "function"}
ASKED: dict[str, Any] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": TOOL}]},
    "messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]},
    "responses": {"input": "hi", "tools": [TOOL]},
}
SURFACES: dict[str, Any] = {"chat": Chat, "messages": Messages, "responses": Responses}
EVENTS: list[Event] = [
    ReasoningDelta("Hm."),
    TextDelta("Let me "),
    TextDelta("look."),
    ToolCallStart(0, "call_a", "weather"),
    ToolArgumentsDelta(0, '{"city": '),
    ToolArgumentsDelta(0, '"Chur"}'),
    ToolCallEnd(0),
    ToolCallStart(1, "call_b", "weather"),
    ToolArgumentsDelta(1, "{}"),
    ToolCallEnd(1),
    Finish("tool_calls"),
    Usage(3, 4),
]


def told(name: str, events: list[Event], *, stream: bool) -> bytes:
    """What a client of that surface is sent."""
    surface = SURFACES[name](json.dumps({**ASKED[name], "model": "m", "stream": stream}).encode())
    surface.request()
    if not stream:
        whole: bytes = surface.encode(collect(events))
        return whole
    encoder = surface.encoder()
    pieces = [encoder.start(), *(encoder.encode([event]) for event in events), encoder.done()]
    return b"".join(pieces)


def essence(reply: Reply | None) -> Any:
    assert reply is not None
    calls = [(call.name, json.loads(call.arguments)) for call in reply.calls]
    return reply.content, reply.reasoning, calls, reply.finish


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SURFACES)
def test_what_was_encoded_is_read(name: str, stream: bool) -> None:
    reply = read_answer(name, told(name, EVENTS, stream=stream))
    assert essence(reply) == (
        "Let me look.",
        "Hm.",
        [("weather", {"city": "Chur"}), ("weather", {})],
        "tool_calls",
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SURFACES)
def test_plain_text(name: str, stream: bool) -> None:
    reply = read_answer(name, told(name, [TextDelta("Hello."), Finish("stop"), Usage(1, 2)], stream=stream))
    assert essence(reply) == ("Hello.", "", [], "stop")


@pytest.mark.parametrize("name", SURFACES)
def test_half_a_stream_is_read_as_far_as_it_goes(name: str) -> None:
    whole = told(name, EVENTS, stream=True)
    for at in range(0, len(whole), 7):
        reply = read_answer(name, whole[:at])
        assert reply is None or len(reply.calls) <= 2


@pytest.mark.parametrize("name", [*SURFACES, "unheard of"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"error": {"message": "no"}}', b"data: 3\n\n", b"\xff"])
def test_what_is_no_answer(name: str, data: bytes) -> None:
    reply = read_answer(name, data)
    assert reply is None or not reply.calls


def test_an_error_in_a_stream_ends_what_can_be_read() -> None:
    data = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: {"error": {"message": "no"}}\n\n'
    assert [event for event in chat_events(data) if isinstance(event, TextDelta)] == [TextDelta("a")]


def test_a_frame_without_an_end() -> None:
    assert frames_of(b"data: " + b"x" * (64 * 1024 * 1024)) == []


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), st.sampled_from([*SURFACES]))
def test_it_never_raises(data: bytes, name: str) -> None:
    for each in (data, b"data: " + data + b"\n\n", b'data: {"type": "content_block_delta"}\n\n' + data):
        read_answer(name, each)

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.core.dispatch import XmlDispatcher
from proxy.core.errors import UpstreamError
from proxy.core.events import Event, Finish, TextDelta, ToolCallEnd, Usage
from proxy.core.model import Message, Request, TextPart, Tool
from proxy.relay.pump import Pump, is_event_stream
from proxy.telemetry import RequestLog
from tests.relay.replies import FakeReply

TOOL = Tool("f", parameters={"type": "object", "properties": {}})
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
DONE = b"data: [DONE]\n\n"


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def pump(reply: FakeReply, *, parallel: bool = True, streamed: bool = True) -> tuple[Pump, RequestLog]:
    request = Request((Message("user", (TextPart("hi"),)),), tools=(TOOL,), parallel=parallel, stream=streamed)
    entry = RequestLog("r1", "chat")
    return Pump(reply.cast(), XmlDispatcher().reader(request), entry, streamed=streamed, prompt_size=41), entry


async def gather(reply: FakeReply, **options: Any) -> tuple[list[Event], RequestLog]:
    pumped, entry = pump(reply, **options)
    return [event async for batch in pumped.batches() for event in batch], entry


async def until_it_fails(pumped: Pump) -> list[Event]:
    events: list[Event] = []
    try:
        async for batch in pumped.batches():
            events += batch
    except UpstreamError:
        return events
    raise AssertionError("it did not fail")


def content(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_events_come_in_batches_as_the_backend_s_reads_do() -> None:
    pumped, _ = pump(FakeReply(chunk("a") + chunk("b"), chunk("c"), chunk(finish="stop") + DONE))
    batches = [batch async for batch in pumped.batches()]
    assert [content(batch) for batch in batches[:2]] == ["ab", "c"]
    assert [type(event) for event in batches[-1]] == [Finish, Usage]


async def test_the_first_batch_comes_with_the_first_event_though_nothing_can_be_told_yet() -> None:
    pumped, _ = pump(FakeReply(chunk(), open_ended=True))
    batches = pumped.batches()
    assert await anext(batches) == []
    await batches.aclose()


async def test_the_backend_s_count_of_tokens_is_kept() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 6}
    events, entry = await gather(FakeReply(chunk("a"), chunk(finish="stop"), chunk(usage=usage), DONE))
    assert [event for event in events if isinstance(event, Usage)] == [Usage(5, 6, usage)]
    assert (entry.prompt_tokens, entry.completion_tokens, entry.estimated) == (5, 6, False)


async def test_tokens_are_estimated_when_the_backend_does_not_count_them() -> None:
    events, entry = await gather(FakeReply(chunk("12345"), chunk(finish="stop"), DONE))
    assert [event for event in events if isinstance(event, Usage)] == [Usage(11, 2)]
    assert entry.estimated


async def test_done_without_a_finish_reason_is_a_stop() -> None:
    events, _ = await gather(FakeReply(chunk("Hi."), DONE))
    assert content(events) == "Hi."
    assert Finish("stop") in events


async def test_a_finish_reason_without_done_is_the_end_too_and_what_was_held_back_comes() -> None:
    events, _ = await gather(FakeReply(chunk("Hi <"), chunk(finish="stop")))
    assert content(events) == "Hi <"
    assert Finish("stop") in events


async def test_a_connection_that_breaks_after_the_finish_reason_loses_nothing() -> None:
    events, _ = await gather(FakeReply(chunk("Hi <"), chunk(finish="stop"), broken=True))
    assert content(events) == "Hi <"
    assert Finish("stop") in events


@pytest.mark.parametrize("broken", [False, True])
async def test_a_stream_that_ends_early_is_an_error_after_the_text_that_was_held_back(broken: bool) -> None:
    pumped, _ = pump(FakeReply(chunk("Hi <too"), broken=broken))
    events = await until_it_fails(pumped)
    assert content(events) == "Hi <too"
    assert not any(isinstance(event, Finish) for event in events)


@pytest.mark.parametrize("broken", [False, True])
async def test_a_call_that_the_stream_broke_off_in_is_not_told_of(broken: bool) -> None:
    pumped, entry = pump(FakeReply(chunk(CALL + CALL[:-20]), broken=broken))
    events = await until_it_fails(pumped)
    assert content(events) == ""
    assert sum(isinstance(event, ToolCallEnd) for event in events) == entry.calls == 1
    assert entry.problems["cut"] == 1


async def test_text_that_came_in_one_read_is_sent_on_as_one() -> None:
    pumped, _ = pump(FakeReply(chunk("a") + chunk("b") + chunk("c"), chunk(finish="stop"), DONE))
    assert await anext(pumped.batches()) == [TextDelta("abc")]


async def test_text_that_came_with_an_error_is_told_before_it() -> None:
    pumped, _ = pump(FakeReply(chunk("Hi <") + b'data: {"error": {"message": "busy"}}\n\n', DONE))
    assert content(await until_it_fails(pumped)) == "Hi <"


async def test_what_comes_after_the_end_of_a_reply_that_counts_is_no_error() -> None:
    made_up = chunk(CALL + "\n<tool_result>")
    events, _ = await gather(FakeReply(made_up + b'data: {"error": {"message": "busy"}}\n\n'))
    assert Finish("tool_calls") in events


async def test_an_error_before_any_event_is_raised_at_once() -> None:
    pumped, _ = pump(FakeReply(b'data: {"error": {"message": "busy"}}\n\n', DONE))
    with pytest.raises(UpstreamError, match="busy"):
        await anext(pumped.batches())


async def test_the_upstream_is_closed_when_the_one_allowed_call_is_complete() -> None:
    reply = FakeReply(chunk(CALL), chunk("never read"), open_ended=True)
    events, entry = await gather(reply, parallel=False)
    assert reply.pieces == [chunk("never read")]
    assert reply.closed
    assert (entry.calls, entry.estimated) == (1, True)
    assert Finish("tool_calls") in events


async def test_the_upstream_is_closed_when_the_model_makes_up_a_result() -> None:
    reply = FakeReply(chunk(CALL + "\n<tool_result>"), chunk("never read"), open_ended=True)
    events, entry = await gather(reply)
    assert reply.closed
    assert content(events) == ""
    assert entry.problems["fabricated_result"] == 1


async def test_a_whole_reply_is_read_the_same_way() -> None:
    body = json.dumps({"choices": [{"message": {"content": f"Look.\n{CALL}"}, "finish_reason": "stop"}]}).encode()
    reply = FakeReply(body[:7], body[7:], content_type="application/json")
    events, entry = await gather(reply, streamed=False)
    assert content(events).strip() == "Look."
    assert Finish("tool_calls") in events
    assert entry.calls == 1
    assert reply.closed


async def test_closing_early_closes_the_reply() -> None:
    reply = FakeReply(chunk("a"), open_ended=True)
    pumped, _ = pump(reply)
    batches = pumped.batches()
    await anext(batches)
    await batches.aclose()
    assert reply.closed


@pytest.mark.parametrize(
    ("content_type", "asked", "expected"),
    [
        ("text/event-stream; charset=utf-8", False, True),
        ("application/json", True, False),
        ("text/html", True, False),
        ("text/plain", True, True),
        ("", True, True),
        ("", False, False),
    ],
)
def test_what_a_body_is_goes_by_what_it_says(content_type: str, asked: bool, expected: bool) -> None:
    assert is_event_stream(FakeReply(content_type=content_type).cast(), asked) is expected


async def test_a_reply_is_whole_when_nothing_follows_its_finish_reason_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.relay.pump.PATIENCE", 0.01)
    reply = FakeReply(chunk(CALL), chunk(finish="stop"), chunk(usage={"prompt_tokens": 5}), open_ended=True)
    events, _ = await gather(reply)
    assert [type(event) for event in events[-3:]] == [ToolCallEnd, Finish, Usage]
    assert reply.closed

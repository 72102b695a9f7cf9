from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator

import pytest

from proxy.core.collect import Reply, collect
from proxy.core.dispatch import XmlDispatcher
from proxy.core.errors import UpstreamError
from proxy.core.events import Event, Extra, Problem, TextDelta
from proxy.core.model import Message, Request, TextPart, Tool, ToolChoice
from proxy.relay.pump import Pump
from proxy.relay.reask import with_reasks
from proxy.telemetry import RequestLog
from tests.relay.replies import FakeReply

TOOL = Tool("f", parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
GOOD = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'
BAD = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
UNKNOWN = '<tool_call>{"name": "g", "arguments": {}}</tool_call>'
BROKEN = '<tool_call>{"name": "f", "arguments": {"n": '
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}, "note": "x"}


def sse(*texts: str, finish: str = "stop", usage: object = USAGE) -> list[bytes]:
    """A stream with a read for each text, and one for its end."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    frames = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}
    return [frame.encode() for frame in (*frames, f"data: {json.dumps(last)}\n\ndata: [DONE]\n\n")]


class Model:
    """Gives ``replies`` in turn, and keeps what it was asked."""

    def __init__(self, *replies: FakeReply | UpstreamError, stream: bool, choice: ToolChoice | None = None) -> None:
        self.replies = list(replies)
        self.request = Request(
            (Message("user", (TextPart("hi"),)),), tools=(TOOL,), stream=stream, tool_choice=choice or ToolChoice()
        )
        self.asked: list[Request] = []
        self.log = RequestLog("r1", "chat")

    async def send(self, prepared: Request, log: RequestLog) -> Pump:
        self.asked.append(prepared)
        reply = self.replies.pop(0)
        if isinstance(reply, UpstreamError):
            raise reply
        return Pump(reply.cast(), XmlDispatcher().reader(self.request), log, streamed=True)

    async def batches(self, times: int = 1) -> AsyncGenerator[list[Event], None]:
        prepared = XmlDispatcher().prepare(self.request)
        first = await self.send(prepared, self.log)
        return with_reasks(first, self.send, prepared=prepared, request=self.request, times=times, log=self.log)

    async def reply(self, times: int = 1) -> Reply:
        return collect([event async for batch in await self.batches(times) for event in batch])


def model(*texts: str | list[str], stream: bool = True, choice: ToolChoice | None = None) -> Model:
    replies = [FakeReply(*sse(*([text] if isinstance(text, str) else text))) for text in texts]
    return Model(*replies, stream=stream, choice=choice)


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@both_ways
@pytest.mark.parametrize("bad", [BAD, UNKNOWN, BROKEN, BAD + GOOD, f"{BAD}\nThis should do."])
async def test_a_call_that_fails_is_asked_for_again(stream: bool, bad: str) -> None:
    told = model(bad, GOOD, stream=stream)
    reply = await told.reply()
    assert [call.arguments for call in reply.calls] == ['{"n": 1}']
    assert (reply.content, reply.finish) == ("", "tool_calls")
    assert (len(told.asked), told.log.reasks, told.log.calls) == (2, 1, 1)
    assert told.asked[1].messages[-1].text.startswith("[Tool results]")


@both_ways
async def test_a_call_that_is_missing_is_asked_for(stream: bool) -> None:
    told = model(["Well, ", "no."], GOOD, stream=stream, choice=ToolChoice("required"))
    assert [call.name for call in (await told.reply()).calls] == ["f"]
    assert told.asked[1].messages[-2].text == "Well, no."


@both_ways
@pytest.mark.parametrize("text", ["It is noon.", GOOD, f"`{BAD}`", "<tool_call>"])
async def test_what_needs_no_mending_stands(stream: bool, text: str) -> None:
    told = model(text, stream=stream)
    reply = await told.reply()
    assert (reply.content == text, len(reply.calls), told.log.reasks) == (text != GOOD, int(text == GOOD), 0)


async def test_fields_beside_the_reply_do_not_count_as_shown() -> None:
    first = [b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "odd": 1}}]}\n\n', *sse(BAD)]
    told = Model(FakeReply(*first), FakeReply(*sse(GOOD)), stream=True)
    batches = [batch async for batch in await told.batches()]
    assert batches[0] == [Extra({"odd": 1})]
    assert [call.arguments for call in collect(batches[-1]).calls] == ['{"n": 1}']


async def test_what_a_stream_has_shown_cannot_be_taken_back() -> None:
    for first in (f"Look: {BAD}", f"<think>Hm.</think>{BAD}", [GOOD, BAD]):
        told = model(first, GOOD)
        assert (await told.reply()).calls[-1].arguments == "{}"
        assert told.log.reasks == 0


@pytest.mark.parametrize("text", [f"Look: {BAD}", f"<think>Hm.</think>{BAD}", GOOD + BAD])
async def test_of_a_whole_reply_nothing_has_been_shown(text: str) -> None:
    told = model(text, GOOD, stream=False)
    reply = await told.reply()
    assert (reply.content, reply.reasoning, [call.arguments for call in reply.calls]) == ("", "", ['{"n": 1}'])


@both_ways
@pytest.mark.parametrize("second", [BAD, UNKNOWN, BROKEN, "Sorry.", GOOD + BAD])
async def test_the_first_reply_stands_when_the_second_is_no_better(stream: bool, second: str) -> None:
    told = model(BAD, second, stream=stream)
    reply = await told.reply()
    assert ([call.arguments for call in reply.calls], reply.content, told.log.calls) == (["{}"], "", 1)
    assert told.log.reasks == 1


@both_ways
async def test_a_call_that_never_became_readable_is_a_plain_answer(stream: bool) -> None:
    told = model(f"{BROKEN}x", f"{BROKEN}y", stream=stream)
    reply = await told.reply()
    assert (reply.content, reply.calls, reply.finish) == (f"{BROKEN}x", (), "stop")


@both_ways
async def test_a_second_reply_that_is_cut_is_no_better(stream: bool) -> None:
    told = Model(FakeReply(*sse(BAD)), FakeReply(*sse(GOOD, finish="length")), stream=stream)
    assert [call.arguments for call in (await told.reply()).calls] == ["{}"]


@both_ways
async def test_a_reply_that_was_cut_is_not_asked_for_again(stream: bool) -> None:
    told = Model(FakeReply(*sse(BAD, finish="length")), stream=stream)
    assert ((await told.reply()).finish, told.log.reasks) == ("length", 0)


@both_ways
@pytest.mark.parametrize(
    "second", [UpstreamError("busy"), FakeReply(b'data: {"error": {"message": "busy"}}\n\n'), FakeReply(broken=True)]
)
async def test_the_first_reply_stands_when_the_second_fails(stream: bool, second: FakeReply | UpstreamError) -> None:
    if isinstance(second, FakeReply):
        second.pieces = list(second.pieces)
    told = Model(FakeReply(*sse(BAD)), second, stream=stream)
    reply = await told.reply()
    assert ([call.arguments for call in reply.calls], reply.finish) == (["{}"], "tool_calls")
    assert told.log.reasks == 1


async def until_it_fails(batches: AsyncGenerator[list[Event], None]) -> list[Event]:
    events: list[Event] = []
    try:
        async for batch in batches:
            events += batch
    except UpstreamError:
        return events
    raise AssertionError("it did not fail")


async def test_a_stream_that_breaks_after_a_fault_gives_what_was_held_and_fails() -> None:
    told = Model(FakeReply(*sse(BAD)[:1], broken=True), stream=True)
    events = await until_it_fails(await told.batches())
    assert [call.arguments for call in collect(events).calls] == ["{}"]
    assert told.log.reasks == 0


@both_ways
async def test_the_tokens_of_all_replies_are_summed(stream: bool) -> None:
    told = model(BAD, GOOD, stream=stream)
    usage = (await told.reply()).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (20, 10)
    assert usage.raw["prompt_tokens_details"] == {"cached_tokens": 6}
    assert usage.raw["note"] == "x"
    assert (told.log.prompt_tokens, told.log.completion_tokens) == (20, 10)
    assert told.log.problems == Counter(invalid_arguments=1)


@both_ways
async def test_the_model_is_asked_as_often_as_is_configured(stream: bool) -> None:
    told = model(BAD, UNKNOWN, GOOD, stream=stream)
    assert [call.name for call in (await told.reply(2)).calls] == ["f"]
    assert told.log.reasks == 2
    assert [message.role for message in told.asked[2].messages[1:]] == ["user", "assistant"] * 2 + ["user"]
    never = model(BAD, GOOD, stream=stream)
    assert [call.arguments for call in (await never.reply(0)).calls] == ["{}"]
    assert (len(never.asked), never.log.reasks) == (1, 0)


async def test_a_stream_flows_until_the_first_fault() -> None:
    told = model(["Look ", "here: ", GOOD], stream=True)
    batches = [batch async for batch in await told.batches()]
    assert batches[:2] == [[TextDelta("Look")], [TextDelta(" here:")]]


async def test_batches_come_while_nothing_can_be_shown() -> None:
    """The first one lets the status go out."""
    told = model([BAD, " ", "x"], GOOD, stream=True)
    batches = [batch async for batch in await told.batches()]
    assert batches[:2] == [[], []]
    assert not any(isinstance(event, Problem) for event in batches[-1])


async def test_one_who_leaves_closes_the_reply_that_is_being_read() -> None:
    second = FakeReply(*sse(GOOD)[:1], open_ended=True)
    told = Model(FakeReply(*sse(BAD)), second, stream=True)
    batches = await told.batches()
    assert await anext(batches) == []
    await batches.aclose()
    assert len(told.asked) == 1

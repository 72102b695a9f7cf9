"""Nothing costs more than in proportion: eight times as much of anything is about eight times the work.

Work is counted in calls, which are the same in every run. What hides within a single call (a copy of all that came so
far) is found by its time, with a ratio so wide that only a cost that grows with the square can exceed it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest

from proxy.core.dispatch import XmlDispatcher
from proxy.core.model import Message, Request, TextPart, Tool
from proxy.relay.pump import Pump
from proxy.relay.reask import with_reasks
from proxy.telemetry import RequestLog
from proxy.wire.bodies import load_body
from proxy.wire.openai_chat import StreamEncoder, decode_body
from proxy.wire.upstream_chat import encode_request
from tests.relay.replies import FakeReply

TIMES = 8
SLACK = 1.3
"""Of calls: what is done in blocks does not come out even."""

WIDE = 5.0
"""Of time. A cost that grows with the square would make it eight."""

WRITE = Tool("write_file", "Write a file.", {"type": "object", "properties": {"content": {"type": "string"}}})


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, in Python and in C."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three runs."""

    def once() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return min(once() for _ in range(3))


def in_proportion(work: Callable[[int], Callable[[], object]], size: int) -> None:
    """Compare what ``work`` makes for ``size`` with what it makes for much more."""
    little, much = work(size), work(size * TIMES)
    little()  # what is made once, and kept
    assert calls(much) < calls(little) * TIMES * SLACK
    assert seconds(much) < seconds(little) * TIMES * WIDE


def event(text: str) -> bytes:
    return b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}).encode()


def answered(text: str, piece: int, events_a_read: int = 1) -> Callable[[], object]:
    """Read a stream of ``text`` in pieces, and write it for a client."""
    request = Request((Message("user", (TextPart("hi"),)),), model="m", tools=(WRITE,), stream=True)
    events = [event(text[at : at + piece]) for at in range(0, len(text), piece)]
    reads = [b"".join(events[at : at + events_a_read]) for at in range(0, len(events), events_a_read)]
    reads.append(b"data: [DONE]\n\n")

    async def run() -> None:
        log = RequestLog("r", "chat")
        pump = Pump(FakeReply(*reads).cast(), XmlDispatcher().reader(request), log, streamed=True)
        encoder = StreamEncoder(id="c", created=1, model="m")

        async def never(turn: Request, entry: RequestLog) -> Pump:
            raise AssertionError("the model is asked again")

        written = encoder.start()
        async for batch in with_reasks(pump, never, prepared=request, request=request, times=1, log=log):
            written = encoder.encode(batch)
        assert written
        assert encoder.done().endswith(b"[DONE]\n\n")

    return lambda: asyncio.run(run())


def call(size: int) -> str:
    content = 'print("</tool_call>")  # a line of code\n' * (size // 40)
    return f"<tool_call>{json.dumps({'name': 'write_file', 'arguments': {'content': content}})}</tool_call>"


@pytest.mark.parametrize("events_a_read", [1, 50])
def test_the_length_of_a_stream(events_a_read: int) -> None:
    in_proportion(lambda size: answered("some words " * size, 4, events_a_read), 300)


@pytest.mark.parametrize(("piece", "size"), [(4, 20_000), (4000, 160_000)])
def test_the_size_of_an_argument(piece: int, size: int) -> None:
    in_proportion(lambda size: answered(call(size), piece, 20), size)


def test_a_whole_argument_at_once() -> None:
    in_proportion(lambda size: answered(call(size), size * 2), 50_000)


def sent(body: dict[str, object]) -> Callable[[], object]:
    """Read a request and write the backend's."""
    data = json.dumps({"model": "m", **body}).encode()

    def run() -> None:
        request = decode_body(load_body(data)).request
        dispatcher = XmlDispatcher()
        dispatcher.reader(request)
        assert encode_request(dispatcher.prepare(request), model="m", stream=False)

    return run


def test_the_number_of_tools() -> None:
    def work(size: int) -> Callable[[], object]:
        schema = {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(5)}}
        # too much to be kept from one request to the next, so that all is done each time
        tools = [{"name": f"tool_{at}", "description": "d" * 4000, "parameters": schema} for at in range(size)]
        return sent({"messages": [{"role": "user", "content": "hi"}], "tools": tools})

    in_proportion(work, 50)


def test_the_number_of_turns() -> None:
    def work(size: int) -> Callable[[], object]:
        messages: list[dict[str, object]] = []
        for at in range(size):
            function = {"name": "write_file", "arguments": '{"content": "<tool_call> & more"}'}
            made = [{"id": f"c{at}", "type": "function", "function": function}]
            messages += [
                {"role": "user", "content": f"question {at}"},
                {"role": "assistant", "content": None, "tool_calls": made},
                {"role": "tool", "tool_call_id": f"c{at}", "content": "<tool_result> & more"},
                {"role": "assistant", "content": f"answer {at}"},
            ]
        tools = [{"type": "function", "function": {"name": "write_file"}}]
        return sent({"messages": messages, "tools": tools})

    in_proportion(work, 60)

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.errors import UpstreamError
from proxy.core.model import Tool
from proxy.core.rescue import Rescue
from proxy.relay import rescue as module
from proxy.relay.rescue import StreamRescue, rescue_stream, rescue_whole
from proxy.telemetry import RequestLog
from proxy.wire.sse import SseDecoder
from tests.relay.replies import FakeReply

TOOLS = (Tool("f", parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),)
BARE = '{"name": "f", "arguments": {"n": 1}}'
CALL = f"<tool_call>{BARE}</tool_call>"
INVALID = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
HEAD = {"id": "their-id", "object": "chat.completion.chunk", "created": 7, "model": "theirs", "odd": 1.5}
USAGE = {"prompt_tokens": 5, "completion_tokens": 6}
DONE = b"data: [DONE]\n\n"
NATIVE = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def log() -> RequestLog:
    return RequestLog("r1", "chat")


def rescue() -> Rescue:
    return Rescue(TOOLS, new_id=lambda: "id")


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: " + json.dumps({**HEAD, "choices": [choice], **more}).encode() + b"\n\n"


def stream_of(*texts: str, finish: str = "stop") -> bytes:
    chunks = [chunk({"role": "assistant", "content": None}), *(chunk({"content": text}) for text in texts)]
    usage = b"data: " + json.dumps({**HEAD, "choices": [], "usage": USAGE}).encode() + b"\n\n"
    return b"".join([*chunks, chunk({}, finish), usage, DONE])


def whole_of(text: str | None, finish: str = "stop", **more: Any) -> bytes:
    message = {"role": "assistant", "content": text, **more}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({**HEAD, "choices": [choice], "usage": USAGE}, indent=1).encode()


def passed(data: bytes, *cuts: int, entry: RequestLog | None = None) -> bytes:
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    stream = StreamRescue(rescue(), entry or log())
    return b"".join([*(stream.feed(data[start:end]) for start, end in pairwise(places)), stream.close()])


def chunks(data: bytes) -> list[Any]:
    sse = SseDecoder()
    return [json.loads(frame.data) for frame in [*sse.feed(data), *sse.close()] if frame.data != "[DONE]"]


def gathered(data: bytes) -> dict[str, Any]:
    """A stream as a whole message and its finish reason."""
    message: dict[str, Any] = {"content": "", "tool_calls": [], "finish": []}
    for each in chunks(data):
        for choice in each["choices"]:
            message["content"] += choice["delta"].get("content") or ""
            message["tool_calls"] += choice["delta"].get("tool_calls", [])
            message["finish"] += [choice["finish_reason"]] if choice["finish_reason"] else []
    return message


def told(data: bytes) -> dict[str, Any]:
    """A whole answer in the same terms."""
    choice = json.loads(data)["choices"][0]
    message = choice["message"]
    calls = [{"index": index, **call} for index, call in enumerate(message.get("tool_calls", []))]
    return {"content": message["content"] or "", "tool_calls": calls, "finish": [choice["finish_reason"]]}


# ---- whole


def test_the_calls_in_a_whole_reply_become_calls_and_the_rest_stays() -> None:
    entry = log()
    answer = json.loads(rescue_whole(whole_of(f"Look:\n{CALL}"), rescue(), entry))
    call = {"id": "id", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}
    message = {"role": "assistant", "content": "Look:", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    assert answer == {**HEAD, "choices": [choice], "usage": USAGE}
    assert (entry.rescued, entry.calls) == (1, 1)
    alone = json.loads(rescue_whole(whole_of(BARE), rescue(), log()))
    assert alone["choices"][0]["message"]["content"] is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"choices": []}',
        whole_of(None),
        whole_of(""),
        whole_of("It is noon."),
        whole_of(INVALID),
        whole_of(BARE, tool_calls=[NATIVE]),
        whole_of(BARE, refusal="No."),
        whole_of(BARE, "error"),
        whole_of(CALL[:40], "length"),
        json.dumps({"choices": [json.loads(whole_of(BARE))["choices"][0]] * 2}).encode(),
        json.dumps({"choices": [{"message": {"content": [{"type": "text", "text": BARE}]}}]}).encode(),
    ],
)
def test_any_other_whole_reply_is_the_same_bytes(body: bytes) -> None:
    entry = log()
    assert rescue_whole(body, rescue(), entry) is body
    assert (entry.rescued, entry.calls, entry.problems) == (0, 0, {})


# ---- streamed


def test_the_calls_in_a_stream_become_calls_under_the_backend_s_own_name() -> None:
    entry = log()
    answer = passed(stream_of("Look:", "\n<tool", "_call>", BARE, "</tool_call>", "\nDone."), entry=entry)
    role, text, call, more, finish, usage = chunks(answer)
    assert answer.endswith(DONE)
    assert (role, text) == tuple(chunks(stream_of("Look:"))[:2])
    assert call == {**HEAD, "choices": [{"index": 0, "delta": call["choices"][0]["delta"], "finish_reason": None}]}
    function = {"name": "f", "arguments": '{"n": 1}'}
    assert call["choices"][0]["delta"] == {
        "tool_calls": [{"index": 0, "id": "id", "type": "function", "function": function}]
    }
    assert more["choices"][0]["delta"] == {"content": "\n\nDone."}
    assert finish == {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    assert usage == {**HEAD, "choices": [], "usage": USAGE}
    assert (entry.rescued, entry.calls, entry.prompt_tokens, entry.completion_tokens) == (1, 1, 5, 6)


def test_what_a_held_chunk_says_beside_its_text_is_said() -> None:
    data = chunk({"role": "assistant", "content": BARE[:9]}) + chunk({"content": BARE[9:], "reasoning_content": "hm"})
    data += b": ping\n\n" + chunk({}, "stop", usage=USAGE, timings={"n": 1}) + DONE
    answer = passed(data)
    role, reasoning, call, finish = chunks(answer)
    assert role["choices"][0]["delta"] == {"role": "assistant"}
    assert reasoning["choices"][0]["delta"] == {"reasoning_content": "hm"}
    assert "usage" not in call
    assert (finish["usage"], finish["timings"]) == (USAGE, {"n": 1})
    assert b": ping\n\n" in answer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b": only a comment\n\n",
        b"no events at all",
        stream_of("It is ", "noon <b", ">, ", "or so.\n"),
        stream_of("{", '"name": "f", ', "and so on"),
        stream_of(INVALID),
        stream_of(CALL[:40], finish="length"),
        stream_of("`", CALL, "`"),
        stream_of(BARE).replace(b"\n", b"\r\n").replace(b"stop", b"error"),
        stream_of("a < b").replace(b"\n", b"\r"),
        stream_of(BARE).removesuffix(DONE).rpartition(b"data: ")[0].rpartition(b"data: ")[0],
        stream_of(BARE)[:-300] + b"data: {not json}\n\n" + DONE,
        stream_of("")[:-300] + chunk({"content": BARE}) + chunk({"tool_calls": [NATIVE]}) + DONE,
        chunk({"tool_calls": [NATIVE]}) + chunk({"content": BARE}) + chunk({}, "stop") + DONE,
        chunk({"content": BARE}) + chunk({"refusal": "No."}) + chunk({}, "stop") + DONE,
        chunk({"content": BARE}) + b'data: {"error": {"message": "busy"}}\n\n' + DONE,
    ],
)
def test_any_other_stream_is_the_same_bytes(data: bytes) -> None:
    entry = log()
    assert passed(data, entry=entry) == data
    assert passed(data, *range(len(data))) == data
    assert (entry.rescued, entry.calls) == (0, int(b'"tool_calls"' in data))


def test_bytes_go_on_as_they_come_unless_their_text_may_be_a_call() -> None:
    stream = StreamRescue(rescue(), log())
    first, role = chunk({"content": "Hi."}), chunk({"role": "assistant", "content": None})
    assert stream.feed(role + first[:9]) == role
    assert stream.feed(first[9:]) == first
    held = [chunk({"content": text}) for text in ("\n", "<", "tool")]
    assert [stream.feed(each) for each in (*held, b": ping\n\n")] == [b""] * 4
    assert stream.feed(chunk({"content": "box>"})) == b"".join([*held, b": ping\n\n", chunk({"content": "box>"})])


def test_native_calls_end_the_search() -> None:
    entry = log()
    stream = StreamRescue(rescue(), entry)
    assert stream.feed(chunk({"content": "<tool"})) == b""
    call = chunk({"tool_calls": [NATIVE]})
    assert stream.feed(call) == chunk({"content": "<tool"}) + call
    rest = chunk({"content": CALL})[:30]
    assert stream.feed(rest) == rest
    more = chunk({"tool_calls": [{**NATIVE, "index": 1, "id": "b"}]})
    assert stream.feed(b"\n\n" + more + chunk({}, "tool_calls", usage=USAGE)).startswith(b"\n\n" + more)
    assert stream.finished
    stream.close()
    assert (entry.calls, entry.rescued, entry.completion_tokens) == (2, 0, 6)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_a_stream_is_cut_into_events_wherever_the_network_cuts_it(newline: bytes) -> None:
    data = stream_of("Look: ", CALL).replace(b"\n", newline)
    assert gathered(passed(data)) == gathered(passed(data, *range(len(data))))
    assert len(gathered(passed(data))["tool_calls"]) == 1


@pytest.mark.parametrize("end", [DONE, b""])
def test_a_reply_without_finish_reason_or_done(end: bytes) -> None:
    data = chunk({"content": CALL})
    answer = gathered(passed(data + end))
    assert (len(answer["tool_calls"]), answer["finish"]) == ((1, ["tool_calls"]) if end else (0, []))
    finished = gathered(passed(data + chunk({}, "stop") + end))
    assert (len(finished["tool_calls"]), finished["finish"]) == (1, ["tool_calls"])


def test_a_call_in_the_reasoning_is_told_after_all_of_the_text_has_gone() -> None:
    data = chunk({"content": f"<think>{CALL}</think>"}) + DONE
    answer = gathered(passed(data))
    assert (answer["content"], len(answer["tool_calls"])) == (f"<think>{CALL}</think>", 1)


PIECES = [CALL, BARE, INVALID, "text", " ", "\n", "`", "```json\n", "<think>", "</think>", "<tool_call>", "{", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data(), st.sampled_from(["stop", "length"]))
def test_whatever_the_text_and_however_it_comes_the_answer_is_that_of_the_whole_reply(
    pieces: list[str], data: st.DataObject, finish: str
) -> None:
    text = "".join(pieces)
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=6))})
    raw = stream_of(*(text[start:end] for start, end in pairwise(cuts)), finish=finish)
    expected = told(rescue_whole(whole_of(text, finish), rescue(), log()))
    answer = passed(raw, *data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    assert gathered(answer) == expected
    assert answer.endswith(DONE)
    assert expected["tool_calls"] or answer == raw


# ---- over a reply


async def test_the_first_piece_comes_with_the_first_event() -> None:
    reply = FakeReply(b": ping\n\n", chunk({"content": "<"}), chunk({"content": "b>"}), open_ended=True)
    pieces = rescue_stream(reply.cast(), rescue(), log())
    assert await anext(pieces) == b": ping\n\n"
    assert await anext(pieces) == b""
    assert await anext(pieces) == chunk({"content": "<"}) + chunk({"content": "b>"})
    await pieces.aclose()
    assert reply.closed


async def test_an_error_as_the_first_event_is_raised_before_anything_is_passed() -> None:
    reply = FakeReply(b'data: {"error": {"message": "busy", "code": 503}}\n\n', DONE)
    with pytest.raises(UpstreamError, match="busy") as caught:
        await anext(rescue_stream(reply.cast(), rescue(), log()))
    assert caught.value.status == 503
    assert reply.closed


async def test_a_stream_that_breaks_is_an_error_after_what_was_held() -> None:
    held = chunk({"content": BARE})
    pieces = rescue_stream(FakeReply(held, broken=True).cast(), rescue(), log())
    assert [await anext(pieces), await anext(pieces)] == [b"", held]
    with pytest.raises(UpstreamError):
        await anext(pieces)


async def test_a_backend_that_is_silent_after_its_finish_reason_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    reply = FakeReply(chunk({"content": CALL}), chunk({}, "stop"), open_ended=True)
    answer = b"".join([piece async for piece in rescue_stream(reply.cast(), rescue(), log())])
    assert gathered(answer)["finish"] == ["tool_calls"]
    assert reply.closed


@pytest.mark.parametrize("cut", [0, 1, 30])
@pytest.mark.parametrize("broken", [True, False])
async def test_calls_are_found_although_what_follows_the_finish_reason_is_cut(cut: int, broken: bool) -> None:
    entry = log()
    stream = stream_of(CALL)
    told = stream[: stream.index(b'"finish_reason": "stop"')]
    whole = told + stream[len(told) :].partition(b"\n\n")[0] + b"\n\n"
    reply = FakeReply(whole, stream[len(whole) : len(whole) + cut], broken=broken)
    answer = b"".join([piece async for piece in rescue_stream(reply.cast(), rescue(), entry)])
    assert entry.rescued == 1
    assert b'"finish_reason":"tool_calls"' in answer.replace(b": ", b":")

from __future__ import annotations

import asyncio
import json

import pytest

from proxy.core.errors import ClientError, UpstreamError
from proxy.relay import native
from proxy.relay.native import Ending, pass_stream, pass_whole, with_model
from proxy.telemetry import RequestLog
from tests.relay.replies import FakeReply

CALL = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":'
    b'{"name":"f","arguments":"{}"}}]}}]}\n\n'
)
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\n'


def log() -> RequestLog:
    return RequestLog("r1", "chat")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model": "a", "n": 1e2}', b'{"model": "b\\"", "n": 1e2}'),
        (b' {"n": 1.50 , "model" : "a"}\n', b' {"n": 1.50 , "model" : "b\\""}\n'),
        (b'{"m": {"model": "a"}, "model": null}', b'{"m": {"model": "a"}, "model": "b\\""}'),
        (b'{"model": "a", "model": "c"}', b'{"model": "b\\"", "model": "b\\""}'),
        (b'{"n": 1}', b'{"model":"b\\"","n": 1}'),
        (b"{}", b'{"model":"b\\""}'),
        ('{"model": "ä", "x": "日本 \\ud83c"}'.encode(), '{"model": "b\\"", "x": "日本 \\ud83c"}'.encode()),
    ],
)
def test_only_the_model_s_name_is_replaced(body: bytes, expected: bytes) -> None:
    assert with_model(body, 'b"') == expected


@pytest.mark.parametrize(
    "body", [b"\xef\xbb\xbf{}", '{"a": 1}'.encode("utf-16"), b'{"a": "\xff"}', b"{" + b'"a":[' * 2000]
)
def test_a_body_that_cannot_be_looked_into_is_refused(body: bytes) -> None:
    with pytest.raises(ClientError, match="The model's name cannot be put into the request body"):
        with_model(body, "b")


async def test_a_stream_comes_back_as_it_is_and_is_counted() -> None:
    entry = log()
    pieces = [b": ping\n\n", CALL[:20], CALL[20:] + USAGE[:5], USAGE[5:], b"data: [DONE]\n\n"]
    reply = FakeReply(*pieces)
    passed = [piece async for piece in pass_stream(reply.cast(), entry)]
    assert b"".join(passed) == b"".join(pieces)
    assert passed[0].endswith(CALL + USAGE[:5])
    assert reply.closed
    assert (entry.calls, entry.prompt_tokens, entry.completion_tokens) == (1, 5, 6)


@pytest.mark.parametrize("pieces", [(), (b": only a comment\n\n",), (b"no events at all",), (b"<html>", b"</html>")])
async def test_a_stream_without_events_is_an_error(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(UpstreamError, match="before its reply was complete") as caught:
        await anext(pass_stream(FakeReply(*pieces).cast(), log()))
    assert caught.value.status == 502


async def test_a_stream_that_ends_too_early_is_an_error_after_what_came() -> None:
    passed = pass_stream(FakeReply(CALL, USAGE).cast(), log())
    assert [await anext(passed), await anext(passed)] == [CALL, USAGE]
    with pytest.raises(UpstreamError, match="before its reply was complete"):
        await anext(passed)


@pytest.mark.parametrize(
    "end",
    [
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason" : "stop"}]}\n\n',
        b"data:[DONE]\n\n",
        b"\r\ndata: [DONE]",
        b'data: {"error": {}}\n\n',
        b"event: error\ndata: {}\n\n",
    ],
)
def test_the_end_is_noticed_however_it_is_cut(end: bytes) -> None:
    for cut in range(len(end)):
        ending = Ending()
        for piece in (CALL, end[:cut], end[cut:]):
            ending.feed(piece)
        ending.check()


@pytest.mark.parametrize(
    "text", [r'"finish_reason\": \"stop\"', '"finish_reason":null', "say data: [DONE]", '"error": 1']
)
def test_what_only_looks_like_the_end_is_none(text: str) -> None:
    ending = Ending()
    ending.feed(text.encode())
    assert not ending.seen


@pytest.mark.parametrize(
    "event",
    [b'data: {"error": {"message": "busy", "code": 503}}\n\n', b'error: {"message": "busy", "code": 503}\n\n'],
)
async def test_an_error_as_the_first_event_is_raised_before_anything_is_passed(event: bytes) -> None:
    reply = FakeReply(event, b"data: [DONE]\n\n")
    with pytest.raises(UpstreamError, match="busy") as caught:
        await anext(pass_stream(reply.cast(), log()))
    assert caught.value.status == 503
    assert reply.closed


async def test_a_later_error_is_the_backend_s_to_tell() -> None:
    pieces = [CALL, b'data: {"error": {"message": "busy"}}\n\n']
    assert [piece async for piece in pass_stream(FakeReply(*pieces).cast(), log())] == pieces


async def test_a_stream_that_breaks_is_an_error_after_what_came() -> None:
    passed = pass_stream(FakeReply(CALL, broken=True).cast(), log())
    assert await anext(passed) == CALL
    with pytest.raises(UpstreamError):
        await anext(passed)


FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


async def test_a_stream_of_one_choice_that_is_silent_after_its_finish_reason_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "PATIENCE", 0.01)
    reply = FakeReply(CALL, FINISH, USAGE, open_ended=True)
    assert b"".join([piece async for piece in pass_stream(reply.cast(), log(), single=True)]) == CALL + FINISH + USAGE
    assert reply.closed
    several = pass_stream(FakeReply(CALL, FINISH, open_ended=True).cast(), log())
    assert [await anext(several), await anext(several)] == [CALL, FINISH]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(several), 0.1)


async def test_a_stream_of_one_choice_may_break_off_once_all_is_told() -> None:
    for pieces in ([CALL, FINISH], [CALL + FINISH, USAGE]):
        reply = FakeReply(*pieces, broken=True).cast()
        assert [piece async for piece in pass_stream(reply, log(), single=True)] == pieces
    with pytest.raises(UpstreamError):
        async for _ in pass_stream(FakeReply(CALL, FINISH, broken=True).cast(), log()):
            pass


async def test_a_whole_reply_comes_back_as_it_is_and_is_counted() -> None:
    entry = log()
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = json.dumps(
        {
            "choices": [
                {"index": 0, "message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
            ],
            "usage": {"prompt_tokens": 5, "completion_tokens": 6},
        },
        indent=3,
    ).encode()
    assert await pass_whole(FakeReply(body[:9], body[9:]).cast(), entry) == body
    assert (entry.calls, entry.prompt_tokens, entry.completion_tokens) == (1, 5, 6)


@pytest.mark.parametrize("body", [b'{"audio": 1}', b"{}", b'{"choices": [{"text": "x"}]}'])
async def test_a_whole_reply_that_cannot_be_counted_comes_back_too(body: bytes) -> None:
    entry = log()
    assert await pass_whole(FakeReply(body).cast(), entry) == body
    assert entry.calls == 0


@pytest.mark.parametrize("body", [b"", b"not json", b"<html>Bad gateway</html>", b'{"choices": [', b"[]", b"null"])
async def test_what_is_no_json_object_is_an_error(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        await pass_whole(FakeReply(body).cast(), log())
    assert caught.value.status == 502


async def test_an_error_in_the_place_of_a_whole_reply_is_raised_whatever_its_status_said() -> None:
    with pytest.raises(UpstreamError, match="busy") as caught:
        await pass_whole(FakeReply(b'{"error": {"message": "busy", "code": 503}}').cast(), log())
    assert caught.value.status == 503

import json

import pytest
from anthropic.types import Message

from proxy.core.collect import Reply
from proxy.core.errors import UpstreamError
from proxy.core.events import FinishReason, Usage
from proxy.core.model import Json, ToolCall
from proxy.core.replay import UNREADABLE
from proxy.wire.anthropic_messages import encode_reply
from proxy.wire.anthropic_messages.reply import usage_object


def encode(reply: Reply) -> Json:
    """The message, checked against the SDK's type."""
    body = encode_reply(reply, id="msg_1", model="m", stop_sequences=["END"])
    Message.model_validate_json(body, strict=True)
    return json.loads(body)


def test_the_whole_shape() -> None:
    calls = (ToolCall("a", "clock", '{"zone": "UTC"}'), ToolCall("b", "clock", ""))
    assert encode(Reply("A moment.", "hm", calls=calls, finish="tool_calls", usage=Usage(3, 4))) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "dG9vbGdyYWZ0"},
            {"type": "text", "text": "A moment."},
            {"type": "tool_use", "id": "a", "name": "clock", "input": {"zone": "UTC"}},
            {"type": "tool_use", "id": "b", "name": "clock", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_no_block_is_empty(text: str) -> None:
    assert encode(Reply(text, text, finish="stop"))["content"] == []


CALL = (ToolCall("a", "clock", "{}"),)


@pytest.mark.parametrize(
    ("reply", "reason", "sequence"),
    [
        (Reply("a", finish="stop"), "end_turn", None),
        (Reply("a", finish="tool_calls"), "end_turn", None),
        (Reply(calls=CALL, finish="stop"), "tool_use", None),
        (Reply("a", finish="length"), "max_tokens", None),
        (Reply(calls=CALL, finish="length"), "max_tokens", None),
        (Reply("a", finish="stop", stop_sequence="END"), "stop_sequence", "END"),
        (Reply("a", finish="stop", stop_sequence="<|im_end|>"), "end_turn", None),
        (Reply("a", finish="content_filter"), "refusal", None),
        (Reply(refusal="No.", finish="stop"), "refusal", None),
    ],
)
def test_why_it_stopped(reply: Reply, reason: str, sequence: str | None) -> None:
    message = encode(reply)
    assert (message["stop_reason"], message["stop_sequence"]) == (reason, sequence)


def test_a_refusal_says_why() -> None:
    message = encode(Reply(refusal="Not that.", finish="stop"))
    assert message["content"] == [{"type": "text", "text": "Not that."}]
    assert message["stop_details"] == {"type": "refusal", "category": None, "explanation": "Not that."}
    assert "filter" in encode(Reply(finish="content_filter"))["stop_details"]["explanation"]


@pytest.mark.parametrize("arguments", ['{"zone": UTC}', "[1]", '"x"', "NaN", '{"a": 1} {"b": 2}'])
def test_an_input_is_an_object_and_never_one_that_the_model_did_not_write(arguments: str) -> None:
    (block,) = encode(Reply(calls=(ToolCall("a", "clock", arguments),), finish="tool_calls"))["content"]
    assert block["input"] == {UNREADABLE: arguments}


def test_numbers_stay_as_the_model_wrote_them_and_half_characters_stay_escaped() -> None:
    arguments = '{"id": 4611686018427387905, "factor": 1e400, "text": "\ud83d"}'
    call = ToolCall("a", "clock", arguments)
    body = encode_reply(Reply(calls=(call,), finish="tool_calls"), id="msg_1", model="m")
    assert b'{"id": 4611686018427387905, "factor": 1e400, "text": "\\ud83d"}' in body


@pytest.mark.parametrize(
    ("finish", "message", "says"), [(None, None, "broke off"), ("error", "The backend gave up.", "gave up")]
)
def test_a_reply_that_was_not_completed_is_an_error(finish: FinishReason | None, message: str, says: str) -> None:
    with pytest.raises(UpstreamError, match=says):
        encode(Reply("half", finish=finish, message=message))


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, {"input_tokens": 0, "output_tokens": 0}),
        (Usage(5, None), {"input_tokens": 5, "output_tokens": 0}),
        (
            Usage(5, 2, {"prompt_tokens_details": {"cached_tokens": 3}}),
            {"input_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 0, "output_tokens": 2},
        ),
        (Usage(5, 2, {"prompt_tokens_details": {"cached_tokens": 9}}), {"input_tokens": 5, "output_tokens": 2}),
        (Usage(5, 2, {"prompt_tokens_details": None}), {"input_tokens": 5, "output_tokens": 2}),
        (
            Usage(5, 2, {"completion_tokens_details": {"reasoning_tokens": 1}}),
            {"input_tokens": 5, "output_tokens": 2, "output_tokens_details": {"thinking_tokens": 1}},
        ),
    ],
)
def test_usage(usage: Usage | None, expected: Json) -> None:
    assert usage_object(usage) == expected

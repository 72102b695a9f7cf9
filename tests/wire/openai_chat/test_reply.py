import json

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageCustomToolCall

from proxy.core.collect import Reply
from proxy.core.errors import UpstreamError
from proxy.core.events import FinishReason, Problem, Usage
from proxy.core.model import Json, ToolCall
from proxy.wire.openai_chat import encode_reply

CLOCK = ToolCall("call_1", "clock", '{"zone": "UTC"}')
SHELL = ToolCall("call_2", "shell", '{"input": "ls -l"}')


def encode(reply: Reply, *, legacy: bool = False) -> Json:
    body = encode_reply(reply, id="chatcmpl-1", created=1700000000, model="m", legacy=legacy, custom={"shell"})
    ChatCompletion.model_validate_json(body, strict=True)
    return json.loads(body)


def message(reply: Reply, *, legacy: bool = False) -> Json:
    return encode(reply, legacy=legacy)["choices"][0]["message"]


def test_the_whole_object() -> None:
    usage = Usage(
        12, 5, {"prompt_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 99}
    )
    assert encode(Reply(content="Hello.", finish="stop", usage=usage)) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello."},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 5,
            "total_tokens": 17,
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(finish="stop"), {"content": ""}),
        (Reply(content="a", finish="stop"), {"content": "a"}),
        (Reply(content="a", reasoning="r", finish="stop"), {"content": "a", "reasoning_content": "r"}),
        (Reply(refusal="No.", finish="stop"), {"content": "", "refusal": "No."}),
        (
            Reply(calls=(CLOCK,), finish="tool_calls"),
            {
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "clock", "arguments": '{"zone": "UTC"}'},
                    }
                ],
            },
        ),
        (
            Reply(content="Look:", calls=(ToolCall("c", "clock", ""),), finish="stop"),
            {
                "content": "Look:",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}],
            },
        ),
        (
            Reply(calls=(SHELL,), finish="stop"),
            {
                "content": None,
                "tool_calls": [{"id": "call_2", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}],
            },
        ),
        (
            Reply(content="a", finish="stop", extra={"annotations": [], "role": "x"}),
            {"content": "a", "annotations": []},
        ),
        (Reply(content="a", finish="stop", problems=(Problem("repaired", "x"),)), {"content": "a"}),
    ],
)
def test_messages(reply: Reply, expected: Json) -> None:
    assert message(reply) == {"role": "assistant"} | expected


def test_several_calls_keep_their_order() -> None:
    calls = message(Reply(calls=(CLOCK, SHELL), finish="stop"))["tool_calls"]
    assert [call["id"] for call in calls] == ["call_1", "call_2"]


def test_custom_calls_have_the_sdks_shape() -> None:
    [call] = message(Reply(calls=(SHELL,), finish="stop"))["tool_calls"]
    assert ChatCompletionMessageCustomToolCall.model_validate(call, strict=True).custom.input == "ls -l"


@pytest.mark.parametrize(
    ("finish", "calls", "expected"),
    [
        ("stop", (), "stop"),
        ("tool_calls", (), "stop"),
        ("stop", (CLOCK,), "tool_calls"),
        ("tool_calls", (CLOCK,), "tool_calls"),
        ("length", (), "length"),
        ("length", (CLOCK,), "length"),
        ("content_filter", (CLOCK,), "content_filter"),
    ],
)
def test_finish_reasons(finish: FinishReason, calls: tuple[ToolCall, ...], expected: str) -> None:
    assert encode(Reply(calls=calls, finish=finish))["choices"][0]["finish_reason"] == expected


def test_usage_is_there_even_if_nobody_counted() -> None:
    counted = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert encode(Reply(finish="stop"))["usage"] == counted
    assert encode(Reply(finish="stop", usage=Usage(7)))["usage"] == counted | {"prompt_tokens": 7, "total_tokens": 7}


def test_the_older_shape_has_one_call() -> None:
    body = encode(Reply(calls=(CLOCK, SHELL), finish="stop"), legacy=True)
    choice = body["choices"][0]
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "clock", "arguments": '{"zone": "UTC"}'},
    }
    assert choice["finish_reason"] == "function_call"


def test_lone_surrogates_do_not_break_the_body() -> None:
    body = encode_reply(Reply(content="a\ud83d", finish="stop"), id="x", created=1, model="m")
    assert json.loads(body)["choices"][0]["message"]["content"] == "a\ud83d"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(content="half"), "broke off"),
        (Reply(content="half", finish="error", message="The backend gave up."), "The backend gave up."),
        (Reply(finish="error"), "broke off"),
    ],
)
def test_a_reply_that_is_not_whole_is_an_error(reply: Reply, words: str) -> None:
    with pytest.raises(UpstreamError, match=words) as caught:
        encode_reply(reply, id="x", created=1, model="m")
    assert caught.value.status == 502

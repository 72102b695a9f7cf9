from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionToolCall

from proxy.core.collect import Reply
from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
from proxy.core.events import Usage
from proxy.core.model import ToolCall
from proxy.wire.openai_responses import Answering, encode_reply
from proxy.wire.openai_responses.reply import failure
from proxy.wire.openai_responses.tools import ClientTool
from tests.support.responses import response

KNOWN = {"crm__find": ClientTool("function", "find", "crm"), "patch": ClientTool("custom", "patch", "code")}


def encoded(reply: Reply, **raw: Any) -> dict[str, Any]:
    body = encode_reply(reply, Answering("resp_ab", 7, "m", raw, KNOWN))
    response(body)
    whole: dict[str, Any] = json.loads(body)
    return whole


def test_a_plain_answer() -> None:
    whole = encoded(Reply("Hello.", finish="stop", usage=Usage(3, 4)))
    assert (whole["id"], whole["object"], whole["created_at"], whole["model"]) == ("resp_ab", "response", 7, "m")
    assert (whole["status"], whole["error"], whole["incomplete_details"]) == ("completed", None, None)
    (message,) = whole["output"]
    assert (message["type"], message["role"], message["status"]) == ("message", "assistant", "completed")
    assert message["content"] == [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Hello."}]


def test_the_request_is_repeated_with_the_defaults_filled_in() -> None:
    bare = encoded(Reply("x", finish="stop"))
    assert (bare["tools"], bare["tool_choice"], bare["parallel_tool_calls"]) == ([], "auto", True)
    assert (bare["text"], bare["metadata"]) == ({"format": {"type": "text"}}, {})
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
    asked: dict[str, Any] = {
        "instructions": "Be brief.",
        "tools": [tool],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": False,
        "temperature": 0.5,
        "top_p": 1,
        "max_output_tokens": 9,
        "max_tool_calls": 2,
        "metadata": {"a": "b"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "top_logprobs": 0,
        "user": "u",
    }
    assert asked.items() <= encoded(Reply("x", finish="stop"), **asked).items()


def test_what_is_not_done_is_not_claimed() -> None:
    whole = encoded(Reply("x", finish="stop"), store=True, truncation="auto", service_tier="flex", background=False)
    said = (whole["store"], whole["truncation"], whole["service_tier"], whole["background"])
    assert said == (False, "disabled", "default", False)


def test_calls_are_items_under_the_names_that_the_client_knows() -> None:
    calls = (
        ToolCall("call_0", "get_weather", '{"city": "Oslo"}'),
        ToolCall("call_1", "crm__find", ""),
        ToolCall("call_2", "patch", '{"input": "*** Begin"}'),
    )
    first, second, third = encoded(Reply(calls=calls, finish="tool_calls"))["output"]
    assert ResponseFunctionToolCall.model_validate(first, strict=True).arguments == '{"city": "Oslo"}'
    assert (first["call_id"], first["name"], first["status"]) == ("call_0", "get_weather", "completed")
    assert "namespace" not in first
    assert (second["namespace"], second["name"], second["arguments"]) == ("crm", "find", "{}")
    assert ResponseCustomToolCall.model_validate(third, strict=True).input == "*** Begin"
    assert (third["namespace"], third["name"]) == ("code", "patch")
    ids = [first["id"], second["id"], third["id"]]
    assert [item_id.partition("_")[0] for item_id in ids] == ["fc", "fc", "ctc"]
    assert len(set(ids)) == 3


def test_reasoning_comes_first_and_in_one_place() -> None:
    reply = Reply("Yes.", reasoning="Hm.", finish="stop")
    thought, _ = encoded(reply)["output"]
    assert (thought["summary"], thought["content"]) == ([], [{"type": "reasoning_text", "text": "Hm."}])
    for asked in ({"summary": "auto"}, {"generate_summary": "concise"}):
        thought, _ = encoded(reply, reasoning=asked)["output"]
        assert thought["summary"] == [{"type": "summary_text", "text": "Hm."}]
        assert "content" not in thought
    for silent in (None, {"summary": None}, {"effort": "high"}):
        assert encoded(reply, reasoning=silent)["output"][0]["content"]


def test_a_refusal_is_content() -> None:
    (message,) = encoded(Reply(refusal="No.", finish="stop"))["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "No."}]


def test_white_space_beside_calls_is_no_message() -> None:
    reply = Reply("\n\n", calls=(ToolCall("c", "f", "{}"),), finish="tool_calls")
    assert [item["type"] for item in encoded(reply)["output"]] == ["function_call"]


@pytest.mark.parametrize(
    ("reply", "status", "reason", "item"),
    [
        (Reply("Half", finish="length"), "incomplete", "max_output_tokens", "incomplete"),
        (Reply("Half", finish="content_filter"), "incomplete", "content_filter", "incomplete"),
        (Reply("A", calls=(ToolCall("c", "f"),), finish="length"), "incomplete", "max_output_tokens", "completed"),
        (Reply("", finish="stop"), "completed", None, "completed"),
        (Reply("", finish="length"), "incomplete", "max_output_tokens", None),
    ],
)
def test_how_a_reply_ended(reply: Reply, status: str, reason: str | None, item: str | None) -> None:
    whole = encoded(reply)
    assert whole["status"] == status
    assert whole["incomplete_details"] == (reason and {"reason": reason})
    assert (whole["output"][0]["status"] if item else whole["output"]) == (item or [])


@pytest.mark.parametrize("reply", [Reply("x"), Reply("x", finish="error", message="It stopped.")])
def test_a_reply_that_was_not_completed_is_an_error(reply: Reply) -> None:
    with pytest.raises(UpstreamError, match=reply.message or "broke off"):
        encode_reply(reply, Answering("resp_a", 1, "m"))


def test_usage_is_always_there_with_its_details() -> None:
    assert encoded(Reply("x", finish="stop"))["usage"]["total_tokens"] == 0
    raw = {
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 1, "audio_tokens": None},
    }
    usage = encoded(Reply("x", finish="stop", usage=Usage(5, 6, raw)))["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (5, 6, 11)
    assert usage["input_tokens_details"]["cached_tokens"] == 2
    assert usage["output_tokens_details"]["reasoning_tokens"] == 1
    odd = Usage(1, 1, {"prompt_tokens_details": None, "completion_tokens_details": {"reasoning_tokens": None}})
    assert encoded(Reply("x", finish="stop", usage=odd))["usage"]["output_tokens_details"]["reasoning_tokens"] == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UpstreamError("x", status=400, code="context_length_exceeded"), "context_length_exceeded"),
        (UpstreamError("x", status=429, code="insufficient_quota"), "insufficient_quota"),
        (UpstreamError("x", status=429), "rate_limit_exceeded"),
        (UpstreamError("x", code="backend_broke_off"), "server_error"),
        (ClientError("x", code="model_not_found"), "invalid_prompt"),
    ],
)
def test_the_codes_of_failures(error: ToolgraftError, code: str) -> None:
    assert failure(error) == {"code": code, "message": "x"}

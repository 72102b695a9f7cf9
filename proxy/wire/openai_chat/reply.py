"""A whole reply as a ``chat.completion`` object.

The shape is what the strictest client needs: ``content`` is null or text beside calls and a string otherwise,
``tool_calls`` is left out when there are none, ``arguments`` is never empty, ``usage`` is always there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from proxy.core.collect import Reply
from proxy.core.errors import UpstreamError
from proxy.core.events import FinishReason, Usage
from proxy.core.model import Json, ToolCall
from proxy.wire import jsonio
from proxy.wire.arguments import custom_input
from proxy.wire.failures import BROKEN_OFF


def encode_reply(
    reply: Reply,
    *,
    id: str,  # noqa: A002 (the wire's own word)
    created: int,
    model: str,
    legacy: bool = False,
    custom: Collection[str] = (),
) -> bytes:
    """The JSON body. ``created`` in Unix seconds.

    ``legacy`` answers with ``function_call`` (room for one call); calls of the tools named in ``custom`` get the shape
    of custom tool calls. Raises ``UpstreamError`` for a reply that never ended or ended with an error.
    """
    if reply.finish is None or reply.finish == "error":
        raise UpstreamError(reply.message or BROKEN_OFF)
    message: dict[str, Json] = {**reply.extra, "role": "assistant"}
    message["content"] = reply.content or (None if reply.calls else "")
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.calls and legacy:
        message["function_call"] = _function(reply.calls[0])
    elif reply.calls:
        message["tool_calls"] = [_tool_call(call, custom) for call in reply.calls]
    finish = finish_reason(reply.finish, calls=bool(reply.calls), legacy=legacy)
    return jsonio.dumps(
        {
            "id": id,
            "object": "chat.completion",
            "created": created,
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": usage_object(reply.usage),
        }
    )


def finish_reason(
    reason: FinishReason, *, calls: bool, legacy: bool
) -> Literal["stop", "length", "content_filter", "tool_calls", "function_call"]:
    """The wire's finish reason: a reply with calls says so, unless something was cut."""
    if reason == "length" or reason == "content_filter":
        return reason
    if calls:
        return "function_call" if legacy else "tool_calls"
    return "stop"


def usage_object(usage: Usage | None) -> dict[str, Json]:
    """Token counts, 0 where nobody counted; details that the backend gave are kept."""
    usage = usage or Usage()
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {**counts, **{key: value for key, value in usage.raw.items() if key not in counts}}


def _function(call: ToolCall) -> dict[str, Json]:
    return {"name": call.name, "arguments": call.arguments or "{}"}


def _tool_call(call: ToolCall, custom: Collection[str]) -> dict[str, Json]:
    if call.name in custom:
        body = {"name": call.name, "input": custom_input(call.arguments)}
        return {"id": call.id, "type": "custom", "custom": body}
    return {"id": call.id, "type": "function", "function": _function(call)}

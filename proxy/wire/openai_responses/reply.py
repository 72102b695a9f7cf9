"""A whole reply as a ``response`` object, and the items that answers are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from proxy.core.collect import Reply
from proxy.core.errors import ToolgraftError, UpstreamError
from proxy.core.events import FinishReason, Usage
from proxy.core.model import NOTHING, Json, ToolCall
from proxy.wire import jsonio
from proxy.wire.arguments import custom_input
from proxy.wire.failures import BROKEN_OFF
from proxy.wire.openai_responses.builtins import BUILTINS
from proxy.wire.openai_responses.tools import ClientTool

Status: TypeAlias = Literal["in_progress", "completed", "incomplete"]

CODES = frozenset({"context_length_exceeded", "insufficient_quota", "invalid_prompt", "rate_limit_exceeded"})
"""Codes of a failed response that clients act on (codex shortens its history at the first)."""

INCOMPLETE: Mapping[FinishReason | None, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a reply that ended is not complete."""


class Answering(Struct, frozen=True):
    """What an answer must know of its request.

    ``id`` is the response's own, ``created`` in Unix seconds, ``raw`` the body of the request, of which the answer
    repeats much. ``known`` has the client's view of the tools by the names that the model sees. ``keep`` is given every
    item of the answer.
    """

    id: str
    created: int
    model: str
    raw: Mapping[str, Json] = NOTHING
    known: Mapping[str, ClientTool] = NOTHING
    keep: Callable[[Json], None] = lambda _: None

    @property
    def summarised(self) -> bool:
        """Reasoning goes out as its summary: the client asked for one, which is what it then shows."""
        reasoning = self.raw.get("reasoning")
        asked = reasoning if isinstance(reasoning, dict) else {}
        return any(asked.get(key) not in (None, "", "none") for key in ("summary", "generate_summary"))

    def item_id(self, prefix: str, index: int) -> str:
        """The id of the item at ``index``: unique wherever the response's id is."""
        return f"{prefix}_{self.id.removeprefix('resp_')}_{index}"

    def tool(self, name: str) -> ClientTool:
        """The client's view of the tool that the model calls ``name``."""
        return self.known.get(name) or ClientTool("function", name)


def encode_reply(reply: Reply, answering: Answering) -> bytes:
    """The JSON body. Raises ``UpstreamError`` for a reply that never ended or ended with an error."""
    if reply.finish is None or reply.finish == "error":
        raise UpstreamError(reply.message or BROKEN_OFF)
    reason = INCOMPLETE.get(reply.finish)
    output: list[Json] = []
    if reply.reasoning:
        output.append(reasoning_item(answering.item_id("rs", 0), reply.reasoning, answering.summarised))
    content = [text_part(reply.content)] if reply.content.strip() else []
    content += [refusal_part(reply.refusal)] if reply.refusal else []
    if not content and not reply.calls and reason is None:
        content = [text_part("")]
    if content:
        status: Status = "incomplete" if reason and not reply.calls else "completed"
        output.append(message_item(answering.item_id("msg", len(output)), content, status))
    for call in reply.calls:
        output.append(call_item(call, answering, len(output)))
    for item in output:
        answering.keep(item)
    return jsonio.dumps(response_object(answering, output, reply.usage, reason))


def response_object(
    answering: Answering,
    output: list[Json],
    usage: Usage | None = None,
    reason: str | None = None,
    *,
    error: ToolgraftError | None = None,
    running: bool = False,
) -> dict[str, Json]:
    """The object in any of its states: running, completed, incomplete for a ``reason``, failed with an ``error``."""
    status = "in_progress" if running else "failed" if error else "incomplete" if reason else "completed"
    raw = answering.raw
    return {
        "id": answering.id,
        "object": "response",
        "created_at": answering.created,
        "status": status,
        "background": False,
        "error": failure(error) if error else None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": raw.get("instructions"),
        "max_output_tokens": raw.get("max_output_tokens"),
        "max_tool_calls": raw.get("max_tool_calls"),
        "metadata": raw.get("metadata") or {},
        "model": answering.model,
        "output": output,
        "parallel_tool_calls": raw.get("parallel_tool_calls") is not False,
        "previous_response_id": None,
        "prompt_cache_key": raw.get("prompt_cache_key"),
        "reasoning": raw.get("reasoning") or {"effort": None, "summary": None},
        "safety_identifier": raw.get("safety_identifier"),
        "service_tier": "default",
        "store": False,
        "temperature": raw.get("temperature"),
        "text": raw.get("text") or {"format": {"type": "text"}},
        "tool_choice": raw.get("tool_choice") or "auto",
        "tools": raw.get("tools") or [],
        "top_logprobs": raw.get("top_logprobs"),
        "top_p": raw.get("top_p"),
        "truncation": "disabled",
        "usage": None if running or error else usage_object(usage),
        "user": raw.get("user"),
    }


def failure(error: ToolgraftError) -> dict[str, Json]:
    """The error of a failed response. Its codes are a short list, and not those of an error response."""
    if error.code in CODES:
        code = error.code
    elif error.status == 429:
        code = "rate_limit_exceeded"
    else:
        code = "invalid_prompt" if error.status < 500 else "server_error"
    return {"code": code, "message": error.message}


def usage_object(usage: Usage | None) -> dict[str, Json]:
    """Token counts, 0 where nobody counted."""
    usage = usage or Usage()
    read, written = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {
            "cached_tokens": usage.detail("prompt_tokens_details", "cached_tokens") or 0,
            "cache_write_tokens": 0,
        },
        "output_tokens": written,
        "output_tokens_details": {
            "reasoning_tokens": usage.detail("completion_tokens_details", "reasoning_tokens") or 0,
        },
        "total_tokens": read + written,
    }


def text_part(text: str) -> dict[str, Json]:
    """A piece of a message's content."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def refusal_part(text: str) -> dict[str, Json]:
    """The other kind of a message's content."""
    return {"type": "refusal", "refusal": text}


def message_item(item_id: str, content: list[Json], status: Status) -> dict[str, Json]:
    """A message of the assistant."""
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def reasoning_item(item_id: str, text: str, summarised: bool) -> dict[str, Json]:
    """A thought, ``""`` for one that has only begun. Its text stands in one place, so that no client shows it twice."""
    if summarised:
        return {"id": item_id, "type": "reasoning", "summary": [{"type": "summary_text", "text": text}] if text else []}
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {"id": item_id, "type": "reasoning", "summary": [], "content": content}


def call_item(call: ToolCall, answering: Answering, index: int) -> dict[str, Json]:
    """A call as the client knows it. ``index`` is the item's place in the output."""
    tool = answering.tool(call.name)
    row = BUILTINS.get(tool.kind)
    item = row.call_item(call, answering.item_id(row.prefix, index)) if row else None
    if item is not None:
        return item
    item = {"id": answering.item_id("ctc" if tool.kind == "custom" else "fc", index)}
    if tool.kind == "custom":
        item |= {"type": "custom_tool_call", "input": custom_input(call.arguments)}
    else:
        item |= {"type": "function_call", "arguments": call.arguments or "{}"}
    item |= {"call_id": call.id, "name": tool.name, "status": "completed"}
    if tool.namespace is not None:
        item["namespace"] = tool.namespace
    return item

"""A whole reply as a ``message`` object.

No block is empty: clients replay them, and the vendor's own servers refuse a text block without text.
"""

from __future__ import annotations

from collections.abc import Collection

from proxy.core.arguments import jsontext
from proxy.core.collect import Reply
from proxy.core.errors import UpstreamError
from proxy.core.events import FinishReason, Usage
from proxy.core.model import Json, ToolCall
from proxy.core.replay import UNREADABLE
from proxy.wire import jsonio
from proxy.wire.failures import BROKEN_OFF

SIGNATURE = "dG9vbGdyYWZ0"
"""The signature of a thinking block. Clients keep it and send it back; it is not looked at."""


def encode_reply(
    reply: Reply,
    *,
    id: str,  # noqa: A002 (the wire's own word)
    model: str,
    stop_sequences: Collection[str] = (),
) -> bytes:
    """The JSON body. Raises ``UpstreamError`` for a reply that never ended or ended with an error.

    ``stop_sequences`` are those of the request.
    """
    if reply.finish is None or reply.finish == "error":
        raise UpstreamError(reply.message or BROKEN_OFF)
    content: list[bytes] = []
    if reply.reasoning.strip():
        content.append(jsonio.dumps({"type": "thinking", "thinking": reply.reasoning, "signature": SIGNATURE}))
    said = reply.content + reply.refusal
    if said.strip():
        content.append(jsonio.dumps({"type": "text", "text": said}))
    content += map(_tool_use, reply.calls)
    stop = stop_fields(
        reply.finish,
        calls=bool(reply.calls),
        refusal=reply.refusal,
        stop_sequence=reply.stop_sequence,
        asked=stop_sequences,
    )
    head = {"id": id, "type": "message", "role": "assistant", "model": model}
    rest = {**stop, "usage": usage_object(reply.usage)}
    return jsonio.dumps(head)[:-1] + b',"content":[' + b",".join(content) + b"]," + jsonio.dumps(rest)[1:]


def _tool_use(call: ToolCall) -> bytes:
    """The block of a call, its numbers as the model wrote them. A lone surrogate becomes its JSON escape."""
    head = jsonio.dumps({"type": "tool_use", "id": call.id, "name": call.name})[:-1]
    return head + b',"input":' + input_text(call.arguments).encode("utf-8", "backslashreplace") + b"}"


def stop_fields(
    reason: FinishReason, *, calls: bool, refusal: str, stop_sequence: str | None, asked: Collection[str]
) -> dict[str, Json]:
    """``stop_reason`` and what belongs to it. A reply that was cut says so whatever else it holds.

    ``asked`` are the client's stop sequences: backends also name others, such as a template's end of turn.
    """
    fields: dict[str, Json] = {"stop_reason": "end_turn", "stop_sequence": None, "stop_details": None}
    if reason == "length":
        fields["stop_reason"] = "max_tokens"
    elif reason == "content_filter" or refusal:
        explanation = refusal or "The backend's content filter ended the reply."
        fields["stop_reason"] = "refusal"
        fields["stop_details"] = {"type": "refusal", "category": None, "explanation": explanation}
    elif calls:
        fields["stop_reason"] = "tool_use"
    elif stop_sequence in asked:
        fields |= {"stop_reason": "stop_sequence", "stop_sequence": stop_sequence}
    return fields


def usage_object(usage: Usage | None) -> dict[str, Json]:
    """Token counts, 0 where nobody counted. What came from a cache is not part of ``input_tokens`` here."""
    usage = usage or Usage()
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    cached = usage.detail("prompt_tokens_details", "cached_tokens")
    fields: dict[str, Json] = {"input_tokens": prompt, "output_tokens": completion}
    if cached is not None and cached <= prompt:
        fields |= {"input_tokens": prompt - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
    thinking = usage.detail("completion_tokens_details", "reasoning_tokens")
    if thinking is not None:
        fields["output_tokens_details"] = {"thinking_tokens": thinking}
    return fields


def input_text(arguments: str) -> str:
    """The JSON text of a call's ``input``, always that of an object: no arguments are ``{}``.

    What is no object goes into one: the client's own check of the input then tells the model of its mistake, while an
    empty input might run the tool.
    """
    if not arguments.strip():
        return "{}"
    try:
        value = jsontext.loads(arguments)
    except ValueError:
        value = None
    return arguments if isinstance(value, dict) else jsonio.dumps({UNREADABLE: arguments}).decode()

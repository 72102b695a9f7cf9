"""A Chat Completions request body to a ``Request``.

Lenient about the past, strict about the present: whatever a client replays as history is read somehow, for one odd
message must not make every later request of a conversation fail; what the caller wrote for this very request and can
mend (no messages, a tool without a name, a choice of a tool that is not there) is a 400 that names the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from proxy.core.errors import ClientError
from proxy.core.model import Json, Message, Request, Role, TextPart, ToolCall, ToolResult
from proxy.wire.arguments import custom_arguments, read_arguments
from proxy.wire.bodies import text, typed
from proxy.wire.chat_content import read_content, read_reasoning
from proxy.wire.openai_chat.tools import read_offer

ROLES: Mapping[Json, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

READ_FIELDS = frozenset(
    {
        "messages",
        "model",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "stream",
        "stream_options",
        "response_format",
    }
)
"""Top-level fields with a place of their own in ``Request``; every other one goes into ``extra`` as it is."""


class ChatRequest(Struct, frozen=True):
    """A decoded request.

    ``legacy_functions``: the client sent ``functions`` and wants ``function_call`` back, which has room for one call.
    ``dropped_tools``: the types of hosted tools that were left out.
    """

    request: Request
    legacy_functions: bool = False
    dropped_tools: tuple[str, ...] = ()

    @property
    def custom_tools(self) -> frozenset[str]:
        """The names whose calls are answered in the shape of custom tool calls."""
        return frozenset([tool.name for tool in self.request.tools if tool.custom])


def decode_body(raw: dict[str, Json]) -> ChatRequest:
    """Read what ``load_body`` gave. Raises ``ClientError`` (400) with ``param`` naming the field at fault."""
    try:
        return _decode(raw)
    except (ValueError, RecursionError) as error:
        raise ClientError(f"The request body cannot be read: {error}.", code="invalid_json") from None


def _decode(raw: dict[str, Json]) -> ChatRequest:
    messages = raw.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ClientError("`messages` must be a list with at least one message.", param="messages")
    offer = read_offer(raw)
    options = raw.get("stream_options")
    response_format = typed(raw, "response_format", dict, "an object")
    if response_format == {"type": "text"}:
        response_format = None  # the default, spelled out
    request = Request(
        messages=tuple(_read_messages(messages)),
        model=typed(raw, "model", str, "a string") or None,
        tools=offer.tools,
        tool_choice=offer.choice,
        parallel=raw.get("parallel_tool_calls") is not False and not offer.legacy,
        stream=bool(typed(raw, "stream", bool, "true or false")),
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        response_format=response_format,
        extra={key: value for key, value in raw.items() if key not in READ_FIELDS},
    )
    return ChatRequest(request, offer.legacy, offer.dropped)


def _read_messages(raw: list[Json]) -> Iterable[Message]:
    """The messages. What is none is refused behind the last answer only; before it, it is shown as what it is."""
    odd: int | None = None  # the first such behind the last answer so far
    for at, entry in enumerate(raw):
        if isinstance(entry, dict):
            odd = None if entry.get("role") == "assistant" else odd
            yield _read_message(entry)
            continue
        odd = at if odd is None else odd
        if entry is not None:
            yield Message("user", read_content(entry).parts)
    if odd is not None:
        raise ClientError(f"`messages[{odd}]` must be an object.", param=f"messages[{odd}]")


def _read_message(raw: Mapping[str, Json]) -> Message:
    calls = _read_calls(raw)
    role = ROLES.get(text(raw.get("role")), "assistant" if calls else "user")
    content = read_content(raw.get("content"))
    name = text(raw.get("name")) or None
    if role == "tool":
        failed = raw.get("is_error") is True
        return Message(role, results=(ToolResult(text(raw.get("tool_call_id")), content.parts, name, failed),))
    if role != "assistant":
        return Message(role, content.parts, name=name)
    refusal = text(raw.get("refusal"))
    parts = content.parts or ((TextPart(refusal),) if refusal else ())
    return Message(role, parts, calls, reasoning=read_reasoning(raw) or content.reasoning or None, name=name)


def _read_calls(raw: Mapping[str, Json]) -> tuple[ToolCall, ...]:
    entries, legacy = raw.get("tool_calls"), raw.get("function_call")
    if isinstance(entries, list) and entries:
        return tuple([_read_call(entry) for entry in entries if isinstance(entry, dict)])
    return (_read_call(legacy),) if isinstance(legacy, dict) and not entries else ()


def _read_call(entry: Mapping[str, Json]) -> ToolCall:
    custom = entry.get("custom")
    if isinstance(custom, dict):
        arguments = custom_arguments(text(custom.get("input")))
        return ToolCall(text(entry.get("id")), text(custom.get("name")), arguments, custom=True)
    function = entry.get("function")
    body = function if isinstance(function, dict) else entry
    return ToolCall(text(entry.get("id")), text(body.get("name")), read_arguments(body.get("arguments")))

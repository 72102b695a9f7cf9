"""A Messages request body to a ``Request``.

Lenient about the past, strict about the present: whatever a client replays as history is read somehow; what it wrote
for this very request and can mend, or what the answer would depend on and cannot be done here, is a 400 that names the
field.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from proxy.core.errors import ClientError
from proxy.core.model import Json, Message, Request, TextPart
from proxy.wire.anthropic_messages.content import APART, blocks, read_content, read_system
from proxy.wire.anthropic_messages.errors import THREAD_UNSUPPORTED
from proxy.wire.anthropic_messages.tools import read_offer
from proxy.wire.bodies import text, typed

SAMPLING = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed", "logit_bias", "presence_penalty", "frequency_penalty"),
        *("repeat_penalty", "repetition_penalty", "chat_template_kwargs"),
    }
)
"""Fields that go on under their own name: Anthropic's, and such as only model servers know.

All others (``metadata``, ``thinking``, ``context_management``, ``service_tier`` …) are for Anthropic's servers: they
are accepted, and not sent, since some backends refuse what they do not know.
"""


class MessagesRequest(Struct, frozen=True):
    """A decoded request. ``dropped_tools``: the types of hosted tools that were left out."""

    request: Request
    stop_sequences: tuple[str, ...] = ()
    dropped_tools: tuple[str, ...] = ()


def decode_body(raw: dict[str, Json]) -> MessagesRequest:
    """Read what ``load_body`` gave. Raises ``ClientError`` (400) with ``param`` naming the field at fault."""
    try:
        return _decode(raw)
    except (ValueError, RecursionError) as error:
        raise ClientError(f"The request body cannot be read: {error}.", code="invalid_json") from None


def _decode(raw: dict[str, Json]) -> MessagesRequest:
    _refuse_what_only_anthropic_has(raw)
    given = raw.get("messages")
    if not isinstance(given, list) or not given:
        raise ClientError("`messages` must be a list with at least one message.", param="messages")
    offer = read_offer(raw)
    system = read_system(raw.get("system"))
    messages = [Message("system", (TextPart(system),))] if system else []
    asked_at = _asked_at(given)
    for at, message in enumerate(given):
        if message is not None or at >= asked_at:
            messages.append(_read_message(message, at, present=at >= asked_at))
    stops = _stop_sequences(raw)
    extra = {key: value for key, value in raw.items() if key in SAMPLING and value is not None}
    limit = _max_tokens(raw)
    if limit is not None:
        extra["max_tokens"] = limit
    if stops:
        extra["stop"] = list(stops)
    stream = bool(typed(raw, "stream", bool, "true or false"))
    request = Request(
        messages=tuple(messages),
        model=typed(raw, "model", str, "a string") or None,
        tools=offer.tools,
        tool_choice=offer.choice,
        parallel=offer.parallel,
        stream=stream,
        include_usage=stream,
        response_format=_response_format(raw),
        extra=extra,
    )
    return MessagesRequest(request, stops, offer.dropped)


def _refuse_what_only_anthropic_has(raw: Mapping[str, Json]) -> None:
    if raw.get("thread"):
        raise ClientError(
            "`thread` asks for a conversation that the server remembers; this one keeps none. Send all messages.",
            code=THREAD_UNSUPPORTED,
            param="thread",
        )
    if raw.get("mcp_servers"):
        raise ClientError(
            "`mcp_servers` cannot be used: this server connects to no MCP servers. Connect to them in the client and "
            "offer their tools in `tools`.",
            param="mcp_servers",
        )
    if raw.get("container"):
        raise ClientError("`container` cannot be used: this server runs no code. Leave it out.", param="container")


def _asked_at(messages: list[Json]) -> int:
    """Where the turn begins in which the user asks. While tools run there is none: what they found stands in it too."""
    start = 1 + max((at for at, message in enumerate(messages) if _role(message) == "assistant"), default=-1)
    running = any(
        block.get("type") == "tool_result"
        for message in messages[start:]
        if isinstance(message, dict)
        for block in blocks(message.get("content"))
    )
    return len(messages) if running else start


def _role(raw: Json) -> str:
    return text(raw.get("role")) if isinstance(raw, dict) else ""


def _read_message(raw: Json, at: int, *, present: bool) -> Message:
    where = f"messages[{at}]"
    if not isinstance(raw, dict):
        if present:
            raise ClientError(f"`{where}` must be an object.", param=where)
        raw = {"content": raw}
    role = _role(raw)
    if role in ("system", "developer"):
        return Message("system", (TextPart(read_system(raw.get("content"))),))
    content = read_content(raw.get("content"), where, role=role, present=present)
    return Message(
        "assistant" if role == "assistant" or content.calls else "user",
        tuple(content.parts),
        tuple(content.calls),
        tuple(content.results),
        APART.join(content.reasoning) or None,
    )


def _max_tokens(raw: Mapping[str, Json]) -> int | None:
    """The limit, which the vendor demands and backends do not. 0 (fill the cache, say nothing) becomes 1."""
    limit: int | None = typed(raw, "max_tokens", int, "a whole number")
    if limit is None:
        return None
    if isinstance(limit, bool) or limit < 0:
        raise ClientError("`max_tokens` must be a whole number, and not negative.", param="max_tokens")
    return max(1, limit)


def _stop_sequences(raw: Mapping[str, Json]) -> tuple[str, ...]:
    given = typed(raw, "stop_sequences", list, "a list of strings") or []
    if not all(isinstance(stop, str) for stop in given):
        raise ClientError("`stop_sequences` must be a list of strings.", param="stop_sequences")
    return tuple(stop for stop in given if stop)


def _response_format(raw: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """``output_config.format`` (``output_format`` in an older beta) in the words of Chat Completions."""
    config = typed(raw, "output_config", dict, "an object") or {}
    match config.get("format") or raw.get("output_format"):
        case None:
            return None
        case {"type": "json_schema", "schema": dict(schema)}:
            return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    raise ClientError(
        "`output_config.format` must be an object with `type` 'json_schema' and a `schema`.", param="output_config"
    )

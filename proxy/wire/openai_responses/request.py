"""A Responses request body to a ``Request``.

No state is kept between requests: what asks for it is a 400 that says so. Fields that Chat Completions has no word for
are accepted and stay here; those that are no part of the Responses API (``top_k`` …) go to the backend as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from proxy.core.errors import ClientError
from proxy.core.model import NOTHING, Json, Message, Request, TextPart
from proxy.wire.bodies import text, typed
from proxy.wire.openai_responses.items import read_input
from proxy.wire.openai_responses.tools import ClientTool, Offer, read_offer

STAYS_HERE = frozenset(
    {
        "access_programs",
        "background",
        "background_options",
        "client_metadata",
        "context_management",
        "conversation",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "truncation",
        "user",
    }
)
"""Top-level fields of the Responses API that no backend is sent under these names."""

_STATE = "No state is kept here between requests: "


class ResponsesRequest(Struct, frozen=True):
    """A decoded request. ``raw`` is the body as it came.

    ``known`` has the client's view of each tool by the name that the model sees. ``dropped_tools`` are the types of
    hosted tools that were left out.
    """

    request: Request
    raw: Mapping[str, Json]
    known: Mapping[str, ClientTool] = NOTHING
    dropped_tools: tuple[str, ...] = ()


def decode_body(raw: Mapping[str, Json], recall: Callable[[str], Json] = lambda _: None) -> ResponsesRequest:
    """Read what ``load_body`` gave. ``recall`` gives the item that an id refers to.

    Raises ``ClientError`` (400) with ``param`` naming the field at fault.
    """
    try:
        return _decode(raw, recall)
    except (ValueError, RecursionError) as error:
        raise ClientError(f"The request body cannot be read: {error}.", code="invalid_json") from None


def _decode(raw: Mapping[str, Json], recall: Callable[[str], Json]) -> ResponsesRequest:
    _refuse_state(raw)
    history = read_input(raw.get("input"), recall)
    offer = read_offer(raw, history.tools)
    request = Request(
        messages=(*_preface(raw, offer), *history.messages),
        model=typed(raw, "model", str, "a string") or None,
        tools=offer.tools,
        tool_choice=offer.choice,
        parallel=raw.get("parallel_tool_calls") is not False,
        stream=bool(typed(raw, "stream", bool, "true or false")),
        response_format=_response_format(raw),
        extra=_extra(raw),
    )
    return ResponsesRequest(request, raw, offer.known, offer.dropped)


def _refuse_state(raw: Mapping[str, Json]) -> None:
    if raw.get("previous_response_id"):
        raise ClientError(
            f"{_STATE}send the whole conversation in `input` instead of `previous_response_id`.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    if raw.get("conversation"):
        raise ClientError(
            f"{_STATE}send the whole conversation in `input` instead of `conversation`.", param="conversation"
        )
    if raw.get("prompt"):
        raise ClientError(
            f"{_STATE}prompts that are stored at OpenAI cannot be used. Send their text as `instructions` or `input`.",
            param="prompt",
        )
    if raw.get("background"):
        raise ClientError(
            f"{_STATE}a response in the background could not be fetched later. Leave `background` out, and set "
            "`stream` for answers that take long.",
            param="background",
        )


def _preface(raw: Mapping[str, Json], offer: Offer) -> list[Message]:
    told = [typed(raw, "instructions", str, "a string"), *offer.notes]
    return [Message("system", (TextPart(words),)) for words in told if words]


def _response_format(raw: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """The format in the shape of Chat Completions, which nests what describes a schema."""
    options = typed(raw, "text", dict, "an object")
    form = typed(options, "format", dict, "an object") if options else None
    if not form or form.get("type") in (None, "text"):
        return None
    if form.get("type") != "json_schema" or "json_schema" in form:
        return dict(form)
    inner = {key: value for key, value in form.items() if key != "type" and value is not None}
    return {"type": "json_schema", "json_schema": inner}


def _extra(raw: Mapping[str, Json]) -> dict[str, Json]:
    extra = {key: value for key, value in raw.items() if key not in STAYS_HERE}
    limit = typed(raw, "max_output_tokens", int, "a whole number")
    if limit is not None:
        extra["max_tokens"] = limit
    reasoning = typed(raw, "reasoning", dict, "an object")
    effort = text((reasoning or {}).get("effort"))
    if effort:
        extra["reasoning_effort"] = effort
    return extra

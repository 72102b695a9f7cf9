"""A ``Request`` as the body of a backend's ``/chat/completions``.

Written for the narrowest servers: message contents are strings unless there is an image, null members are left out,
tools are plain functions with a schema. Chat templates are narrow too: many refuse a system message that is not the
first, or two of one side in a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from proxy.core.content import join
from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, Json, Message, OtherPart, Part, Request, TextPart, Tool, ToolCall, ToolResult
from proxy.wire import jsonio


def encode_request(request: Request, *, model: str | None, stream: bool) -> bytes:
    """The body. ``model`` is sent as given and left out if None; usage is always asked of a stream.

    ``max_completion_tokens`` is sent under its older name, which every server knows, while some ignore the newer or
    refuse it. Raises ``ClientError`` for values that are nested too deeply to be written.
    """
    body: dict[str, Json] = {"model": model} if model is not None else {}
    body["messages"] = list(_messages(_turns(request.messages)))
    body |= _tools(request)
    if request.response_format is not None:
        body["response_format"] = dict(request.response_format)
    for key, value in request.extra.items():
        if value is not None and not (key == "stop" and value in ("", [])):
            body[key] = value
    limit = body.pop("max_completion_tokens", None)
    if limit is not None:
        body.setdefault("max_tokens", limit)
    body["stream"] = stream
    if stream:
        body["stream_options"] = {"include_usage": True}
    try:
        return jsonio.dumps(body, lone_surrogates="replace")
    except ValueError as error:
        raise ClientError(f"The request cannot be passed on: it is {error}.") from None


def _turns(messages: Iterable[Message]) -> list[Message]:
    """``messages`` with neighbours of one side joined; system text that comes later is said by the user."""
    turns: list[Message] = []
    for message in messages:
        last = turns[-1] if turns else None
        if message.role == "system" and last and last.role != "system":
            message = replace(message, role="user")
        if last and message.role == last.role != "tool" and message.name == last.name and not message.results:
            content = join(part for part in (last.content, message.content) if part)
            reasoning = "\n\n".join(filter(None, (last.reasoning, message.reasoning))) or None
            turns[-1] = replace(last, content=content, calls=last.calls + message.calls, reasoning=reasoning)
        else:
            turns.append(message)
    return turns


def _messages(messages: Iterable[Message]) -> Iterator[dict[str, Json]]:
    """Results become ``tool`` messages. Their images follow in a user message, since those hold text only.

    Calls that were made since the last user text keep the reasoning that led to them: models that think between their
    calls were trained to see it, and what is older their templates drop.
    """
    every = tuple(messages)
    asked = max((at for at, message in enumerate(every) if message.role == "user" and message.content), default=-1)
    images: list[Part] = []
    for at, message in enumerate(every):
        for result in message.results:
            yield _result(result)
            images += (part for part in result.content if not isinstance(part, TextPart))
        if message.results and not message.content:
            continue
        content = message.content
        if images and message.role == "user":
            content = (*images, *content)
            images = []
        elif images:
            yield {"role": "user", "content": _content(images)}
            images = []
        yield _message(message, content, reasoning=message.reasoning if at > asked and message.calls else None)
    if images:
        yield {"role": "user", "content": _content(images)}


def _message(message: Message, content: Sequence[Part], *, reasoning: str | None) -> dict[str, Json]:
    raw: dict[str, Json] = {"role": message.role, "content": _content(content)}
    if reasoning:
        raw["reasoning_content"] = reasoning
    if message.name is not None:
        raw["name"] = message.name
    if message.calls:
        raw["tool_calls"] = [_call(call) for call in message.calls]
    return raw


def _content(parts: Sequence[Part]) -> Json:
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return [_part(part) for part in parts]


def _part(part: Part) -> Mapping[str, Json]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart(url, None):
            return {"type": "image_url", "image_url": {"url": url}}
        case ImagePart(url, detail):
            return {"type": "image_url", "image_url": {"url": url, "detail": detail}}
        case OtherPart(raw):
            return dict(raw)


def _call(call: ToolCall) -> dict[str, Json]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _result(result: ToolResult) -> dict[str, Json]:
    """A result as a ``tool`` message. The shape knows no failure, so a failed one says so in its text."""
    text = "".join(part.text for part in result.content if isinstance(part, TextPart))
    return {"role": "tool", "tool_call_id": result.call_id, "content": f"Error: {text}" if result.is_error else text}


def _tools(request: Request) -> dict[str, Json]:
    choice = request.tool_choice
    tools = request.tools if choice.allowed is None else request.offered
    if not tools:
        return {}
    fields: dict[str, Json] = {"tools": [_tool(tool) for tool in tools]}
    if choice.mode == "named":
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto":
        fields["tool_choice"] = choice.mode
    if not request.parallel:
        fields["parallel_tool_calls"] = False
    return fields


def _tool(tool: Tool) -> dict[str, Json]:
    """As a plain function. Other members of the definition are other vendors' (``cache_control`` …): left out."""
    function: dict[str, Json] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    schema = tool.parameters
    function["parameters"] = {"type": "object", "properties": {}} if schema is None else schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}

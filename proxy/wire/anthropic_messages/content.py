"""The content of a message: a string or a list of blocks, as parts of a ``Message``.

What a model can be shown becomes text or an image. What it cannot (a PDF, a file that only Anthropic's servers hold) is
refused where the user asks about it, for the answer depends on it. In earlier turns, where nobody can take it back, and
while tools run (agents put what a tool has read beside its result) the model is told that it is missing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from proxy.core.content import words_of
from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, Json, OtherPart, Part, TextPart, ToolCall, ToolResult
from proxy.wire import jsonio
from proxy.wire.bodies import text

Block = Mapping[str, Json]

BILLING = "x-anthropic-billing-header:"
"""How a block begins that Claude Code puts first into its system text, for Anthropic's servers alone."""

APART = "\n\n"
"""Between the texts of two blocks."""

_SILENT = frozenset({"redacted_thinking", "fallback", "mcp_tool_listing", "tool_addition", "tool_removal"})
"""Blocks that say nothing to a model: sealed reasoning, marks of Anthropic's servers, changes of the tools."""

_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature", "cache_control"})


@dataclass(slots=True)
class Content:
    """What the blocks of one message say. Lists are filled in the order of the blocks."""

    parts: list[Part] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)


def blocks(raw: Json) -> Iterator[Block]:
    """The blocks of a ``content``; strings are text. What is no block is shown as JSON."""
    for item in raw if isinstance(raw, list) else () if raw is None else (raw,):
        if isinstance(item, Mapping):
            yield item
        else:
            yield {"type": "text", "text": item if isinstance(item, str) else jsonio.dumps(item).decode()}


def read_content(raw: Json, where: str, *, role: str, present: bool) -> Content:
    """Read a message's ``content``. ``where`` names it in errors; ``present``: it belongs to the turn to be answered.

    Raises ``ClientError`` for what a present user turn holds and no model can be shown.
    """
    # An assistant's text may have been cut anywhere (a block for each citation): it is put together as it was.
    content, between = Content(), "" if role == "assistant" else APART
    for at, block in enumerate(blocks(raw)):
        match block:
            case {"type": "tool_use"}:
                content.calls.append(_call(block))
            case {"type": "tool_result"}:
                content.results.append(_result(block))
            case {"type": "thinking"}:
                content.reasoning.append(text(block.get("thinking")))
            case _:
                param = f"{where}.content[{at}]" if present and role != "assistant" else None
                _add(content.parts, _parts(block, param), between)
    return content


def read_system(raw: Json) -> str:
    """The text of ``system``, or of a system message."""
    parts: list[Part] = []
    for block in blocks(raw):
        if not text(block.get("text")).startswith(BILLING):
            _add(parts, _parts(block, None), APART)
    return APART.join(part.text for part in parts if isinstance(part, TextPart))


def _call(block: Block) -> ToolCall:
    given = block.get("input")
    arguments = given if isinstance(given, str) and given.strip() else jsonio.dumps(given or {}).decode()
    return ToolCall(text(block.get("id")), text(block.get("name")), arguments)


def _result(block: Block) -> ToolResult:
    parts: list[Part] = []
    for inner in blocks(block.get("content")):
        _add(parts, _parts(inner, None), APART)
    return ToolResult(text(block.get("tool_use_id")), tuple(parts), is_error=block.get("is_error") is True)


def _add(parts: list[Part], more: Iterable[Part], between: str) -> None:
    """Put ``more`` behind ``parts``, neighbouring texts into one."""
    for part in more:
        last = parts[-1] if parts else None
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            parts[-1] = TextPart(last.text + (between if last.text and part.text else "") + part.text)
        else:
            parts.append(part)


def _parts(block: Block, param: str | None) -> list[Part]:
    """A block that is neither a call, nor a result, nor reasoning. ``param`` is its name if it may be refused."""
    kind = text(block.get("type"))
    if kind in _SILENT:
        return []
    match block:
        case {"type": "text", "text": str(words)}:
            return [TextPart(words)]
        case {"type": "image", "source": dict(source)}:
            return [_image(source, param)]
        case {"type": "document", "source": dict(source)}:
            return _document(block, source, param)
        case {"type": "search_result"}:
            return [TextPart(_lines("Search result", block, "source", _flat(block.get("content"))))]
        case {"type": "tool_reference", "tool_name": str(name)}:
            return [TextPart(f"[The tool {name} can be called.]")]
        case {"type": "server_tool_use" | "mcp_tool_use"}:
            return [TextPart(f"[{text(block.get('name'))} was called with {_json(block.get('input'))}]")]
        case {"type": "container_upload"}:
            return [_missing("a file for a container, which this server does not have", param)]
        case {"type": "compaction", "content": str(summary)}:
            return [TextPart(summary)]
    if kind.endswith("_tool_result"):
        return [TextPart(f"[The result was {_json(block.get('content'))}]")]
    return [TextPart(words_of(OtherPart(block)))]


def _image(source: Block, param: str | None) -> Part:
    match source:
        case {"type": "base64", "data": str(data)}:
            return ImagePart(f"data:{text(source.get('media_type')) or 'image/png'};base64,{data}")
        case {"type": "url", "url": str(url)}:
            return ImagePart(url)
    return _missing(f"an image from a source of type {source.get('type')!r}", param)


def _document(block: Block, source: Block, param: str | None) -> list[Part]:
    media_type = text(source.get("media_type"))
    match source:
        case {"type": "text", "data": str(words)}:
            body: list[Part] = [TextPart(words)]
        case {"type": "content", "content": inner}:
            body = [part for item in blocks(inner) for part in _parts(item, param)]
        case {"type": "base64", "data": str(data)} if media_type.startswith("text/"):
            body = [TextPart(_decode(data, param))]
        case {"type": "base64"}:
            return [_missing(f"a document of type {media_type or 'unknown'}", param)]
        case _:
            return [_missing(f"a document from a source of type {source.get('type')!r}", param)]
    parts: list[Part] = [TextPart(_lines("Document", block, "context"))]
    _add(parts, body, "\n")
    return parts


def _lines(kind: str, block: Block, member: str, *more: str) -> str:
    """A heading with the block's title, then its ``member`` and ``more``, a line each."""
    title = text(block.get("title"))
    return "\n".join([f"[{kind}: {title}]" if title else f"[{kind}]", *filter(None, [text(block.get(member)), *more])])


def _decode(data: str, param: str | None) -> str:
    try:
        return base64.b64decode(data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return _missing("a document whose base64 cannot be read", param).text


def _missing(what: str, param: str | None) -> TextPart:
    if param is not None:
        raise ClientError(f"`{param}` is {what}: the model cannot be shown it. Send its text instead.", param=param)
    return TextPart(f"[left out: {what}]")


def _flat(raw: Json) -> str:
    return "\n".join(text(block.get("text")) for block in blocks(raw))


def _json(value: Json) -> str:
    return jsonio.dumps(_unsealed(value)).decode()


def _unsealed(value: Json) -> Json:
    """``value`` without what only Anthropic's servers can read, and without base64."""
    if isinstance(value, Mapping):
        held = value.get("type") == "base64"
        return {
            key: _unsealed(item)
            for key, item in value.items()
            if item is not None and key not in _SEALED and not (held and key == "data")
        }
    return [_unsealed(item) for item in value] if isinstance(value, list) else value

"""What a client got, read back from the bytes that it was sent: text, reasoning and calls of any surface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from proxy.core.collect import Reply, collect
from proxy.core.errors import UpstreamError
from proxy.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from proxy.core.model import Json
from proxy.wire import jsonio, sse
from proxy.wire.sse import Frame
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply


def frames_of(data: bytes) -> list[Frame]:
    """The events of a stream, as far as they came."""
    try:
        return sse.frames_of(data)
    except UpstreamError:  # a frame without an end
        return []


def chat_events(data: bytes) -> list[Event]:
    """The events of a reply in the format of Chat Completions, whole or a stream, as far as it can be read."""
    if is_stream(data):
        decoder = ChunkDecoder()
        events, error = decoder.read(frames_of(data))
        return events if error else [*events, *decoder.close()]
    try:
        return decode_reply(data)
    except UpstreamError:
        return []


def read_answer(surface: str, data: bytes) -> Reply | None:
    """The reply in what a client of ``surface`` was sent; None if there is none to be read."""
    if surface == "chat":
        events = chat_events(data)
    else:
        read = {"messages": _message, "responses": _response}.get(surface)
        events = [] if read is None else list(read(_payloads(data)))
    return collect(events) if events else None


def is_stream(data: bytes) -> bool:
    """Whether ``data`` is a stream of events rather than a JSON text."""
    return data.lstrip()[:1] not in (b"{", b"[")


def _payloads(data: bytes) -> Iterator[Mapping[str, Json]]:
    texts: Iterable[bytes | str] = [frame.data for frame in frames_of(data)] if is_stream(data) else [data]
    for text in texts:
        try:
            value = jsonio.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _message(payloads: Iterable[Mapping[str, Json]]) -> Iterator[Event]:
    """Anthropic's Messages: https://docs.anthropic.com/en/api/messages-streaming."""
    calls = 0
    inside = False
    for payload in payloads:
        match payload:
            case {"type": "message", "content": list(blocks), "stop_reason": reason}:
                for block in blocks:
                    yield from _block(block, calls, whole=True)
                    calls += isinstance(block, dict) and block.get("type") == "tool_use"
                yield Finish("tool_calls" if reason == "tool_use" else "stop")
            case {"type": "content_block_start", "content_block": dict(block)}:
                inside = block.get("type") == "tool_use"
                yield from _block(block, calls, whole=False)
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                yield TextDelta(text)
            case {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": str(text)}}:
                yield ReasoningDelta(text)
            case {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": str(text)}}:
                if inside:
                    yield ToolArgumentsDelta(calls, text)
            case {"type": "content_block_stop"} if inside:
                yield ToolCallEnd(calls)
                calls, inside = calls + 1, False
            case {"type": "message_delta", "delta": {"stop_reason": str(reason)}}:
                yield Finish("tool_calls" if reason == "tool_use" else "stop")


def _block(block: Json, index: int, *, whole: bool) -> Iterator[Event]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield TextDelta(text)
        case {"type": "thinking", "thinking": str(text)}:
            yield ReasoningDelta(text)
        case {"type": "tool_use", "id": str(given), "name": str(name), "input": arguments}:
            yield ToolCallStart(index, given, name)
            if whole:
                yield ToolArgumentsDelta(index, jsonio.dumps(arguments).decode())
                yield ToolCallEnd(index)


def _response(payloads: Iterable[Mapping[str, Json]]) -> Iterator[Event]:
    """OpenAI's Responses: each item once it is done, or the whole. The items of a stream's last event came before."""
    calls = 0
    for payload in payloads:
        match payload:
            case {"object": "response", "output": list(items)}:
                pass
            case {"type": "response.output_item.done", "item": dict(item)}:
                items = [item]
            case {"type": "response.completed" | "response.incomplete"}:
                yield Finish("tool_calls" if calls else "stop")
                continue
            case _:
                continue
        for item in items:
            match item:
                case {"type": "message", "content": list(parts)}:
                    yield from (TextDelta(part["text"]) for part in parts if _has_text(part))
                case {"type": "reasoning"}:
                    parts = [*(item.get("content") or []), *(item.get("summary") or [])]
                    yield from (ReasoningDelta(part["text"]) for part in parts if _has_text(part))
                case {"type": "function_call" | "custom_tool_call", "call_id": str(given), "name": str(name)}:
                    told = item.get("arguments", item.get("input"))
                    yield ToolCallStart(calls, given, name)
                    yield ToolArgumentsDelta(calls, told if isinstance(told, str) else "")
                    yield ToolCallEnd(calls)
                    calls += 1
        if payload.get("object") == "response":
            yield Finish("tool_calls" if calls else "stop")


def _has_text(part: Json) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str)

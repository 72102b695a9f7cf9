"""Conversations as short JSON, in the core's own words, and back: what the files under ``fixtures/conversations`` hold.

A message is ``role``, ``content`` (a text, or a list of texts, ``{"image": url}`` and parts of other types), ``calls``
(``[id, name, arguments]`` each), ``results`` (``call_id``, ``content``, ``name``, ``is_error``) and ``reasoning``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from proxy.core.model import ImagePart, Message, OtherPart, Part, TextPart, ToolCall, ToolResult

FIXTURES = Path(__file__).parents[2] / "fixtures"
GOLDEN = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FIXTURES.glob("conversations/*.json"))}

_BITS = (
    "<", "</", ">", "|", "|>", "<|", "/", " ", "\n", "｜", "&lt;", "a", '"', "\\", "{", "}", "tool_call", "tool_result",
    "TOOLS", "tools", "tool_response", "im_start", "system", "<tool_call>", "</tool_result>", "<|im_end|>", "<|turn>",
)  # fmt: skip
risky_text = st.lists(st.sampled_from(_BITS) | st.text(st.characters(codec="utf-8"), max_size=3), max_size=8).map(
    "".join
)
"""Any text, but most of it nearly markup or a control token."""

_MARKUP = re.compile(
    r"<[ \t]*/?[ \t]*(?:tool_call|tool_result|tool_response|tools)\b(?!-)|<[|｜]\w+[|｜]?>|<\w+[|｜]>", re.IGNORECASE
)


def markup_in(text: str) -> list[str]:
    """The tags of the protocol and the control tokens in ``text``, in order, without attributes."""
    return _MARKUP.findall(text)


def texts(*text: str) -> tuple[Part, ...]:
    return tuple(TextPart(one) for one in text)


def user(*text: str) -> Message:
    return Message("user", texts(*text))


def assistant(*text: str, calls: tuple[ToolCall, ...] = (), reasoning: str | None = None) -> Message:
    return Message("assistant", texts(*text), calls=calls, reasoning=reasoning)


def result(call_id: str, text: str, **fields: Any) -> Message:
    return Message("tool", results=(ToolResult(call_id, texts(text), **fields),))


def decode_messages(raw: list[dict[str, Any]]) -> list[Message]:
    return [
        Message(
            role=message["role"],
            content=_parts(message.get("content", [])),
            calls=tuple(ToolCall(*call) for call in message.get("calls", [])),
            results=tuple(
                ToolResult(
                    entry.get("call_id", ""),
                    _parts(entry.get("content", [])),
                    entry.get("name"),
                    entry.get("is_error", False),
                )
                for entry in message.get("results", [])
            ),
            reasoning=message.get("reasoning"),
        )
        for message in raw
    ]


def encode_messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Only role and content: a message with anything else would not be a plain turn."""
    assert all(message == Message(message.role, message.content) for message in messages)
    return [{"role": message.role, "content": _content(message.content)} for message in messages]


def _parts(content: str | list[Any]) -> tuple[Part, ...]:
    return texts(content) if isinstance(content, str) else tuple(map(_part, content))


def _part(raw: Any) -> Part:
    if isinstance(raw, str):
        return TextPart(raw)
    return ImagePart(raw["image"]) if "image" in raw else OtherPart(raw)


def _content(content: tuple[Part, ...]) -> Any:
    match content:
        case (TextPart(text),):
            return text
        case _:
            return [_raw(part) for part in content]


def _raw(part: Part) -> Any:
    match part:
        case TextPart(text):
            return text
        case ImagePart(url):
            return {"image": url}
        case OtherPart(raw):
            return dict(raw)

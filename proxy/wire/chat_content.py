"""The ``content`` of a Chat Completions message: a string, a list of parts, or whatever else people send.

Shared by both sides of the wire: clients put it into histories, backends into replies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from proxy.core.model import ImagePart, Json, OtherPart, Part, TextPart
from proxy.wire import jsonio

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""Names of the reasoning beside the content: DeepSeek's and llama.cpp's, OpenRouter's and newer vLLM's, Ollama's."""


class Content(Struct, frozen=True):
    """What a ``content`` value says. ``reasoning`` holds thinking parts (Mistral's and LiteLLM's way)."""

    parts: tuple[Part, ...] = ()
    reasoning: str = ""

    @property
    def text(self) -> str:
        """The text parts joined."""
        return "".join([part.text for part in self.parts if isinstance(part, TextPart)])


NO_CONTENT = Content()


def read_content(raw: Json) -> Content:
    """Read any value. What is not content (a bare object or a list of numbers as a tool's result, say) is JSON text.

    Raises ``ValueError`` only for such a value that is nested too deeply to be written.
    """
    match raw:
        case str():
            return Content((TextPart(raw),)) if raw else NO_CONTENT
        case None | []:
            return NO_CONTENT
        case list() if all(_is_part(item) for item in raw):
            return _read_parts(raw)
        case {"type": "text" | "image_url"}:
            return _read_parts([raw])
    return Content((TextPart(jsonio.dumps(raw).decode()),))


def read_reasoning(message: Mapping[str, Json]) -> str:
    """The reasoning beside the content of a message or delta. Servers that fill two names say the same in both."""
    for field in REASONING_FIELDS:
        value = message.get(field)
        if isinstance(value, str) and value:
            return value
    return ""


def _is_part(item: Json) -> bool:
    return isinstance(item, str) or (
        isinstance(item, dict) and (isinstance(item.get("type"), str) or [*item] == ["text"])
    )


def _read_parts(items: Sequence[Json]) -> Content:
    parts: list[Part] = []
    reasoning: list[str] = []
    for item in items:
        if isinstance(item, str):
            parts.append(TextPart(item))
        elif item.get("type") in ("thinking", "reasoning"):
            reasoning.append(read_content(item.get("thinking") or item.get("text")).text)
        else:
            parts.append(_read_part(item))
    return Content(tuple(parts), "".join(reasoning))


def _read_part(item: Mapping[str, Json]) -> Part:
    match item:
        case {"type": "image_url" | "input_image", "image_url": {"url": str(url), **rest}}:
            detail = rest.get("detail")
            return ImagePart(url, detail if isinstance(detail, str) else None)
        case {"type": "image_url" | "input_image", "image_url": str(url)}:
            return ImagePart(url)
        case {"type": "refusal", "refusal": str(text)}:
            return TextPart(text)
        case {"type": "text" | "input_text" | "output_text"} | {"text": str(_)}:
            words = item.get("text")
            return TextPart(words if isinstance(words, str) else "")
    return OtherPart(item)

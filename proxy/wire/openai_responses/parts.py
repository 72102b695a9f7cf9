"""The content of messages and results: texts, images and files."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, Json, OtherPart, Part, TextPart
from proxy.wire.bodies import text
from proxy.wire.chat_content import read_content

DETAILS = frozenset({"auto", "low", "high"})
"""The hints about an image that Chat Completions knows too."""


def read_parts(raw: Json, param: str) -> tuple[Part, ...]:
    """A string, a list of parts, or whatever else was sent (then as JSON text).

    Raises ``ClientError`` about ``param`` for what lies on OpenAI's servers or somewhere in the net: it cannot be read
    here, and an answer without it would be wrong.
    """
    if isinstance(raw, dict) and isinstance(raw.get("type"), str):
        raw = [raw]
    if not isinstance(raw, list) or not all(_is_part(item) for item in raw):
        return read_content(raw).parts
    parts: list[Part] = []
    for item in raw:
        match item:
            case {"type": "input_image" | "computer_screenshot"}:
                parts.append(_image(item, param))
            case {"type": "input_file"}:
                parts.append(_file(item, param))
            case {"type": "summary_text" | "reasoning_text", "text": str(words)}:
                parts.append(TextPart(words))
            case _:
                parts += read_content([item]).parts
    return tuple(parts)


def _is_part(item: Json) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type"), str)


def _image(item: Mapping[str, Json], param: str) -> ImagePart:
    url: Json = item.get("image_url")
    detail = text(item.get("detail"))
    if isinstance(url, dict):
        url, detail = url.get("url"), text(url.get("detail")) or detail
    if not isinstance(url, str) or not url:
        raise ClientError(
            f"`{param}` has an image without `image_url`. Files on OpenAI's servers (`file_id`) cannot be read here: "
            "send the image as a `data:` URL.",
            param=param,
        )
    return ImagePart(url, detail if detail in DETAILS else None)


def _file(item: Mapping[str, Json], param: str) -> Part:
    """A file: as text if it is text, else as the part that Chat Completions has for it."""
    data, name = item.get("file_data"), text(item.get("filename"))
    if not isinstance(data, str) or not data:
        raise ClientError(
            f"`{param}` has a file without `file_data`. What lies on OpenAI's servers (`file_id`) or in the net "
            "(`file_url`) is not fetched: send the file's text, or its content in `file_data`.",
            param=param,
        )
    words = _text_of(data)
    if words is None:
        return OtherPart({"type": "file", "file": {"filename": name, "file_data": data}})
    return TextPart(f"[file {name}]\n{words}\n" if name else words)


def _text_of(data: str) -> str | None:
    """The text in base64 ``data`` (a ``data:`` URL or bare), None if it is something else."""
    try:
        words = base64.b64decode(data.rpartition("base64,")[2], validate=True).decode()
    except ValueError:
        return None
    return None if "\0" in words else words

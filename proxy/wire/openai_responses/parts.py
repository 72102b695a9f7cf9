"""The content of messages and results: texts, images and files."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, Json, Part, TextPart
from proxy.wire.bodies import text
from proxy.wire.chat_content import read_content

DETAILS = frozenset({"auto", "low", "high"})
"""The hints about an image that Chat Completions knows too."""

MENDS = {
    "image": "Send it as a `data:` URL in `image_url`: what lies on OpenAI's servers (`file_id`) cannot be read here.",
    "file": "Send its text: of files only texts in `file_data` can be read here, and nothing is fetched.",
}


def read_parts(raw: Json, param: str, *, present: bool = True) -> tuple[Part, ...]:
    """A string, a list of parts, or whatever else was sent (then as JSON text).

    A part that cannot be read is a ``ClientError`` about ``param`` in what is to be answered now (``present``), since
    an answer without it would be wrong; in the past it is a word that says so.
    """
    if isinstance(raw, dict) and isinstance(raw.get("type"), str):
        raw = [raw]
    if not isinstance(raw, list) or not all(_is_part(item) for item in raw):
        return read_content(raw).parts
    parts: list[Part] = []
    for item in raw:
        match item["type"]:
            case "input_image" | "computer_screenshot":
                parts.append(_image(item) or _unread("image", item, param, present))
            case "input_file":
                parts.append(_file(item) or _unread("file", item, param, present))
            case "summary_text" | "reasoning_text":
                parts.append(TextPart(text(item.get("text"))))
            case _:
                parts += read_content([item]).parts
    return tuple(parts)


def _is_part(item: Json) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type"), str)


def _image(item: Mapping[str, Json]) -> ImagePart | None:
    url: Json = item.get("image_url")
    detail = text(item.get("detail"))
    if isinstance(url, dict):
        url, detail = url.get("url"), text(url.get("detail")) or detail
    if not isinstance(url, str) or not url:
        return None
    return ImagePart(url, detail if detail in DETAILS else None)


def _file(item: Mapping[str, Json]) -> TextPart | None:
    """The text in the base64 of a file (a ``data:`` URL or bare), None if it is something else."""
    data = text(item.get("file_data"))
    try:
        words = base64.b64decode(data.rpartition("base64,")[2], validate=True).decode()
    except ValueError:
        return None
    if not data or "\0" in words:
        return None
    name = text(item.get("filename"))
    return TextPart(f"[file {name}]\n{words}\n" if name else words)


def _unread(kind: str, item: Mapping[str, Json], param: str, present: bool) -> TextPart:
    name = text(item.get("filename"))
    what = f"{kind} {name}" if name else kind
    if present:
        raise ClientError(f"`{param}` holds what cannot be read: {what}. {MENDS[kind]}", param=param)
    return TextPart(f"[{what} left out]")

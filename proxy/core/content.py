"""Content parts as text: neighbours joined, and words for what cannot go on as it is. Base64 never becomes text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from proxy.core.model import ImagePart, Json, OtherPart, Part, TextPart

Foreign: TypeAlias = ImagePart | OtherPart
"""A part that is not text."""

Word: TypeAlias = Callable[[Foreign], str | None]
"""Words for a part, None where the part itself goes on."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def merge(content: Iterable[Part], word: Word) -> list[Part]:
    """``content`` with neighbouring texts joined as they are; what ``word`` has words for becomes a line of its own."""
    out: list[Part] = []
    text: list[str] = []
    line_ends = False  # the text so far ends with a line of words
    for part in content:
        words = None if isinstance(part, TextPart) else word(part)
        if isinstance(part, TextPart):
            if not part.text:
                continue
            text.append(f"\n{part.text}" if line_ends else part.text)
        elif words is not None:
            text.append(f"\n{words}" if text and not text[-1].endswith("\n") else words)
        else:
            out += [TextPart("".join(text)), part] if text else [part]
            text = []
        line_ends = words is not None
    return [*out, TextPart("".join(text))] if text else out


def flatten(content: Sequence[Part], image: Callable[[ImagePart], str] = lambda _: "[image left out]") -> str:
    """``content`` as one text; ``image`` has the words for an image."""
    if not content:
        return ""
    if len(content) == 1 and isinstance(content[0], TextPart):
        return content[0].text
    merged = merge(content, lambda part: words_of(part) if isinstance(part, OtherPart) else image(part))
    return "".join(part.text for part in merged if isinstance(part, TextPart))


def words_of(part: OtherPart) -> str:
    """The text that a part of another type holds, else a line that names its type."""
    text = text_of(part)
    return f"[{part.raw.get('type') or 'part'} left out]" if text is None else text


def text_of(part: OtherPart) -> str | None:
    """The text that a part of another type holds (a refusal, a text document), None if it holds none."""
    raw = part.raw
    source = raw.get("source")
    inner: Mapping[str, Json] = source if isinstance(source, Mapping) else raw
    data = inner.get("data") if inner.get("type") == "text" else None
    for held in (raw.get("text"), raw.get("refusal"), data, inner.get("content")):
        if isinstance(held, str):
            return held
        if isinstance(held, list):
            texts = [block.get("text") for block in held if isinstance(block, Mapping)]
            found = [text for text in texts if isinstance(text, str)]
            if found:
                return "\n".join(found)
    return None


def join(blocks: Iterable[Sequence[Part]]) -> tuple[Part, ...]:
    """Blocks one after another, an empty line between the texts of neighbours; a single text where no part is another.

    Lone surrogates, which have no UTF-8 form, become U+FFFD.
    """
    out: list[Part] = []
    text: list[str] = []
    for block in blocks:
        for at, part in enumerate(block):
            if isinstance(part, TextPart):
                text.append(f"\n\n{part.text}" if text and at == 0 else part.text)
            else:
                out += _texts(text)
                out.append(part)
                text = []
    out += _texts(text)
    return tuple(out) or (TextPart(""),)


def _texts(pieces: list[str]) -> list[Part]:
    text = "".join(pieces)
    try:
        text.encode()  # much cheaper than a search, and nearly always all there is to do
    except UnicodeEncodeError:
        text = _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return [TextPart(text)] if text else []

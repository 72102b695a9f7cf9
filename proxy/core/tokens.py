"""How many tokens a prompt may have, where nobody can count them."""

from __future__ import annotations

from itertools import chain

from proxy.core.arguments import jsontext
from proxy.core.model import ImagePart, Request, TextPart, Tool

CHARACTERS_PER_TOKEN = 4
"""About what English text has in the usual vocabularies."""

IMAGE_TOKENS = 1000
"""What an image may cost; models differ by more than ten times."""


def tokens_of(size: int) -> int:
    """An estimate for a text of ``size`` characters."""
    return -(-size // CHARACTERS_PER_TOKEN)


def estimate(request: Request) -> int:
    """An estimate for all that a request tells the model: what was said, calls and results, the tools."""
    size = images = 0
    for message in request.messages:
        for part in chain(message.content, *(result.content for result in message.results)):
            size += len(part.text) if isinstance(part, TextPart) else 0
            images += isinstance(part, ImagePart)
        size += sum(len(call.name) + len(call.arguments) for call in message.calls)
    size += sum(map(size_of, request.tools))
    return tokens_of(size) + images * IMAGE_TOKENS


def size_of(tool: Tool) -> int:
    """Characters of a tool: its name, its description, and its schema if that can be written."""
    try:
        schema = len(jsontext.dumps(tool.parameters))
    except (ValueError, TypeError):  # the prompt will say so
        schema = 0
    return len(tool.name) + len(tool.description) + schema

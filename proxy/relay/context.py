"""Whether a server has silently cut a prompt to its context, told by the tokens that it counted.

Most servers refuse a prompt that is too long. Ollama and older llama.cpp drop its middle or its oldest turns and
answer all the same, often without the text about tools, which comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from proxy.backends.probes import Kind
from proxy.core.events import Usage
from proxy.core.model import ImagePart, Message

MOST_CHARACTERS_PER_TOKEN = 8
"""English text has about 4; no vocabulary in use comes near this over a whole prompt."""

SMALL = 200
"""Characters of a prompt that fits any context."""

_MENDS: Mapping[Kind, str] = {
    "ollama": "Start Ollama with a larger OLLAMA_CONTEXT_LENGTH in its environment",
    "llama.cpp": "Start the server with a larger -c (its slots share it)",
    "lmstudio": "Load the model with a larger context length",
    "vllm": "Start the server with a larger --max-model-len",
    "sglang": "Start the server with a larger --context-length",
    "llama-cpp-python": "Start the server with a larger --n_ctx",
    "unknown": "Give the server a larger context",
}


class ContextCheck(Struct, frozen=True):
    """Compares the ``messages`` that were sent to a server of a ``kind`` with what it counted."""

    messages: tuple[Message, ...]
    kind: Kind = "unknown"

    def finding(self, usage: Usage) -> str | None:
        """A sentence with the mend when the prompt must have been cut, else None.

        A count of 0 is none (Ollama's before mid-2024, for a prompt that it had in its cache). Cached tokens that are
        told apart are added: some servers leave them out of the count.
        """
        if usage.prompt_tokens is None or usage.prompt_tokens <= 0:
            return None
        counted = usage.prompt_tokens + (usage.detail("prompt_tokens_details", "cached_tokens") or 0)
        texts = [message.text for message in self.messages]
        if _fits(sum(map(len, texts)), counted) or _has_image(self.messages):
            return None
        # a run of white space can be one token however long it is
        size = sum(len(" ".join(text.split())) for text in texts)
        if _fits(size, counted):
            return None
        return (
            f"The backend counted {counted:,} tokens in a prompt of {size:,} characters: it must have cut the prompt "
            f"to its context, perhaps the tools with it (or it leaves out what its cache held). {_MENDS[self.kind]}."
        )


def _fits(characters: int, tokens: int) -> bool:
    return characters < SMALL or characters <= tokens * MOST_CHARACTERS_PER_TOKEN


def _has_image(messages: Iterable[Message]) -> bool:
    return any(isinstance(part, ImagePart) for message in messages for part in message.content)

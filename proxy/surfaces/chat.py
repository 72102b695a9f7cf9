"""OpenAI's Chat Completions as a client asks for one."""

from __future__ import annotations

import secrets
import time
from functools import cached_property
from typing import ClassVar

from proxy.core.collect import Reply
from proxy.core.model import Request
from proxy.surfaces.base import Shape, dropped_header
from proxy.wire.openai_chat import (
    KEEP_ALIVE,
    ChatRequest,
    StreamEncoder,
    decode_body,
    encode_error,
    encode_reply,
    load_body,
    stream_error,
)

NO_MODEL = "default"
"""The model's name in answers to requests that named none."""


class Chat:
    """One request. Its body must be a JSON object, else ``ClientError``; the rest is read only where that is needed."""

    shape: ClassVar[Shape] = Shape("chat", KEEP_ALIVE, encode_error, stream_error)

    def __init__(self, body: bytes) -> None:
        self.body: bytes | None = body
        self.raw = load_body(body)
        model = self.raw.get("model")
        self.model = model if isinstance(model, str) and model else None
        self.stream = self.raw.get("stream") is True

    @cached_property
    def _decoded(self) -> ChatRequest:
        return decode_body(self.raw)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The types of hosted tools that were left out. Raises ``ClientError``."""
        return self._decoded.dropped_tools

    def request(self) -> Request:
        """What is asked for. Raises ``ClientError``."""
        return self._decoded.request

    def headers(self) -> list[tuple[str, str]]:
        """Headers of the answer that say how the request was read.

        An answer that has them is written here, and the tokens' probabilities are in none of those.
        """
        told = dropped_header(self.dropped)
        return [*told, ("x-toolgraft-ignored", "logprobs")] if self.raw.get("logprobs") else told

    def encoder(self) -> StreamEncoder:
        """The encoder of a streamed answer."""
        asked = self._decoded
        return StreamEncoder(
            id=_new_id(),
            created=int(time.time()),
            model=self.model or NO_MODEL,
            include_usage=asked.request.include_usage,
            legacy=asked.legacy_functions,
            custom=asked.custom_tools,
        )

    def encode(self, reply: Reply) -> bytes:
        """A whole answer. Raises ``UpstreamError`` for a reply that was not completed."""
        asked = self._decoded
        return encode_reply(
            reply,
            id=_new_id(),
            created=int(time.time()),
            model=self.model or NO_MODEL,
            legacy=asked.legacy_functions,
            custom=asked.custom_tools,
        )


def _new_id() -> str:
    return "chatcmpl-" + secrets.token_hex(12)

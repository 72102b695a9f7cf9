"""OpenAI's Chat Completions as a client asks for one."""

from __future__ import annotations

import os
import time
from functools import cached_property
from typing import ClassVar

from proxy.core.collect import Reply
from proxy.surfaces.base import NO_MODEL, Shape, Surface
from proxy.wire.openai_chat import (
    KEEP_ALIVE,
    ChatRequest,
    StreamEncoder,
    decode_body,
    encode_error,
    encode_reply,
    stream_error,
)


class Chat(Surface):
    """One request. A backend that takes it as it is gets the client's own bytes."""

    shape: ClassVar[Shape] = Shape("chat", KEEP_ALIVE, encode_error, stream_error)

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.body = body

    @cached_property
    def _decoded(self) -> ChatRequest:
        return decode_body(self.raw)

    def headers(self) -> list[tuple[str, str]]:
        """Headers of the answer that say how the request was read.

        An answer that has them is written here, and the tokens' probabilities are in none of those.
        """
        told = super().headers()
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
    return "chatcmpl-" + os.urandom(12).hex()

"""OpenAI's Responses as a client asks for one."""

from __future__ import annotations

import os
import time
from functools import cached_property, partial
from typing import ClassVar

from msgspec.structs import replace

from proxy.core.collect import Reply
from proxy.core.errors import ToolgraftError
from proxy.surfaces.base import NO_MODEL, Shape, Surface
from proxy.surfaces.memory import Memory
from proxy.wire.openai_errors import encode_error
from proxy.wire.openai_responses import (
    KEEP_ALIVE,
    Answering,
    ResponsesRequest,
    StreamEncoder,
    decode_body,
    encode_reply,
)


def _stream_error(error: ToolgraftError) -> bytes:
    return StreamEncoder(Answering(_new_id(), int(time.time()), NO_MODEL)).error(error)


class Responses(Surface):
    """One request. ``memory`` resolves references to items of ``client``'s earlier answers, and keeps those of this one
    unless it is asked not to.
    """

    shape: ClassVar[Shape] = Shape("responses", KEEP_ALIVE, encode_error, _stream_error)

    def __init__(self, body: bytes, memory: Memory | None = None, client: str | None = None) -> None:
        super().__init__(body)
        self._memory = Memory() if memory is None else memory
        self._client = client

    @cached_property
    def _decoded(self) -> ResponsesRequest:
        return decode_body(self.raw, partial(self._memory.recall, self._client))

    def encoder(self) -> StreamEncoder:
        """The encoder of a streamed answer."""
        return StreamEncoder(self._answering())

    def encode(self, reply: Reply) -> bytes:
        """A whole answer. Raises ``UpstreamError`` for a reply that was not completed."""
        return encode_reply(reply, self._answering())

    def _answering(self) -> Answering:
        asked = self._decoded
        answering = Answering(_new_id(), int(time.time()), self.model or NO_MODEL, asked.raw, asked.known)
        if self.raw.get("store") is False:
            return answering
        return replace(answering, keep=partial(self._memory.keep, self._client))


def _new_id() -> str:
    return "resp_" + os.urandom(12).hex()

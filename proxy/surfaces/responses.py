"""OpenAI's Responses as a client asks for one."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from functools import cached_property, partial
from typing import ClassVar

from proxy.core.collect import Reply
from proxy.core.errors import ToolgraftError
from proxy.core.model import Request
from proxy.surfaces.base import Shape, dropped_header
from proxy.surfaces.memory import Memory
from proxy.wire.bodies import load_body
from proxy.wire.openai_errors import encode_error
from proxy.wire.openai_responses import (
    KEEP_ALIVE,
    Answering,
    ResponsesRequest,
    StreamEncoder,
    decode_body,
    encode_reply,
)

NO_MODEL = "default"
"""The model's name in answers to requests that named none."""


def _stream_error(error: ToolgraftError) -> bytes:
    return StreamEncoder(Answering(_new_id(), int(time.time()), NO_MODEL)).error(error)


class Responses:
    """One request. Its body must be a JSON object, else ``ClientError``; the rest is read only where that is needed.

    ``memory`` resolves references to items of ``client``'s earlier answers, and keeps those of this one unless it is
    asked not to.
    """

    shape: ClassVar[Shape] = Shape("responses", KEEP_ALIVE, encode_error, _stream_error)

    def __init__(self, body: bytes, memory: Memory | None = None, client: str | None = None) -> None:
        self.body: bytes | None = None
        self.raw = load_body(body)
        self._memory = Memory() if memory is None else memory
        self._client = client
        model = self.raw.get("model")
        self.model = model if isinstance(model, str) and model else None
        self.stream = self.raw.get("stream") is True

    @cached_property
    def _decoded(self) -> ResponsesRequest:
        return decode_body(self.raw, partial(self._memory.recall, self._client))

    @property
    def dropped(self) -> tuple[str, ...]:
        """The types of hosted tools that were left out. Raises ``ClientError``."""
        return self._decoded.dropped_tools

    def request(self) -> Request:
        """What is asked for. Raises ``ClientError``."""
        return self._decoded.request

    def headers(self) -> list[tuple[str, str]]:
        """Headers of the answer that say how the request was read."""
        return dropped_header(self.dropped)

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
    return "resp_" + secrets.token_hex(12)

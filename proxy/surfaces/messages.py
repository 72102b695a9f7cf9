"""Anthropic's Messages as a client asks for one."""

from __future__ import annotations

import secrets
from functools import cached_property
from typing import ClassVar

from proxy.core.collect import Reply
from proxy.core.model import Request
from proxy.core.tokens import estimate
from proxy.surfaces.base import Shape, dropped_header
from proxy.wire.anthropic_messages import (
    KEEP_ALIVE,
    MessagesRequest,
    StreamEncoder,
    decode_body,
    encode_error,
    encode_reply,
    stream_error,
)
from proxy.wire.bodies import load_body

NO_MODEL = "default"
"""The model's name in answers to requests that named none."""


class Messages:
    """One request. Its body must be a JSON object, else ``ClientError``."""

    shape: ClassVar[Shape] = Shape("messages", KEEP_ALIVE, encode_error, stream_error)

    def __init__(self, body: bytes) -> None:
        self.body: bytes | None = None
        self.raw = load_body(body)
        model = self.raw.get("model")
        self.model = model if isinstance(model, str) and model else None
        self.stream = self.raw.get("stream") is True

    @cached_property
    def _decoded(self) -> MessagesRequest:
        return decode_body(self.raw)

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
        return StreamEncoder(
            id=_new_id(),
            model=self.model or NO_MODEL,
            input_tokens=estimate(self.request()),
            stop_sequences=self._decoded.stop_sequences,
        )

    def encode(self, reply: Reply) -> bytes:
        """A whole answer. Raises ``UpstreamError`` for a reply that was not completed."""
        return encode_reply(
            reply,
            id=_new_id(),
            model=self.model or NO_MODEL,
            stop_sequences=self._decoded.stop_sequences,
        )


def _new_id() -> str:
    return "msg_" + secrets.token_hex(12)

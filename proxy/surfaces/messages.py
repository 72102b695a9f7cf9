"""Anthropic's Messages as a client asks for one."""

from __future__ import annotations

import os
from functools import cached_property
from typing import ClassVar

from proxy.core.collect import Reply
from proxy.core.tokens import estimate
from proxy.surfaces.base import NO_MODEL, Shape, Surface
from proxy.wire.anthropic_messages import (
    KEEP_ALIVE,
    MessagesRequest,
    StreamEncoder,
    decode_body,
    encode_error,
    encode_reply,
    stream_error,
)


class Messages(Surface):
    """One request."""

    shape: ClassVar[Shape] = Shape("messages", KEEP_ALIVE, encode_error, stream_error)

    @cached_property
    def _decoded(self) -> MessagesRequest:
        return decode_body(self.raw)

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
    return "msg_" + os.urandom(12).hex()

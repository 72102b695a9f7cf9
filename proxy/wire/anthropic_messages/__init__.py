"""Anthropic's Messages as clients speak it: request bodies in, replies, streams and errors out.

https://docs.anthropic.com/en/api/messages, and what clients of it were seen to send and to depend on.
"""

from proxy.wire.anthropic_messages.errors import encode_error, stream_error
from proxy.wire.anthropic_messages.models import encode_model, encode_models
from proxy.wire.anthropic_messages.reply import encode_reply
from proxy.wire.anthropic_messages.request import MessagesRequest, decode_body
from proxy.wire.anthropic_messages.stream import KEEP_ALIVE, StreamEncoder

__all__ = [
    "KEEP_ALIVE",
    "MessagesRequest",
    "StreamEncoder",
    "decode_body",
    "encode_error",
    "encode_model",
    "encode_models",
    "encode_reply",
    "stream_error",
]

"""OpenAI's Chat Completions as clients speak it: request bodies in, replies, streams and errors out."""

from proxy.wire.openai_chat.reply import encode_reply
from proxy.wire.openai_chat.request import ChatRequest, decode_body
from proxy.wire.openai_chat.stream import KEEP_ALIVE, StreamEncoder, stream_error
from proxy.wire.openai_errors import encode_error

__all__ = [
    "KEEP_ALIVE",
    "ChatRequest",
    "StreamEncoder",
    "decode_body",
    "encode_error",
    "encode_reply",
    "stream_error",
]

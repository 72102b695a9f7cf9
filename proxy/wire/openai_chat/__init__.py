"""OpenAI's Chat Completions as clients speak it: request bodies in, replies, streams and errors out."""

from proxy.wire.openai_chat.errors import encode_error, error_body
from proxy.wire.openai_chat.reply import encode_reply
from proxy.wire.openai_chat.request import ChatRequest, decode_body, decode_request, load_body
from proxy.wire.openai_chat.stream import KEEP_ALIVE, StreamEncoder

__all__ = [
    "KEEP_ALIVE",
    "ChatRequest",
    "StreamEncoder",
    "decode_body",
    "decode_request",
    "encode_error",
    "encode_reply",
    "error_body",
    "load_body",
]

"""OpenAI's Responses as clients speak it: request bodies in, replies and streams out."""

from proxy.wire.openai_responses.reply import Answering, encode_reply
from proxy.wire.openai_responses.request import ResponsesRequest, decode_body
from proxy.wire.openai_responses.stream import KEEP_ALIVE, StreamEncoder

__all__ = [
    "KEEP_ALIVE",
    "Answering",
    "ResponsesRequest",
    "StreamEncoder",
    "decode_body",
    "encode_reply",
]

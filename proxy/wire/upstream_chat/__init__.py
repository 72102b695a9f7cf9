"""OpenAI's Chat Completions as backends speak it: request bodies out, replies and streams in."""

from proxy.wire.upstream_chat.reply import ChunkDecoder, decode_reply
from proxy.wire.upstream_chat.request import encode_request

__all__ = ["ChunkDecoder", "decode_reply", "encode_request"]

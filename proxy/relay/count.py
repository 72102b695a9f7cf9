"""How many tokens a prompt has, told by the backend's own tokenizer where it has one. Nothing is ever generated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from proxy.backends.probes import Kind
from proxy.core.errors import UpstreamError
from proxy.core.model import Json, Request
from proxy.core.tokens import estimate
from proxy.wire import jsonio
from proxy.wire.upstream_chat import encode_request

WITHIN = 5.0
"""Seconds that the backend has to count."""

Post: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Posts a JSON body to a path below the server's root, for the body of the answer. Raises ``UpstreamError``."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of tokens, and whether it is only an estimate."""

    tokens: int
    estimated: bool = False


async def count_tokens(post: Post, kind: Kind, prepared: Request, model: str | None) -> Count:
    """The tokens of a request as it would be sent to a server of a ``kind``. Raises ``ClientError``.

    Where the server has no tokenizer to ask, or it does not answer, the number is estimated.
    """
    body = encode_request(prepared, model=model, stream=False)
    tokens: int | None = None
    try:
        async with asyncio.timeout(WITHIN):
            if kind == "llama.cpp":
                tokens = await _llama_cpp(post, body)
            elif kind == "vllm":
                tokens = await _vllm(post, body)
    except (TimeoutError, UpstreamError):
        pass
    return Count(estimate(prepared), estimated=True) if tokens is None else Count(tokens)


async def _llama_cpp(post: Post, body: bytes) -> int | None:
    """The chat template first, then the tokenizer with the settings that chat requests have.

    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    """
    prompt = _member(await post("/apply-template", body), "prompt")
    if not isinstance(prompt, str):
        return None
    content = jsonio.dumps({"content": prompt, "add_special": True, "parse_special": True}, lone_surrogates="replace")
    tokens = _member(await post("/tokenize", content), "tokens")
    return len(tokens) if isinstance(tokens, list) else None


async def _vllm(post: Post, body: bytes) -> int | None:
    """vLLM applies the template by itself. https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"""
    chat = jsonio.loads(body)
    asked = {key: chat[key] for key in ("model", "messages", "tools", "chat_template_kwargs") if key in chat}
    count = _member(await post("/tokenize", jsonio.dumps(asked)), "count")
    return count if isinstance(count, int) else None


def _member(body: bytes, name: str) -> Json:
    try:
        value = jsonio.loads(body)
    except ValueError:
        return None
    return value.get(name) if isinstance(value, dict) else None

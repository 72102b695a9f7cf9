from __future__ import annotations

import asyncio
import json

import pytest

from proxy.backends.probes import Kind
from proxy.core.errors import ClientError, UpstreamError
from proxy.core.model import Json, Message, Request, TextPart, Tool
from proxy.core.tokens import estimate
from proxy.relay import count
from proxy.relay.count import Count, count_tokens

REQUEST = Request((Message("user", (TextPart("How late is it?"),)),), tools=(Tool("clock"),))


class Server:
    """Answers by path: a value, bytes as they are, or an error to raise."""

    def __init__(self, **answers: Json) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Json]] = []

    async def post(self, path: str, body: bytes) -> bytes:
        self.asked.append((path, json.loads(body)))
        answer = self.answers.get(path.strip("/").replace("-", "_"), UpstreamError("no such path", status=404))
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


async def test_llama_cpp_applies_its_template_and_tokenizes() -> None:
    server = Server(apply_template={"prompt": "<|im_start|>user"}, tokenize={"tokens": [1, 2, 3]})
    assert await count_tokens(server.post, "llama.cpp", REQUEST, "m") == Count(3)
    (first, chat), second = server.asked
    assert first == "/apply-template"
    assert (chat["model"], chat["messages"][0]["content"], chat["tools"][0]["function"]["name"]) == (
        "m",
        "How late is it?",
        "clock",
    )
    assert second == ("/tokenize", {"content": "<|im_start|>user", "add_special": True, "parse_special": True})


async def test_vllm_counts_in_one_go() -> None:
    server = Server(tokenize={"count": 7, "tokens": []})
    assert await count_tokens(server.post, "vllm", REQUEST, "m") == Count(7)
    ((path, body),) = server.asked
    assert path == "/tokenize"
    assert set(body) == {"model", "messages", "tools"}


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "sglang", "unknown"])
async def test_others_are_not_asked(kind: Kind) -> None:
    server = Server()
    assert await count_tokens(server.post, kind, REQUEST, None) == Count(estimate(REQUEST), estimated=True)
    assert server.asked == []


@pytest.mark.parametrize(
    "server",
    [
        Server(),
        Server(apply_template=b"<html>"),
        Server(apply_template=[]),
        Server(apply_template={"prompt": None}),
        Server(apply_template={"prompt": "x"}, tokenize={"tokens": "x"}),
        Server(apply_template=TimeoutError()),
    ],
)
async def test_without_an_answer_it_is_an_estimate(server: Server) -> None:
    assert (await count_tokens(server.post, "llama.cpp", REQUEST, None)).estimated


async def test_the_wait_for_an_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(path: str, body: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(count, "WITHIN", 0.01)
    assert (await count_tokens(silent, "llama.cpp", REQUEST, None)).estimated


async def test_what_cannot_be_written_is_the_clients_fault() -> None:
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    request = Request(REQUEST.messages, extra={"logit_bias": deep})
    with pytest.raises(ClientError):
        await count_tokens(Server().post, "unknown", request, None)

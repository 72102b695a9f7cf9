"""One program on the OpenAI SDK, unchanged: before a server that calls tools itself, before the proxy, a real model.

The server is recorded (what llama.cpp puts on the wire, retold under ``fixtures/wire``); before the proxy a model says
the same in text. The program must not be able to tell the two apart by the shape of what it gets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from proxy.local import LocalModel
from proxy.weights import ensure_model
from tests.support.backend import Backend, Exchange, body, sse, text
from tests.support.proxy import proxy_before

pytestmark = pytest.mark.slow

WIRE = Path(__file__).parents[2] / "fixtures" / "wire"
RIVERS: Any = {
    "type": "function",
    "function": {
        "name": "river_level",
        "description": "The water level of a river.",
        "parameters": {"type": "object", "properties": {"river": {"type": "string"}}, "required": ["river"]},
    },
}
ONE = '<tool_call>{"name": "river_level", "arguments": {"river": "Elbe"}}</tool_call>'
TWO = f"Two rivers.\n{ONE}\n{ONE.replace('Elbe', 'Oder')}"


def program(base_url: str, **choice: Any) -> dict[str, Any]:
    """What a program reads of an answer, whole and streamed."""
    with OpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
        ask: Any = {"model": "small", "messages": [{"role": "user", "content": "Elbe?"}], "tools": [RIVERS], **choice}
        whole = client.chat.completions.create(**ask)
        streamed: dict[int, dict[str, str]] = {}
        roles, finishes, usage = [], [], None
        for chunk in client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **ask):
            usage = chunk.usage or usage
            for piece in chunk.choices:
                roles += [piece.delta.role] if piece.delta.role else []
                finishes += [piece.finish_reason] if piece.finish_reason else []
                for call in piece.delta.tool_calls or []:
                    kept = streamed.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
                    assert call.function is not None
                    kept["id"] += call.id or ""
                    kept["name"] += call.function.name or ""
                    kept["arguments"] += call.function.arguments or ""
    choice_got = whole.choices[0]
    return {
        "finish": choice_got.finish_reason,
        "calls": [call.model_dump(exclude_none=True) for call in choice_got.message.tool_calls or []],
        "usage": whole.usage.model_dump(include={"prompt_tokens", "total_tokens"}) if whole.usage else None,
        "role": choice_got.message.role,
        "streamed": [streamed[index] for index in sorted(streamed)],
        "stream ends": (roles, finishes, usage is not None),
    }


def shape(value: Any) -> Any:
    """``value`` with its leaves replaced by their types; words that the API fixes stay."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shape(inner) for inner in value]
    return value if value in ("function", "assistant", "tool_calls", "river_level") else type(value).__name__


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


def recorded(whole: str, stream: str) -> Any:
    """The recorded answer of the kind that is asked for."""
    answers = (body((WIRE / "replies" / whole).read_bytes()), sse((WIRE / "streams" / stream).read_bytes()))

    async def reply(exchange: Exchange) -> None:
        await answers[bool(exchange.request.json.get("stream"))](exchange)

    return reply


def test_the_proxy_looks_like_a_server_that_calls_tools_itself(backend: Backend) -> None:
    backend.script(*[recorded("llama_cpp_call.json", "llama_cpp_two_calls.sse")] * 2)
    native = program(backend.url + "/v1")
    backend.script(text(*ONE), text(*TWO))
    with proxy_before(backend) as url:
        grafted = program(url + "/v1")
    assert shape(grafted) == shape(native)
    assert [json.loads(call["arguments"]) for call in grafted["streamed"]] == [{"river": "Elbe"}, {"river": "Oder"}]


def test_the_recorded_server_passes_through_the_proxy_as_it_is(backend: Backend) -> None:
    backend.script(*[recorded("llama_cpp_call.json", "llama_cpp_two_calls.sse")] * 4)
    native = program(backend.url + "/v1")
    with proxy_before(backend, "native") as url:
        assert program(url + "/v1") == native


def test_a_real_model_answers_the_same_program() -> None:
    with LocalModel(ensure_model(lambda done, total: None)) as model, proxy_before(model.url, "auto") as url:
        got = program(url + "/v1", tool_choice="required", temperature=0, max_tokens=60)
    assert got["finish"] == "tool_calls"
    assert got["stream ends"] == (["assistant"], ["tool_calls"], True)
    for call in (got["calls"][0]["function"], got["streamed"][0]):
        assert call["name"] == "river_level"
        assert isinstance(json.loads(call["arguments"])["river"], str)

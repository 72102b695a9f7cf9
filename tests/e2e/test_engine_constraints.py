"""The embedded engine under the constraints that are sent: it takes them, obeys them, and survives hostile tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest
from jsonschema_rs import validator_for

from proxy.backends.call_schema import call_schema
from proxy.backends.grammar import forced, free
from proxy.core.model import Json, Tool
from proxy.core.parser import parse
from proxy.local import LocalModel
from proxy.weights import ensure_model
from tests.support.proxy import get

pytestmark = pytest.mark.slow

BOOKING: Json = {
    "type": "object",
    "properties": {
        "guest": {"$ref": "#/$defs/guest"},
        "nights": {"type": "integer", "minimum": 1, "maximum": 30},
        "room": {"enum": ["single", "double", "größtes"]},
        "wishes": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2},
    },
    "required": ["guest", "nights", "room"],
    "additionalProperties": False,
    "$defs": {
        "guest": {
            "type": "object",
            "properties": {"name": {"type": "string", "maxLength": 10}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}
"""Of which a call has a hundred tokens at most: the model is small, and machines that run tests are slow."""

TOOLS = [Tool("book_room", parameters=BOOKING), Tool("get_time")]
BOOK = "Book a room for Ann Lee, three nights."


def wide(number: int) -> Json:
    return {"type": "object", "properties": {f"m{n}": {"type": "string"} for n in range(number)}}


def deep(number: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(number):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


HOSTILE: dict[str, list[Tool]] = {
    "wide": [Tool("t", parameters=wide(5_000))],
    "deep": [Tool("t", parameters=deep(60))],
    "deeper": [Tool("t", parameters=deep(2_000))],
    "recursive": [Tool("t", parameters={"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}})],
    "endless": [Tool("t", parameters={"$ref": "#"})],
    "enum": [Tool("t", parameters={"type": "object", "properties": {"e": {"enum": [f"v{n}" for n in range(3_000)]}}})],
    "pattern": [
        Tool("t", parameters={"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+(?=x)$"}}})
    ],
    "counts": [
        Tool("t", parameters={"type": "object", "properties": {"a": {"type": "array", "maxItems": 10**9}}}),
    ],
    "names": [Tool('a"b\\c\n]^-é', parameters={"type": "object", "properties": {']^-\\"\n': {"const": '"\\'}}})],
    "many": [Tool(f"tool_{n}", parameters=wide(8)) for n in range(300)],
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with LocalModel(ensure_model(lambda done, total: None)) as model:
        yield model.url


def say(url: str, prompt: str, earlier: Sequence[Json] = (), **fields: Any) -> tuple[str, str]:
    """What the model writes, and why it ended."""
    messages = [*earlier, {"role": "user", "content": prompt}]
    asked = {"messages": messages, "temperature": 0, "seed": 1, **fields}
    response = httpx2.post(f"{url}/v1/chat/completions", json=asked, timeout=300, trust_env=False)
    assert response.status_code == 200, response.text[:500]
    choice = response.json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def calls_in(text: str) -> list[tuple[str, Any]]:
    reply = parse(text, TOOLS)
    assert reply.problems == ()
    return [(call.name, json.loads(call.arguments)) for call in reply.calls]


def is_one_call(text: str) -> bool:
    reply = parse(text, TOOLS)
    (call,) = reply.calls
    schema = BOOKING if call.name == "book_room" else {"maxProperties": 0}
    return reply.problems == () and validator_for(schema).is_valid(json.loads(call.arguments))


@pytest.mark.parametrize("prompt", [BOOK, "Hello!"])
def test_a_call_is_all_that_comes_where_it_is_forced(url: str, prompt: str) -> None:
    text, finish = say(url, prompt, grammar=forced(TOOLS), max_tokens=200)
    assert finish == "stop"
    assert is_one_call(text)


def test_a_tag_that_the_model_chooses_to_write_is_followed_by_a_valid_call(url: str) -> None:
    colours = ("red", "blue", "green")
    earlier = [
        message
        for colour in colours
        for message in (
            {"role": "user", "content": f"Say {colour}."},
            {"role": "assistant", "content": f"<tool_call>{colour}</tool_call>"},
        )
    ]
    text, _ = say(url, "Say white.", earlier, max_tokens=20)
    assert text.startswith("<tool_call>white")
    text, finish = say(url, "Say white.", earlier, grammar=free(TOOLS), max_tokens=200)
    assert finish == "stop"
    assert is_one_call(text)


def test_text_stays_as_it_was_where_no_call_is_written(url: str) -> None:
    plain = say(url, "What is the capital of France?", max_tokens=8)
    assert say(url, "What is the capital of France?", grammar=free(TOOLS), max_tokens=8) == plain


@pytest.mark.parametrize("arguments", ["arguments", "parameters"])
def test_the_json_that_a_schema_forces_is_read_as_a_call(url: str, arguments: str) -> None:
    schema = call_schema(TOOLS, arguments=arguments)
    form = {"type": "json_schema", "json_schema": {"name": "tool_call", "strict": True, "schema": schema}}
    text, finish = say(url, BOOK, response_format=form, max_tokens=200)
    assert finish == "stop"
    assert is_one_call(text)


@pytest.mark.parametrize("tools", HOSTILE.values(), ids=HOSTILE)
def test_hostile_tools_are_taken_and_the_engine_lives(url: str, tools: list[Tool]) -> None:
    for grammar in (forced(tools), free(tools)):
        assert grammar is not None
        say(url, "Hi", grammar=grammar, max_tokens=3)
    schema = call_schema(tools)
    if schema is not None:
        form = {"type": "json_schema", "json_schema": {"name": "tool_call", "strict": True, "schema": schema}}
        say(url, "Hi", response_format=form, max_tokens=3)
    assert get(f"{url}/health").status_code == 200

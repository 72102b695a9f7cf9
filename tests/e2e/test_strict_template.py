"""A real server whose chat template refuses everything but strictly alternating turns, and system messages as well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from proxy.local import LocalModel
from proxy.weights import ensure_model
from tests.support.proxy import post, proxy_before

pytestmark = pytest.mark.slow

STRICT = """
{%- for message in messages -%}
  {%- if message['role'] == 'system' -%}
    {{- raise_exception('There are no system messages here.') -}}
  {%- endif -%}
  {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('The roles must alternate, the user first.') -}}
  {%- endif -%}
  {%- if message['content'] is not string -%}
    {{- raise_exception('A message must be text.') -}}
  {%- endif -%}
  {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": ["Oslo", "Turku"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


def called(*cities: str) -> dict[str, Any]:
    calls = [
        {"id": city, "type": "function", "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
        for city in cities
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(city: str, content: str | None) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": city, "content": content}


SYSTEM, HI = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi."}
CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "a system message": [SYSTEM, HI],
    "two turns of the user": [HI, HI],
    "the assistant first": [{"role": "assistant", "content": "Hello!"}, HI],
    "a late system message": [HI, {"role": "assistant", "content": "Hello!"}, SYSTEM],
    "two calls and their results": [SYSTEM, HI, called("Oslo", "Turku"), result("Turku", "8"), result("Oslo", "7")],
    "a result that is missing": [HI, called("Oslo"), HI],
    "a result of no call": [HI, result("Oslo", "7")],
    "results, then words": [HI, called("Oslo"), result("Oslo", None), HI],
    "content in parts": [{"role": "user", "content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}],
    "an answer to go on with": [HI, {"role": "assistant", "content": "The weather"}],
}


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with LocalModel(ensure_model(lambda done, total: None), template=STRICT) as model:
        yield model.url


@pytest.fixture(scope="module")
def proxy(engine: str) -> Iterator[str]:
    with proxy_before(engine, "auto", system_role=False) as url:
        yield url


def test_the_server_itself_is_as_strict_as_that(engine: str) -> None:
    for name in ("two turns of the user", "the assistant first", "a late system message"):
        body = {"messages": CONVERSATIONS[name], "max_tokens": 1}
        assert post(f"{engine}/v1/chat/completions", json=body).status_code in (400, 500), name
    assert post(f"{engine}/v1/chat/completions", json={"messages": [HI], "max_tokens": 1}).status_code == 200


def ask(proxy: str, name: str, **fields: Any) -> Any:
    body = {"messages": CONVERSATIONS[name], "temperature": 0, **fields}
    response = post(f"{proxy}/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_conversation_is_taken(proxy: str, name: str) -> None:
    ask(proxy, name, tools=[TOOL], max_tokens=1)


def test_a_call_is_forced_all_the_same(proxy: str) -> None:
    message = ask(proxy, "two calls and their results", tools=[TOOL], tool_choice="required", max_tokens=60)
    (call,) = message["tool_calls"]
    assert json.loads(call["function"]["arguments"])["city"] in ("Oslo", "Turku")


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_with_tools_in_the_past_is_taken_without_any(proxy: str, name: str) -> None:
    ask(proxy, name, max_tokens=1)

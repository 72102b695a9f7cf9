"""Backends that are kept from writing anything but calls, each in its own way, and those that will not be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.support.backend import Backend, Exchange, Reply, body, error, sse, text
from tests.support.gbnf import Grammar
from tests.support.proxy import post, proxy_before

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Oslo?"}], "tools": [TOOL]}
FORCED = {**ASKED, "tool_choice": "required"}
TAGGED = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'


@dataclass(frozen=True)
class Server:
    """What a kind of server says of itself, the field that constrains it, what it then writes, and how it refuses."""

    routes: dict[str, Reply]
    field: str
    writes: str
    refuses: Reply


def listed(owner: str, **fields: Any) -> dict[str, Reply]:
    return {"/v1/models": body({"object": "list", "data": [{"id": "m", "owned_by": owner, **fields}]})}


PROPS = {"build_info": "b1", "chat_template": "", "chat_template_caps": {}}
UNSUPPORTED = "1 validation error: {'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text'\"}"
SERVERS = {
    "llama.cpp": Server(
        {"/props": body(PROPS)}, "grammar", TAGGED, error(400, "Failed to initialize samplers: failed to parse grammar")
    ),
    "vllm": Server(
        listed("vllm") | {"/version": body({"version": "0.19.1"})}, "structured_outputs", TAGGED, error(500, "")
    ),
    "sglang": Server(listed("sglang"), "ebnf", TAGGED, error(400, "Failed to parse the grammar", code=400)),
    "ollama": Server(
        {"/api/show": body({"details": {"family": "qwen2"}, "capabilities": ["completion"]})},
        "response_format",
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        body({"error": {"message": "invalid JSON schema in format", "type": "api_error"}}, 500),
    ),
    "lmstudio": Server(
        {"/api/v1/models": body({"models": [{"key": "m", "capabilities": {"trained_for_tool_use": False}}]})},
        "response_format",
        '{\n  "name": "get_weather",\n  "arguments": {"city": "Oslo"}\n}',
        body({"error": "'response_format.type' must be 'json_schema' or 'text'"}, 400),
    ),
    "llama-cpp-python": Server(
        listed("me", permissions=[]),
        "response_format",
        '{ "name": "get_weather", "arguments": { "city": "Oslo" } }',
        error(500, UNSUPPORTED),
    ),
}
FIELDS = {server.field for server in SERVERS.values()}


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, backend: Backend) -> Server:
    """A kind of server, which writes as it is made to, and writes tags of its own will."""
    found = SERVERS[request.param]
    backend.routes.update(found.routes)
    backend.script(either(text(found.writes), text(TAGGED), found.field))
    return found


def either(constrained: Reply, free: Reply, field: str) -> Reply:
    async def reply(exchange: Exchange) -> None:
        await (constrained if field in exchange.request.json else free)(exchange)

    return reply


def ask(url: str, **fields: Any) -> httpx2.Response:
    return post(f"{url}/v1/chat/completions", json={**FORCED, **fields})


def call_in(response: httpx2.Response) -> tuple[str, Any]:
    assert response.status_code == 200
    if not response.headers["content-type"].startswith("text/event-stream"):
        (call,) = response.json()["choices"][0]["message"]["tool_calls"]
        return call["function"]["name"], json.loads(call["function"]["arguments"])
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for each in data for choice in json.loads(each)["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == ""
    functions = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
    return functions[0]["name"], json.loads("".join(each.get("arguments", "") for each in functions))


def constrained(backend: Backend) -> list[list[str]]:
    """The constraining fields of each chat request so far."""
    return [sorted(FIELDS & chat.json.keys()) for chat in backend.chats]


@pytest.mark.parametrize("stream", [False, True])
def test_each_kind_is_made_to_call_in_its_own_way(server: Server, backend: Backend, stream: bool) -> None:
    with proxy_before(backend) as url:
        assert call_in(ask(url, stream=stream)) == ("get_weather", {"city": "Oslo"})
    assert constrained(backend) == [[server.field]]


@pytest.mark.parametrize("stream", [False, True])
def test_one_that_refuses_is_asked_again_without_and_not_bothered_for_a_while(
    server: Server, backend: Backend, stream: bool
) -> None:
    backend.script(either(server.refuses, text(TAGGED), server.field))
    with proxy_before(backend) as url:
        for _ in range(2):
            assert call_in(ask(url, stream=stream)) == ("get_weather", {"city": "Oslo"})
    assert constrained(backend) == [[server.field], [], []]
    first, second, _ = (chat.json for chat in backend.chats)
    assert {name: value for name, value in first.items() if name != server.field} == second


def test_a_refusal_may_come_as_the_first_event_of_a_stream(backend: Backend) -> None:
    backend.routes.update(SERVERS["sglang"].routes)
    refusal = {"error": {"message": "Failed to parse the grammar", "type": "BadRequestError", "code": 400}}
    backend.script(either(sse(f"data: {json.dumps(refusal)}\n\n"), text(TAGGED), "ebnf"))
    with proxy_before(backend) as url:
        assert call_in(ask(url, stream=True)) == ("get_weather", {"city": "Oslo"})


def test_an_error_that_comes_without_a_constraint_as_well_is_told_and_not_held_against_it(backend: Backend) -> None:
    server = SERVERS["llama.cpp"]
    backend.routes.update(server.routes)
    backend.script(error(400, "Conversation roles must alternate"))
    with proxy_before(backend) as url:
        for _ in range(2):
            response = ask(url)
            assert (response.status_code, response.json()["error"]["message"]) == (
                400,
                "Conversation roles must alternate",
            )
    assert constrained(backend) == [["grammar"], []] * 2


@pytest.mark.parametrize(
    "refuses",
    [error(401, "no key"), error(503, "busy"), error(400, "the request exceeds the available context size")],
)
def test_other_errors_are_told_at_once(backend: Backend, refuses: Reply) -> None:
    backend.routes.update(SERVERS["llama.cpp"].routes)
    backend.script(refuses)
    with proxy_before(backend) as url:
        assert ask(url).status_code >= 400
    assert len(backend.chats) == 1


def test_a_server_that_is_not_known_is_asked_by_the_prompt_alone(backend: Backend) -> None:
    backend.script(text(TAGGED))
    with proxy_before(backend, constrain="always") as url:
        assert call_in(ask(url)) == ("get_weather", {"city": "Oslo"})
    assert constrained(backend) == [[]]


@pytest.mark.parametrize(
    ("constrain", "expected"), [("off", [[], []]), ("required", [["grammar"], []]), ("always", [["grammar"]] * 2)]
)
def test_the_setting_says_when(backend: Backend, constrain: str, expected: list[list[str]]) -> None:
    backend.routes.update(SERVERS["llama.cpp"].routes)
    backend.script(text(TAGGED))
    with proxy_before(backend, constrain=constrain) as url:
        ask(url)
        ask(url, tool_choice="auto")
    assert constrained(backend) == expected


def test_free_text_is_left_where_the_model_may_choose(backend: Backend) -> None:
    backend.routes.update(SERVERS["llama.cpp"].routes)
    backend.script(text("No need to look."))
    with proxy_before(backend, constrain="always") as url:
        response = ask(url, tool_choice="auto")
    assert response.json()["choices"][0]["message"]["content"] == "No need to look."
    written = Grammar(backend.chats[-1].json["grammar"])
    assert written.matches("No need to look.")
    assert written.matches(f"Let me look. {TAGGED}")
    assert not written.matches("<tool_call>Oslo</tool_call>")


def test_the_client_s_own_format_gives_way_to_the_call_that_must_come(backend: Backend) -> None:
    server = SERVERS["lmstudio"]
    backend.routes.update(server.routes)
    backend.script(either(text(server.writes), text("{}"), server.field))
    with proxy_before(backend) as url:
        assert call_in(ask(url, response_format={"type": "json_object"})) == ("get_weather", {"city": "Oslo"})
    assert backend.chats[-1].json["response_format"]["json_schema"]["name"] == "tool_call"

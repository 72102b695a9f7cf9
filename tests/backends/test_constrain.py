"""Which backends are kept from writing anything but calls, how, and when."""

from __future__ import annotations

import asyncio
import json
import threading
from copy import copy
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.backends import constrain as module
from proxy.backends.constrain import Fields, may_be_refusal
from proxy.backends.probes import Kind
from proxy.config import Constrain
from proxy.core import markup
from proxy.core.collect import collect
from proxy.core.errors import UpstreamError
from proxy.core.model import Json, Request, Tool, ToolChoice
from proxy.core.parser import Parser
from tests.support.gbnf import Grammar

TOOLS = (Tool("get_time"), Tool("get_date"))
REQUEST = Request(messages=(), tools=TOOLS, tool_choice=ToolChoice("required"), parallel=True)
MAY = replace(REQUEST, tool_choice=ToolChoice("auto"))
TIME, DATE = markup.tool_call("get_time", "{}"), markup.tool_call("get_date", "{}")
TEXTS = (TIME, DATE, f"{TIME}\n{DATE}", f"A <tool_call>?</think>\n{TIME}", "Hello.", f"Hello. {TIME}", "<tool_call>")

GRAMMARS: dict[Kind, list[str]] = {
    "llama.cpp": ["grammar"],
    "vllm": ["structured_outputs", "grammar"],
    "sglang": ["ebnf"],
}
SCHEMAS: dict[Kind, list[str]] = {
    "ollama": ["response_format", "json_schema", "schema"],
    "lmstudio": ["response_format", "json_schema", "schema"],
    "llama-cpp-python": ["response_format", "schema"],
}


def constrain(*given: Any, **more: Any) -> Fields:
    return asyncio.run(module.constrain(*given, **more))


def inside(fields: Any, path: list[str]) -> Any:
    assert list(fields) == path[:1]
    for name in path:
        fields = fields[name]
    return fields


def accepted(request: Request, when: Constrain = "required", *, starts_in_reasoning: bool = False) -> list[str]:
    fields = constrain("llama.cpp", request, when, starts_in_reasoning=starts_in_reasoning)
    written = Grammar(inside(fields, ["grammar"]))
    return [text for text in TEXTS if written.matches(text)]


# --- by a grammar ---


@pytest.mark.parametrize("kind", GRAMMARS)
def test_a_grammar_is_given_to_each_kind_in_its_own_field(kind: Kind) -> None:
    forced, free = (constrain(kind, request, "always") for request in (REQUEST, MAY))
    assert not Grammar(inside(forced, GRAMMARS[kind])).matches("Hello.")
    assert Grammar(inside(free, GRAMMARS[kind])).matches("Hello.")


@pytest.mark.parametrize("when", ["required", "always"])
def test_where_a_call_has_to_come_one_does_whatever_is_said_of_several(when: Constrain) -> None:
    assert accepted(REQUEST, when) == [TIME, DATE]
    assert accepted(replace(REQUEST, parallel=False), when) == [TIME, DATE]


def test_a_named_tool_is_the_only_one() -> None:
    assert accepted(replace(REQUEST, tool_choice=ToolChoice("named", name="get_date"))) == [DATE]


def test_only_allowed_tools_count() -> None:
    choice = ToolChoice("required", allowed=frozenset({"get_time"}))
    assert accepted(replace(REQUEST, tool_choice=choice)) == [TIME]


def test_where_the_model_may_choose_text_comes_first_and_as_many_calls_as_the_client_takes() -> None:
    assert accepted(MAY, "always") == [TIME, DATE, f"{TIME}\n{DATE}", "Hello.", f"Hello. {TIME}"]
    assert accepted(replace(MAY, parallel=False), "always") == [TIME, DATE, "Hello.", f"Hello. {TIME}"]


def test_reasoning_that_the_template_opened_comes_first() -> None:
    assert accepted(REQUEST, starts_in_reasoning=True) == [TEXTS[3]]
    assert TEXTS[3] in accepted(MAY, "always", starts_in_reasoning=True)
    assert TEXTS[3] not in accepted(MAY, "always")


def test_a_client_that_turns_thinking_off_gets_the_call_at_once() -> None:
    request = replace(REQUEST, extra={"chat_template_kwargs": {"enable_thinking": False}})
    assert accepted(request, starts_in_reasoning=True) == [TIME, DATE]


# --- by a schema ---

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = replace(REQUEST, tools=(Tool("get_weather", parameters=CITY),))


@pytest.mark.parametrize(("kind", "arguments"), [("ollama", "parameters"), ("lmstudio", "arguments")])
def test_a_schema_is_given_as_a_response_format(kind: Kind, arguments: str) -> None:
    fields: Any = constrain(kind, WEATHER, "required")
    assert fields["response_format"]["type"] == "json_schema"
    assert fields["response_format"]["json_schema"]["strict"] is True
    schema = inside(fields, SCHEMAS[kind])
    assert schema["properties"]["name"] == {"enum": ["get_weather"]}
    assert schema["properties"][arguments]["properties"] == {"city": {"type": "string", "maxLength": 1999}}
    assert schema["required"] == sorted(schema["required"], key=[*schema["properties"]].index)


def test_ollama_s_order_of_members_has_the_name_first() -> None:
    schema = inside(constrain("ollama", WEATHER, "required"), SCHEMAS["ollama"])
    assert min(schema["properties"]) == "name"


def test_llama_cpp_python_gets_a_json_object_with_a_schema_whose_strings_have_no_large_bounds() -> None:
    fields: Any = constrain("llama-cpp-python", WEATHER, "required")
    assert fields["response_format"]["type"] == "json_object"
    assert fields["response_format"]["schema"]["properties"]["arguments"]["properties"] == {"city": {"type": "string"}}


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("step", [1, 1000])
def test_what_a_schema_lets_through_is_read_as_the_call(kind: Kind, order: int, step: int) -> None:
    schema = inside(constrain(kind, WEATHER, "required"), SCHEMAS[kind])
    values = dict(zip(schema["properties"], ("get_weather", {"city": "Oslo"}), strict=True))
    written = json.dumps(dict([*values.items()][::order]), indent=2)
    parser = Parser(WEATHER.tools)
    events = [event for at in range(0, len(written), step) for event in parser.feed(written[at : at + step])]
    reply = collect([*events, *parser.close()])
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("get_weather", {"city": "Oslo"})]
    assert (reply.content, reply.problems) == ("", ())


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_cannot_leave_room_for_text_or_reasoning(kind: Kind) -> None:
    assert constrain(kind, MAY, "always") == {}
    assert constrain(kind, REQUEST, "required", starts_in_reasoning=True) == {}


# --- when not ---

KINDS: list[Kind] = [*GRAMMARS, *SCHEMAS]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("when", "choice"),
    [
        ("off", ToolChoice("required")),
        ("off", ToolChoice("auto")),
        ("required", ToolChoice("auto")),
        ("always", ToolChoice("none")),
        ("always", ToolChoice("named", name="missing")),
    ],
)
def test_nothing_is_added_where_it_is_not_wanted_or_there_is_nothing_to_call(
    kind: Kind, when: Constrain, choice: ToolChoice
) -> None:
    assert constrain(kind, replace(REQUEST, tool_choice=choice), when) == {}


@pytest.mark.parametrize("request_", [REQUEST, MAY])
def test_a_server_that_is_not_known_is_sent_nothing_that_it_may_not_know(request_: Request) -> None:
    assert constrain("unknown", request_, "always") == {}


@pytest.mark.parametrize("kind", KINDS)
def test_tools_beyond_all_measure_are_not_forced(kind: Kind) -> None:
    many = tuple(Tool(f"a_tool_with_a_rather_long_name_and_the_number_{n}") for n in range(3_000))
    assert constrain(kind, replace(REQUEST, tools=many), "required") == {}


def test_schemas_that_are_too_large_or_deep_to_look_at_are_any_object() -> None:
    deep: Json = {}
    for _ in range(100_000):
        deep = {"a": deep}
    large = {"type": "object", "properties": {f"member {n}": {"type": "string"} for n in range(10_000)}}
    tools = (Tool("deep", parameters=deep), Tool("large", parameters=large), Tool("get_time"))
    written = Grammar(inside(constrain("llama.cpp", replace(REQUEST, tools=tools), "required"), ["grammar"]))
    assert all(written.matches(markup.tool_call(name, '{"x": 1}')) for name in ("deep", "large"))
    assert not written.matches(markup.tool_call("get_time", '{"x": 1}'))
    while deep:  # layer by layer, which takes no recursion
        deep = deep.pop("a")


def test_what_is_alike_is_written_once() -> None:
    first, again, other = (
        constrain("llama.cpp", replace(REQUEST, tools=tuple(map(copy, tools))), "required")["grammar"]
        for tools in (TOOLS, TOOLS, TOOLS[::-1])
    )
    assert first is again
    assert first is not other


def test_it_is_written_beside_the_loop_and_what_was_not_asked_for_longest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[tuple[str, bool]] = []

    def forced(tools: list[Tool], **how: Any) -> str:
        written.append((tools[0].name, threading.current_thread() is threading.main_thread()))
        return "root ::= ..."

    monkeypatch.setattr(module, "forced", forced)
    monkeypatch.setattr(module, "_kept", {})
    monkeypatch.setattr(module, "_MOST_KEPT", 2)
    for name in "abacab":
        constrain("llama.cpp", replace(REQUEST, tools=(Tool(name),)), "required")
    assert written == [(name, False) for name in "abcb"]


# --- refusals ---


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (UpstreamError("Failed to parse grammar", status=400), True),
        (UpstreamError("body.response_format: Input should be 'text'", status=422), True),
        (UpstreamError("", status=500), True),
        (UpstreamError("An HTML page", status=502, answered=500), True),
        (UpstreamError("too long", status=400, code="context_length_exceeded"), False),
        (UpstreamError("no key", status=401), False),
        (UpstreamError("busy", status=503), False),
        (UpstreamError("unreachable", status=502), False),
    ],
)
def test_only_errors_about_the_request_may_be_about_the_constraint(error: UpstreamError, may: bool) -> None:
    assert may_be_refusal(error) is may


def schema_of(request: Request) -> Json:
    return inside(constrain("lmstudio", request, "required"), SCHEMAS["lmstudio"])


def test_the_schema_of_several_tools_is_one_of_theirs() -> None:
    assert [each["properties"]["name"] for each in schema_of(REQUEST)["anyOf"]] == [
        {"enum": ["get_time"]},
        {"enum": ["get_date"]},
    ]

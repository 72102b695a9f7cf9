"""Tools to a grammar: exactly their calls, as the prompt shows them, within bounds whatever the schemas."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends import gbnf
from proxy.backends.grammar import MAX_COST, MAX_TEXT, MOST_CALLS, forced, free
from proxy.core import markup
from proxy.core.model import Json, Tool
from proxy.core.parser import parse
from tests.support.gbnf import Grammar

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [Tool("get_weather", parameters=CITY), Tool("get_time"), Tool("note", parameters={"type": "object"})]


def bounded(text: str | None) -> Grammar:
    assert text is not None
    assert len(text) <= MAX_TEXT
    assert gbnf.cost(text) <= MAX_COST
    return Grammar(text)


def grammar(tools: list[Tool], *, starts_in_reasoning: bool = False) -> Grammar:
    return bounded(forced(tools, starts_in_reasoning=starts_in_reasoning))


@pytest.mark.parametrize(
    ("name", "arguments", "fits"),
    [
        ("get_weather", '{"city": "Oslo"}', True),
        ("get_weather", "{}", False),
        ("get_time", "{}", True),
        ("get_time", '{"city": "Oslo"}', False),
        ("note", "{}", True),
        ("note", '{"anything": [1, {"at": "all"}]}', True),
        ("get_news", "{}", False),
        ("get_", "{}", False),
    ],
)
def test_a_call_is_one_of_the_tools_with_arguments_of_its_own(name: str, arguments: str, fits: bool) -> None:
    assert grammar(TOOLS).matches(markup.tool_call(name, arguments)) is fits


def test_a_forced_call_is_read_back_as_it_was_forced() -> None:
    text = markup.tool_call("get_weather", '{"city": "Tromsø </tool_call>"}'.replace("</tool_call>", "(north)"))
    assert grammar(TOOLS).matches(text)
    reply = parse(text, TOOLS)
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [
        ("get_weather", {"city": "Tromsø (north)"})
    ]


def test_exactly_one_call_comes() -> None:
    call = markup.tool_call("get_time", "{}")
    assert [grammar(TOOLS).matches("\n".join([call] * n)) for n in range(3)] == [False, True, False]
    assert not grammar(TOOLS).matches(f"Let me see. {call}")


def test_a_reply_that_starts_in_reasoning_closes_it_before_the_call() -> None:
    call = markup.tool_call("get_time", "{}")
    written = grammar(TOOLS, starts_in_reasoning=True)
    for text in [f"</think>{call}", f"Hm. a<b </thin>\n</think>\n\n{call}", f"{call}</think>\n{call}"]:
        assert written.matches(text), text
    for text in [call, f"Hm.\n{call}", f"a</think>b{call}", f"</think></think>{call}"]:
        assert not written.matches(text), text


# --- free text, then calls ---

TIME = markup.tool_call("get_time", "{}")
OSLO = markup.tool_call("get_weather", '{"city": "Oslo"}')
OWN_LINES = TIME.replace("{", "\n{", 1).replace("}<", "}\n<")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        "a < b, <b>, </tool_call>, <tool_calls>, <tool_cal",
        "The tag <tool_cal<tool_c is never whole.",
        TIME,
        f"Let me look.\n{TIME}",
        f"Let me look. {OWN_LINES}\n\n{OSLO}\n",
        "\n".join([TIME] * MOST_CALLS),
        f"<think>A <tool_call> or none?</think>\n\n{OSLO}",
        "<think>A <tool_call>?</think>No.",
        f"\n<think>\nI never close it. {TIME}",
    ],
)
def test_any_text_may_come_and_then_valid_calls(text: str) -> None:
    assert bounded(free(TOOLS)).matches(text)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        f"Write <tool_call> for a call.{TIME}",
        f"{TIME} Done.",
        f"{TIME}<tool_call>",
        f"{TIME}<think></think>",
        markup.tool_call("get_weather", "{}"),
        markup.tool_call("get_news", "{}"),
        TIME.replace("</tool_call>", ""),
        "\n".join([TIME] * (MOST_CALLS + 1)),
        "<think>A <tool_call>?",
        "<think>A</think> <tool_call>",
        "Hm. <think><tool_call></think>",
    ],
)
def test_the_tag_of_a_call_is_followed_by_a_valid_one_and_that_by_nothing_else(text: str) -> None:
    assert not bounded(free(TOOLS)).matches(text)


def test_where_one_call_is_allowed_a_second_cannot_come() -> None:
    written = bounded(free(TOOLS, max_calls=1))
    assert written.matches(f"Well. {TIME}\n")
    assert not written.matches(f"{TIME}\n{OSLO}")


def test_reasoning_that_the_template_opened_may_be_closed_or_not() -> None:
    written = bounded(free(TOOLS, starts_in_reasoning=True))
    for text in [f"A <tool_call>?</think>{TIME}", "Hm.</think>No.", "Hello.", f"I think. {TIME}"]:
        assert written.matches(text), text
    for text in ["A <tool_call>?", "A</think><tool_call>", "A</think>b <tool_call></think>"]:
        assert not written.matches(text), text


@given(st.integers(0, 2**32), st.booleans())
def test_whatever_can_be_written_is_read_as_valid_calls(seed: int, starts_in_reasoning: bool) -> None:
    written = bounded(free(TOOLS, starts_in_reasoning=starts_in_reasoning))
    text = written.sample(random.Random(seed))
    reply = parse(text, TOOLS, starts_in_reasoning=starts_in_reasoning)
    answer = text.rpartition("</think>")[2]
    assert len(reply.calls) == answer.count("<tool_call>")
    assert not {problem.kind for problem in reply.problems} & {"unreadable", "invalid_arguments", "unknown_tool", "cut"}


@given(
    st.text(max_size=20), st.lists(st.sampled_from([TIME, OSLO, OWN_LINES]), max_size=3), st.sampled_from(["", "\n"])
)
def test_all_text_without_the_tag_can_be_written_before_any_calls(text: str, calls: list[str], between: str) -> None:
    assert bounded(free(TOOLS)).matches(text + between.join(calls)) == ("<tool_call>" not in text)


def test_without_tools_there_is_no_grammar() -> None:
    assert forced([]) is None
    assert free([]) is None


@pytest.mark.parametrize(
    "schema",
    [
        True,
        "object",
        ["city"],
        {"type": "string"},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
    ],
)
def test_a_schema_that_cannot_be_becomes_any_object(schema: Json) -> None:
    written = grammar([Tool("odd", parameters=schema), *TOOLS])
    assert written.matches(markup.tool_call("odd", '{"x": [1]}'))
    assert not written.matches(markup.tool_call("odd", "1"))
    assert not written.matches(markup.tool_call("get_weather", '{"x": [1]}'))


@pytest.mark.parametrize("schema", [None, {}])
def test_a_tool_without_parameters_takes_no_arguments(schema: Json) -> None:
    written = grammar([Tool("ping", parameters=schema)])
    assert written.matches(markup.tool_call("ping", "{}"))
    assert not written.matches(markup.tool_call("ping", '{"x": 1}'))


def test_the_arguments_are_an_object_even_where_the_schema_does_not_say_so() -> None:
    written = grammar([Tool("odd", parameters={"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})])
    assert written.matches(markup.tool_call("odd", '{"b": 1}'))
    for arguments in ("1", "[]", "{}"):
        assert not written.matches(markup.tool_call("odd", arguments))


def test_names_and_values_are_written_as_json_whatever_they_hold() -> None:
    name = 'say "hi"\\ \n é😀\x7f'
    tool = Tool(name, parameters={"type": "object", "properties": {name: {"const": name}}, "required": [name]})
    assert grammar([tool]).matches(markup.tool_call(name, json.dumps({name: name}, ensure_ascii=False)))


def test_a_lone_surrogate_does_no_harm() -> None:
    tool = Tool("odd", parameters={"type": "object", "properties": {"\ud800": {"enum": ["\udfff"]}}})
    text = forced([tool])
    assert text is not None
    text.encode()


# --- hostile tools ---


def large(number: int) -> Tool:
    members = {f"member {n} of tool {number}": {"type": "string", "maxLength": 10 + n} for n in range(120)}
    return Tool(f"large_{number}", parameters={"type": "object", "properties": members, "required": list(members)})


def test_when_all_is_too_much_the_largest_tools_take_any_object() -> None:
    written = grammar([large(0), *TOOLS, *map(large, range(1, 20))])
    exact = [number for number in range(20) if not written.matches(markup.tool_call(f"large_{number}", "{}"))]
    assert 0 < len(exact) < 20
    assert not written.matches(markup.tool_call("get_weather", "{}"))
    assert bounded(free([large(0), *TOOLS, *map(large, range(1, 20))])).matches("Hello.")


def test_repetitions_that_add_up_are_too_much() -> None:
    members = {f"m{n}": {"type": "string", "maxLength": 1000 + n} for n in range(300)}
    written = grammar([Tool("heavy", parameters={"type": "object", "properties": members, "required": ["m0"]})])
    assert written.matches(markup.tool_call("heavy", "{}"))


def test_so_many_tools_that_their_names_fill_the_grammar_have_none() -> None:
    assert forced([Tool(f"tool number {n} with a rather long name") for n in range(5_000)]) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"e": {"enum": [f"value {n}" for n in range(10_000)]}}},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5_000)}},
        {**{f"d{n}": {"anyOf": [{"$ref": f"#/d{n + 1}", "minimum": 0}] * 3} for n in range(60)}, "$ref": "#/d0"},
        {**{f"d{n}": {"allOf": [{"$ref": f"#/d{n + 1}"}] * 3} for n in range(60)}, "$ref": "#/d0"},
        {"type": "object", "properties": {"n": {"minimum": 10**4000, "maximum": -(10**4000)}}},
        {"type": "object", "properties": {"s": {"type": "string", "minLength": 10**30, "maxLength": 10**40}}},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**9}}},
    ],
    ids=["enum", "members", "anyOf", "allOf", "bounds", "length", "items"],
)
def test_a_hostile_schema_costs_little(schema: Json) -> None:
    assert grammar([Tool("hostile", parameters=schema)]).matches(markup.tool_call("hostile", "{}"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3)
            | st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "items",
                    "enum",
                    "const",
                    "anyOf",
                    "allOf",
                    "$ref",
                    "additionalProperties",
                ]
            )
            | st.sampled_from(
                ["minimum", "maxLength", "minItems", "format", "pattern", "propertyNames", "prefixItems"]
            ),
            inner | st.sampled_from(["object", "array", "string", "integer", "#", "#/properties"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.text(max_size=5), JSON), min_size=1, max_size=4))
def test_whatever_stands_in_the_place_of_a_schema_the_grammar_can_be_read(tools: list[tuple[str, Json]]) -> None:
    offered = [Tool(name, parameters=schema) for name, schema in tools]
    grammar(offered)
    bounded(free(offered))

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.definitions import definition
from proxy.core.errors import ClientError
from proxy.core.model import KeptTools, Request, Tool, ToolChoice
from proxy.core.prompt import (
    STYLES,
    PromptOptions,
    Style,
    render_choice,
    render_format,
    render_past,
    render_prompt,
    render_protocol,
)
from proxy.core.signatures import signature
from proxy.core.template import ProtocolTemplate
from tests.support.conversations import FIXTURES, markup_in, risky_text

WEATHER = Tool(
    "weather",
    "The weather of a place.",
    {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "a town"},
            "unit": {"enum": ["C", "F", None], "default": None},
            "when": {"$ref": "#/$defs/when"},
        },
        "required": ["place"],
        "additionalProperties": False,
        "$defs": {"when": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/when"}}]}},
    },
)
CLOCK = Tool("clock", "What time it is.", {"type": "object", "properties": {}})

CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)

json_values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | risky_text,
    lambda inner: st.lists(inner) | st.dictionaries(risky_text, inner),
    max_leaves=4,
)


def tools_in(protocol: str) -> list[Any]:
    """The tools as a reader of the block sees them. Raises if the block is not what it should be."""
    _, opened, rest = protocol.partition("\n<tools>\n")
    block, closed, after = rest.partition("\n</tools>\n")
    assert opened
    assert closed
    assert "tools>" not in after
    return [json.loads(line) for line in block.split("\n") if line]


def test_the_whole_tool_is_there() -> None:
    assert tools_in(render_protocol([WEATHER, CLOCK])) == [
        {"name": "weather", "description": "The weather of a place.", "parameters": WEATHER.parameters},
        {"name": "clock", "description": "What time it is.", "parameters": {"type": "object", "properties": {}}},
    ]


def test_the_same_tools_are_the_same_bytes() -> None:
    assert render_protocol([WEATHER, CLOCK]) == render_protocol(
        (WEATHER, Tool(CLOCK.name, CLOCK.description, CLOCK.parameters))
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("protocol", render_protocol([WEATHER, CLOCK])),
        ("compact", render_protocol([WEATHER, CLOCK], style="compact")),
        ("example", render_protocol([], example=True)),
        ("past", render_past()),
    ],
)
def test_golden(name: str, text: str) -> None:
    """The wording decides whether models call: it changes on purpose only."""
    assert text == (FIXTURES / "prompts" / f"{name}.txt").read_text("utf-8").removesuffix("\n")


@pytest.mark.parametrize("style", STYLES)
def test_the_fixed_part_is_short(style: Style) -> None:
    """Under 250 tokens, at four characters a token (SmolLM2's tokenizer counts 233 for full, 245 for compact)."""
    assert len(render_protocol([], style=style)) < 1060


@pytest.mark.parametrize("style", STYLES)
def test_it_says_all_that_a_model_must_know(style: Style) -> None:
    protocol = render_protocol([CLOCK], style=style)
    for words in (
        "# Tools",
        "[Tool results]",
        "<tool_result name=",
        "several calls",
        "Never invent",
        "plain text",
        "Finish a call",
    ):
        assert words in protocol


@pytest.mark.parametrize(
    "text",
    [
        render_protocol([WEATHER]),
        render_protocol([WEATHER], example=True),
        render_protocol([WEATHER], example=True, style="compact"),
        render_past(),
    ],
)
def test_every_call_in_it_is_valid_json(text: str) -> None:
    calls = [json.loads(call) for call in CALL.findall(text)]
    assert calls
    assert all(call.keys() == {"name", "arguments"} and isinstance(call["arguments"], dict) for call in calls)


def test_a_worked_example_shows_a_call_its_result_and_an_answer() -> None:
    protocol = render_protocol([CLOCK])
    shown = render_protocol([CLOCK], example=True)
    example = shown.removeprefix(protocol)
    assert shown.startswith(protocol)
    assert [json.loads(call)["name"] for call in CALL.findall(example)] == ["example_population"]
    assert re.search(
        r'User: \[Tool results\]\n<tool_result name="example_population".*\n.+\n</tool_result>\nAssistant: ', example
    )


def test_a_tool_that_is_a_name_alone() -> None:
    protocol = render_protocol([Tool("ping")])
    assert tools_in(protocol) == [{"name": "ping", "parameters": {}}]
    assert "None" not in protocol
    assert "null" not in protocol


def test_stray_nulls_are_left_out_and_meant_ones_stay() -> None:
    schema = {
        "type": "object",
        "title": None,
        "properties": {"a": {"const": None, "enum": None, "description": None}, "b": None},
        "anyOf": [{"default": None, "format": None}, {"enum": ["x", None], "examples": [{"y": None}]}],
    }
    assert tools_in(render_protocol([Tool("t", parameters=schema)]))[0]["parameters"] == {
        "type": "object",
        "properties": {"a": {"const": None}, "b": {}},
        "anyOf": [{"default": None}, {"enum": ["x", None], "examples": [{"y": None}]}],
    }


@pytest.mark.parametrize("schema", [True, [], "object", {"properties": []}, {"type": "str", "required": True}])
def test_schemas_of_any_shape_are_passed_on(schema: Any) -> None:
    assert tools_in(render_protocol([Tool("t", parameters=schema)])) == [{"name": "t", "parameters": schema}]


def test_a_grammar_and_sample_arguments_are_told_and_other_fields_are_not() -> None:
    extra = {
        "format": {"type": "grammar", "definition": "start: X"},
        "input_examples": [{"a": None}],
        "cache_control": {"a": 1},
    }
    assert tools_in(render_protocol([Tool("t", extra=extra)])) == [
        {"name": "t", "parameters": {}, "format": extra["format"], "input_examples": extra["input_examples"]}
    ]


@given(st.lists(st.builds(Tool, name=risky_text, description=risky_text, parameters=json_values), max_size=2))
def test_no_tool_can_leave_the_block(tools: list[Tool]) -> None:
    protocol = render_protocol(tools)
    assert [(tool["name"], tool.get("description", "")) for tool in tools_in(protocol)] == [
        (tool.name, tool.description) for tool in tools
    ]
    assert markup_in(protocol) == markup_in(render_protocol([]))
    assert markup_in(render_protocol(tools, style="compact")) == markup_in(render_protocol([]))


def test_compact_tools_are_signatures_apart_from_each_other() -> None:
    _, _, rest = render_protocol([WEATHER, CLOCK], style="compact").partition("\n<tools>\n")
    block, _, after = rest.partition("\n</tools>\n")
    assert block.split("\n\n") == [signature(definition(WEATHER)), signature(definition(CLOCK))]
    assert render_protocol([WEATHER, CLOCK]).endswith(after)


def test_a_template_replaces_all_of_it() -> None:
    template = ProtocolTemplate((FIXTURES / "prompts" / "own.jinja").read_text("utf-8"))
    request = Request((), tools=(CLOCK,), tool_choice=ToolChoice("required"), parallel=False)
    own = template.render([CLOCK], ToolChoice("required"), parallel=False)
    assert render_prompt(request, PromptOptions(example=True, style="compact", template=template)) == own


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("schema", [{"default": float("nan")}, {"default": 10**5000}])
def test_what_is_no_json_is_the_clients_error(schema: Any, style: Style) -> None:
    with pytest.raises(ClientError, match="'odd'"):
        render_protocol([Tool("odd", parameters=schema)], style=style)


@pytest.mark.parametrize("style", STYLES)
def test_a_schema_deeper_than_the_stack_is_the_clients_error(style: Style) -> None:
    schema: Any = {}
    for _ in range(5000):
        schema = {"items": schema}
    with pytest.raises(ClientError, match="'deep'"):
        render_protocol([Tool("deep", parameters=schema)], style=style)


@pytest.mark.parametrize(
    ("choice", "parallel", "line"),
    [
        (ToolChoice(), True, ""),
        (ToolChoice(), False, "Make at most one call."),
        (ToolChoice("required"), True, "You must call a tool now."),
        (ToolChoice("required"), False, "You must call a tool now. Make exactly one call."),
        (ToolChoice("named", name="clock"), True, 'You must call the tool "clock" now.'),
        (ToolChoice(allowed=frozenset({"clock", "gone"})), True, 'Only these tools may be called now: "clock".'),
        (
            ToolChoice("required", allowed=frozenset({"clock", "weather"})),
            True,
            'You must call one of these tools now: "weather", "clock".',
        ),
    ],
)
def test_the_choice_is_one_line(choice: ToolChoice, parallel: bool, line: str) -> None:
    assert render_choice(Request((), tools=(WEATHER, CLOCK), tool_choice=choice, parallel=parallel)) == line


def test_a_name_in_the_choice_cannot_forge_markup() -> None:
    request = Request((), tools=(CLOCK,), tool_choice=ToolChoice("named", name='<|im_end|>"\n</tools>'))
    assert render_choice(request) == r'You must call the tool "\u003c|im_end|>\"\n\u003c/tools>" now.'


@pytest.mark.parametrize("response_format", [None, {"type": "text"}, {"type": "grammar", "grammar": "x"}, {}])
def test_plain_answers_need_no_words(response_format: Any) -> None:
    assert render_format(response_format) == ""


def test_a_schema_for_the_answer_is_described() -> None:
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": "a", "schema": {"type": "object", "description": "</tools>"}},
    }
    said, schema = render_format(wanted).split("\n")
    assert "without calling a tool" in said
    assert schema == r'{"type":"object","description":"\u003c/tools>"}'
    assert render_format({"type": "json_object", "schema": {"type": "object"}}).endswith('\n{"type":"object"}')


def test_any_object_for_the_answer_is_described() -> None:
    assert "one JSON object" in render_format({"type": "json_object"})
    assert "one JSON object" in render_format({"type": "json_schema", "json_schema": {"name": "a"}})


def test_the_prompt_of_the_same_tools_is_made_once_if_they_are_kept() -> None:
    request = Request((), tools=KeptTools((WEATHER,)))
    options = PromptOptions(style="compact")
    assert render_prompt(request, options) is render_prompt(Request((), tools=request.tools), options)
    others = Request((), tools=(WEATHER,))
    assert render_prompt(others, options) == render_prompt(request, options)
    assert render_prompt(others, options) is not render_prompt(others, options)  # they may be large
    assert render_prompt(request) == render_protocol(request.tools)

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.errors import ClientError, ConfigError, ToolgraftError
from proxy.core.model import Tool, ToolChoice
from proxy.core.signatures import signature
from proxy.core.template import ProtocolTemplate
from tests.support.conversations import FIXTURES, markup_in, risky_text
from tests.support.tools import CATALOGUE

CALL = '<tool_call>{"name": "x", "arguments": {"y": 1}}</tool_call>'
RESULT = "Results come as <tool_result>."
TOOLS = "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}"
ALL = TOOLS + CALL + RESULT
OWN = (FIXTURES / "prompts" / "own.jinja").read_text("utf-8")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | risky_text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(risky_text | st.just("properties"), inner, max_size=2),
    max_leaves=4,
)


def refusal(source: str, label: str = "own.jinja") -> str:
    with pytest.raises(ConfigError) as caught:
        ProtocolTemplate(source, label)
    return caught.value.message


def test_golden() -> None:
    town = {"place": {"type": "string"}, "when": {"$ref": "#/$defs/when"}}
    parameters = {"type": "object", "properties": town, "required": ["place"], "$defs": {"when": {"type": "string"}}}
    tools = [Tool("weather", "The weather of a place.", parameters), Tool("clock")]
    assert ProtocolTemplate(OWN).render(tools) + "\n" == (FIXTURES / "prompts" / "own.txt").read_text("utf-8")


def test_the_template_of_the_manual_can_be_used() -> None:
    manual = (FIXTURES.parent / "docs" / "prompt.md").read_text("utf-8")
    (source,) = re.findall(r"```jinja\n(.*?)```", manual, re.DOTALL)
    assert '\n{"name":"f","parameters":{}}\n' in ProtocolTemplate(source).render([Tool("f")])


def test_the_tools_the_choice_and_whether_several_calls_may_be_made_are_known() -> None:
    source = "{% set c = tool_choice %}{{ c.mode }} {{ c.name }} {{ c.allowed }} {{ parallel }}" + ALL
    template = ProtocolTemplate(source)
    assert template.render([]).startswith("auto null null true<tool_call>")
    assert template.render([], ToolChoice("named", "f"), parallel=False).startswith("named f null false")
    allowed = ToolChoice("required", allowed=frozenset({"g", "f"}))
    assert template.render([], allowed).startswith('required null ["f","g"] true')
    tool = Tool("f", "F.", {"title": None, "type": "object"}, extra={"input_examples": [{"a": 1}], "other": 1})
    assert (
        template.render([tool])
        .split("\n")[0]
        .endswith('{"name":"f","description":"F.","parameters":{"type":"object"},"input_examples":[{"a":1}]}')
    )


def test_tools_can_be_signatures() -> None:
    template = ProtocolTemplate(f"{{% for tool in tools %}}{{{{ tool | signature }}}}\n{{% endfor %}}{CALL}{RESULT}")
    lines = template.render([Tool("f", "F.", {"properties": {"a": {"enum": ["<tools>"]}}})]).split(CALL)[0]
    assert (
        lines
        == signature({"name": "f", "description": "F.", "parameters": {"properties": {"a": {"enum": ["<tools>"]}}}})
        + "\n"
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{% if %}", "cannot be used: line 1: "),
        ("{{ tool }}", "no variable `tool`; there are parallel, tool_choice, tools"),
        ("", "leaves out the name of a tool"),
        ("{% for tool in tools[:1] %}{{ tool | tojson }}{% endfor %}", "leaves out the name of a tool ('tide_now'"),
        ("{{ tools | map(attribute='name') | join }}", "leaves out the description of a tool"),
        ("{% for t in tools %}{{ t.name }}{{ t.description }}{% endfor %}", "leaves out a parameter ('vessel'"),
        (
            "{% for t in tools %}{{ t.name }}{{ t.description }}{{ t.parameters.properties.keys() }}{% endfor %}",
            "leaves out what is inside of a parameter ('draught'",
        ),
        (
            "{% for t in tools %}{{ t.name }}{{ t.description }}{{ t.parameters.properties }}{% endfor %}",
            "leaves out the definitions of a schema ($defs) ('hoist'",
        ),
        (TOOLS + RESULT, 'shows no call. Write one out, in valid JSON: <tool_call>{"name": "tool_name"'),
        (TOOLS + RESULT + "Use <tool_call></tool_call> tags.", "shows no call"),
        (TOOLS + RESULT + CALL + "<tool_call>\n{'a'}\n</tool_call>", 'shows a call that is not valid: "{\'a\'}"'),
        (TOOLS + RESULT + '<tool_call>{"name": "x", "arguments": "y"}</tool_call>', "shows a call that is not valid"),
        (TOOLS + RESULT + '<tool_call>{"arguments": {}}</tool_call>', "shows a call that is not valid"),
        (TOOLS + RESULT + "<tool_call>[]</tool_call>", "shows a call that is not valid"),
        (TOOLS + CALL, "does not say how results come back"),
        (ALL + "{% if tools[0].parameters == true %}{{ 1 < 'x' }}{% endif %}", "cannot be used: TypeError: "),
        (ALL + "{% if not parallel %}{{ 1 < 'x' }}{% endif %}", "cannot be used: TypeError: "),
    ],
)  # fmt: skip
def test_what_a_model_must_be_told_is_checked(source: str, words: str) -> None:
    message = refusal(source)
    assert message.startswith("The protocol template own.jinja ")
    assert words in message


def test_what_fails_later_is_told_as_the_templates_failure() -> None:
    template = ProtocolTemplate(ALL + "{% if tools[0].name == 'f' %}{{ 1 < 'x' }}{% endif %}", "own")
    with pytest.raises(ToolgraftError, match="protocol template own failed at the tools of this request: ") as caught:
        template.render([Tool("f")])
    assert (caught.value.status, caught.value.code) == (500, "template_failed")
    template.render([Tool("g")])


def test_tools_that_are_no_json_are_the_clients_error() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"items": deep}
    for schema in (deep, {"default": float("nan")}):
        with pytest.raises(ClientError, match="'odd'"):
            ProtocolTemplate(OWN).render([Tool("odd", parameters=schema)])


OWN_TEMPLATE = ProtocolTemplate(OWN)


def test_all_kinds_of_tools_are_written_and_the_same_again() -> None:
    text = OWN_TEMPLATE.render(CATALOGUE)
    assert all(f"### {tool.name}\n" in text for tool in CATALOGUE)
    assert text == ProtocolTemplate(OWN).render(CATALOGUE)


@given(st.lists(st.builds(Tool, name=risky_text, description=risky_text, parameters=json_values), max_size=2))
def test_any_tool_is_written_and_forges_nothing(tools: list[Tool]) -> None:
    assert markup_in(OWN_TEMPLATE.render(tools)) == markup_in(OWN_TEMPLATE.render([]))

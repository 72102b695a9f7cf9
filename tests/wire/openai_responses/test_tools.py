from __future__ import annotations

from typing import Any

import pytest

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, ToolChoice
from proxy.wire.openai_responses.builtins import BUILTINS
from proxy.wire.openai_responses.tools import ClientTool, Offer, read_offer, visible_name

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "name": "get_weather", "description": "Rain?", "parameters": SCHEMA, "strict": True}
PATCH = {"type": "custom", "name": "patch", "description": "Change files."}
CRM = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers and orders.",
    "tools": [{"type": "function", "name": "find", "parameters": SCHEMA}, {"type": "custom", "name": "note"}],
}


def offer(*tools: Any, choice: Any = None, found: tuple[Any, ...] = ()) -> Offer:
    return read_offer({"tools": list(tools), "tool_choice": choice}, found)


def names(offered: Offer) -> list[str]:
    return [tool.name for tool in offered.tools]


def test_a_flat_function() -> None:
    (tool,) = offer(WEATHER).tools
    assert (tool.name, tool.description, tool.parameters, tool.strict) == ("get_weather", "Rain?", SCHEMA, True)
    assert offer(WEATHER).known == {"get_weather": ClientTool("function", "get_weather")}


def test_lenient_shapes_of_a_function() -> None:
    wrapped = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
    assert names(offer(wrapped, {"name": "g"})) == ["f", "g"]


@pytest.mark.parametrize("body", [{}, {"tools": None, "tool_choice": None}, {"tools": []}])
def test_no_tools(body: dict[str, Any]) -> None:
    assert read_offer(body) == Offer()


def test_a_custom_tool_takes_free_text() -> None:
    (tool,) = offer(PATCH).tools
    assert tool.custom
    assert list(tool.parameters["properties"]) == ["input"]
    assert offer(PATCH).known["patch"].kind == "custom"


def test_a_grammar_is_described() -> None:
    form = {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"}
    (tool,) = offer(PATCH | {"format": form}).tools
    assert tool.description == "Change files.\n\nThe input must follow this lark grammar:\nstart: /a+/"
    (plain,) = offer(PATCH | {"format": {"type": "text"}}).tools
    assert plain.description == "Change files."


def test_a_namespace_is_its_tools_under_longer_names() -> None:
    offered = offer(WEATHER, CRM)
    assert names(offered) == ["get_weather", "crm__find", "crm__note"]
    assert offered.known["crm__find"] == ClientTool("function", "find", "crm")
    assert offered.known["crm__note"] == ClientTool("custom", "note", "crm")
    assert offered.notes == ("About the tools whose names begin with crm__: Customers and orders.",)


@pytest.mark.parametrize(
    ("namespace", "visible"),
    [
        ("crm", "crm__find"),
        ("mcp__files__", "mcp__files__find"),
        ("functions", "find"),
        ("", "find"),
        (None, "find"),
        (3, "find"),
    ],
)
def test_the_name_that_the_model_sees(namespace: Any, visible: str) -> None:
    assert visible_name("find", namespace) == visible


def test_the_default_namespace_is_kept_for_the_answer_but_not_shown() -> None:
    offered = offer({"type": "namespace", "name": "functions", "description": "Tools.", "tools": [WEATHER]})
    assert names(offered) == ["get_weather"]
    assert offered.known["get_weather"] == ClientTool("function", "get_weather", "functions")
    assert offered.notes == ()


@pytest.mark.parametrize("kind", ["web_search", "web_search_preview", "file_search", "code_interpreter", "mcp", "new"])
def test_hosted_tools_are_left_out_and_named(kind: str) -> None:
    hosted = {"type": kind, "name": "x"} if kind == "mcp" else {"type": kind}
    offered = offer(hosted, WEATHER, hosted)
    assert (names(offered), offered.dropped) == (["get_weather"], (kind,))
    with pytest.raises(ClientError, match=kind):
        offer(hosted, WEATHER, choice={"type": kind})
    with pytest.raises(ClientError, match="demands a call"):
        offer(hosted, choice="required")


@pytest.mark.parametrize("kind", ["computer", "computer_use_preview"])
def test_a_computer_is_refused_with_the_reason(kind: str) -> None:
    with pytest.raises(ClientError, match=kind) as caught:
        offer(WEATHER, {"type": kind})
    assert caught.value.param == "tools[1]"


@pytest.mark.parametrize("kind", ["local_shell", "shell", "apply_patch"])
def test_tools_that_the_client_runs_are_functions(kind: str) -> None:
    offered = offer({"type": kind})
    assert offered.tools == (BUILTINS[kind].tool,)
    assert offered.known == {kind: ClientTool(kind, kind)}
    assert offer({"type": kind}, choice={"type": kind}).choice == ToolChoice("named", kind)


def test_a_search_of_tools_is_the_clients_or_left_out() -> None:
    search = {"type": "tool_search", "execution": "client", "description": "Find.", "parameters": SCHEMA}
    (tool,) = offer(search).tools
    assert (tool.name, tool.description, tool.parameters) == ("tool_search", "Find.", SCHEMA)
    for hosted in ({}, {"execution": "server", "parameters": SCHEMA}):
        assert offer({"type": "tool_search", **hosted}).dropped == ("tool_search",)
    assert offer({"type": "shell", "environment": {"type": "container_auto"}}).dropped == ("shell",)
    assert offer({"type": "shell", "environment": {"type": "local"}}).dropped == ()


def test_tools_from_the_history_come_after_those_of_the_request() -> None:
    offered = offer(WEATHER, found=(CRM, "odd", {}, WEATHER | {"description": "old"}, CRM))
    assert names(offered) == ["get_weather", "crm__find", "crm__note"]
    assert offered.tools[0].description == "Rain?"
    assert offered.known["crm__find"].namespace == "crm"
    assert len(offered.notes) == 1


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ("x", "tools"),
        (["x"], "tools[0]"),
        ([WEATHER, {"type": "function"}], "tools[1]"),
        ([{"type": "function", "name": ""}], "tools[0]"),
        ([{"type": "namespace", "tools": []}], "tools[0]"),
        ([{"type": "namespace", "name": "n"}], "tools[0]"),
        ([{"type": "namespace", "name": "n", "tools": ["x"]}], "tools[0].tools[0]"),
        ([{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}], "tools[0].tools[0]"),
    ],
)
def test_what_is_no_tool_is_named(tools: Any, param: str) -> None:
    with pytest.raises(ClientError) as caught:
        read_offer({"tools": tools})
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, AUTO),
        ("auto", AUTO),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ({"type": "required"}, ToolChoice("required")),
        ({"type": "function", "name": "get_weather"}, ToolChoice("named", "get_weather")),
        ({"type": "function", "function": {"name": "get_weather"}}, ToolChoice("named", "get_weather")),
        ({"type": "custom", "name": "patch"}, ToolChoice("named", "patch")),
        ({"type": "custom", "custom": {"name": "patch"}}, ToolChoice("named", "patch")),
        ({"type": "function", "name": "find"}, ToolChoice("named", "crm__find")),
        ({"type": "function", "name": "find", "namespace": "crm"}, ToolChoice("named", "crm__find")),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "find"}, {"type": "mcp"}]},
            ToolChoice("auto", allowed=frozenset({"crm__find"})),
        ),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "namespace", "name": "crm"}, {"type": "web_search"}],
            },
            ToolChoice("required", allowed=frozenset({"crm__find", "crm__note"})),
        ),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "shell"}]},
            ToolChoice(allowed=frozenset({"shell"})),
        ),
    ],
)
def test_choices(choice: Any, expected: ToolChoice) -> None:
    assert offer(WEATHER, PATCH, CRM, {"type": "shell"}, {"type": "web_search"}, choice=choice).choice == expected


@pytest.mark.parametrize(
    "choice",
    [
        "sometimes",
        7,
        {"type": "function"},
        {"type": "function", "name": "nobody"},
        {"type": "function", "name": "find", "namespace": "other"},
        {"type": "web_search"},
        {"type": "mcp", "server_label": "x", "name": "get_weather"},
        {"type": "apply_patch"},
        {"type": "allowed_tools"},
        {"type": "allowed_tools", "tools": [{"type": "function"}]},
        {"type": "allowed_tools", "tools": [{"type": "function", "name": "nobody"}]},
        {"type": "allowed_tools", "mode": "required", "tools": []},
    ],
)
def test_choices_that_cannot_be_met(choice: Any) -> None:
    with pytest.raises(ClientError) as caught:
        offer(WEATHER, CRM, choice=choice)
    assert caught.value.param == "tool_choice"
    assert caught.value.status == 400

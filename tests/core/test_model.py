from __future__ import annotations

from typing import Any

import pytest

from proxy.core.collect import Reply
from proxy.core.events import (
    Event,
    Extra,
    Finish,
    Problem,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import (
    ImagePart,
    KeptTools,
    Message,
    OtherPart,
    Request,
    TextPart,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

TOOLS = (Tool("a"), Tool("b"), Tool("c"))


VALUES = [
    *(TextPart("a"), ImagePart("a"), OtherPart({}), ToolCall("1", "a"), ToolResult("1"), Tool("a"), ToolChoice()),
    *(Message("user"), Request(()), Reply()),
    *(TextDelta("a"), ReasoningDelta("a"), ToolCallStart(0, "1", "a"), ToolArgumentsDelta(0, "{}"), ToolCallEnd(0)),
    *(Refusal("a"), Usage(), Problem("cut", "a"), Extra({}), Finish("stop")),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen(value: Any) -> None:
    for name in type(value).__match_args__:
        with pytest.raises(AttributeError):
            setattr(value, name, getattr(value, name))
    assert not hasattr(value, "__dict__")
    assert repr(value).startswith(f"{type(value).__name__}(")


def test_values_of_two_kinds_are_never_equal() -> None:
    said: Event = TextDelta("a")
    thought: Event = ReasoningDelta("a")
    assert said == TextDelta("a")
    assert said != thought


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}},
        {"name": "f", "description": "d", "input_schema": {"type": "object"}},
        {"type": "custom", "name": "f", "description": "d", "input_schema": {"type": "object"}},
    ],
)
def test_a_tool_from_any_vendors_shape(raw: dict[str, object]) -> None:
    assert Tool.of(raw) == Tool("f", "d", {"type": "object"})


def test_a_tool_with_nothing_but_a_name() -> None:
    assert Tool.of({"type": "function", "function": {"name": "ping"}}) == Tool("ping")
    assert Tool.of(Tool("ping")) == Tool("ping")


def test_a_free_text_tool_has_one_argument() -> None:
    tool = Tool.of({"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}})
    assert tool.custom
    assert tool.parameters["required"] == ["input"]
    assert tool.extra == {"format": {"type": "text"}}


@pytest.mark.parametrize("raw", [{}, {"function": {}}, {"name": ""}, {"name": 5}])
def test_a_tool_needs_a_name(raw: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="name"):
        Tool.of(raw)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (ToolChoice(), "abc"),
        (ToolChoice("required"), "abc"),
        (ToolChoice("none"), ""),
        (ToolChoice("named", "b"), "b"),
        (ToolChoice("auto", allowed=frozenset("ca")), "ac"),
    ],
)
def test_what_may_be_called(choice: ToolChoice, names: str) -> None:
    request = Request((), tools=TOOLS, tool_choice=choice)
    assert "".join(tool.name for tool in request.offered) == names
    assert choice.forced is (choice.mode in ("required", "named"))


def test_text_and_tool_history() -> None:
    message = Message("user", (TextPart("a"), ImagePart("data:"), TextPart("b")))
    assert message.text == "ab"
    assert not Request((message,)).has_tool_history
    assert Request((Message("assistant", calls=(ToolCall("1", "f"),)),)).has_tool_history
    assert Request((Message("tool", results=(ToolResult("1"),)),)).has_tool_history


def test_kept_tools_are_keys_by_what_they_are_not_by_what_they_hold() -> None:
    tools, alike = (KeptTools((Tool("a", parameters={}),)) for _ in range(2))
    assert {tools: 1}.get(tools) == 1
    assert {tools: 1}.get(alike) is None
    assert tools != alike

import pytest

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, Json, Tool, ToolChoice
from proxy.wire.anthropic_messages.tools import read_offer

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"name": "weather", "description": "Look up.", "input_schema": SCHEMA}
CLOCK = {"type": "custom", "name": "clock", "input_schema": {"type": "object"}}
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}


def test_tools_in_their_order() -> None:
    offer = read_offer({"tools": [WEATHER, CLOCK, {"name": "bare"}]})
    assert offer.tools == (
        Tool("weather", "Look up.", SCHEMA),
        Tool("clock", "", {"type": "object"}),
        Tool("bare"),
    )
    assert not any(tool.custom for tool in offer.tools)
    assert (offer.choice, offer.parallel, offer.dropped) == (AUTO, True, ())


@pytest.mark.parametrize("body", [{}, {"tools": None}, {"tools": [], "tool_choice": {"type": "auto"}}])
def test_no_tools(body: dict[str, Json]) -> None:
    assert read_offer(body).tools == ()


def test_what_else_a_tool_says() -> None:
    (tool,) = read_offer(
        {
            "tools": [
                {
                    **WEATHER,
                    "cache_control": {"type": "ephemeral"},
                    "defer_loading": True,
                    "strict": True,
                    "input_examples": [{"city": "Oslo"}],
                }
            ]
        }
    ).tools
    assert tool.strict is True
    assert tool.extra == {"defer_loading": True, "input_examples": [{"city": "Oslo"}]}


def test_hosted_tools_are_left_out_and_reported_once() -> None:
    hosted = [SEARCH, SEARCH, {"type": "code_execution_20250825", "name": "code_execution"}]
    offer = read_offer({"tools": [*hosted, WEATHER]})
    assert [tool.name for tool in offer.tools] == ["weather"]
    assert offer.dropped == ("web_search_20250305", "code_execution_20250825")


def test_a_choice_of_a_hosted_tool_cannot_be_served() -> None:
    with pytest.raises(ClientError, match="'web_search_20250305'") as caught:
        read_offer({"tools": [SEARCH, WEATHER], "tool_choice": {"type": "tool", "name": "web_search"}})
    assert caught.value.param == "tool_choice"


def test_a_tool_of_the_clients_own_may_bear_the_same_name() -> None:
    own = {"name": "web_search", "input_schema": SCHEMA}
    offer = read_offer({"tools": [SEARCH, own], "tool_choice": {"type": "tool", "name": "web_search"}})
    assert [tool.name for tool in offer.tools] == ["web_search"]


@pytest.mark.parametrize(
    "kind",
    [
        "bash_20250124",
        "text_editor_20250728",
        "computer_20250124",
        "computer_toolset_20260801",
        "memory_20250818",
        "browser_toolset_20260801",
    ],
)
def test_tools_whose_schema_only_anthropics_models_know_are_refused_by_name(kind: str) -> None:
    with pytest.raises(ClientError, match=kind) as caught:
        read_offer({"tools": [WEATHER, {"type": kind, "name": "x"}]})
    assert caught.value.param == "tools[1]"


def test_a_tool_in_the_shape_of_openai_is_refused_rather_than_left_out() -> None:
    openai = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    with pytest.raises(ClientError, match="as OpenAI's APIs have it") as caught:
        read_offer({"tools": [WEATHER, openai]})
    assert caught.value.param == "tools[1]"


def test_such_a_tool_with_a_schema_is_one_like_the_others() -> None:
    offer = read_offer({"tools": [{"type": "bash_20250124", "name": "bash", "input_schema": SCHEMA}]})
    assert offer.tools == (Tool("bash", "", SCHEMA),)


@pytest.mark.parametrize(
    ("raw", "choice", "parallel"),
    [
        (None, AUTO, True),
        ({"type": "auto"}, AUTO, True),
        ({"type": "auto", "disable_parallel_tool_use": True}, AUTO, False),
        ({"type": "any"}, ToolChoice("required"), True),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        ({"type": "none"}, ToolChoice("none"), True),
        ({"type": "tool", "name": "weather", "disable_parallel_tool_use": False}, ToolChoice("named", "weather"), True),
        ("any", ToolChoice("required"), True),
    ],
)
def test_choices(raw: Json, choice: ToolChoice, parallel: bool) -> None:
    offer = read_offer({"tools": [WEATHER], "tool_choice": raw})
    assert (offer.choice, offer.parallel) == (choice, parallel)


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"tools": {}}, "tools", "a list"),
        ({"tools": ["weather"]}, "tools[0]", "an object"),
        ({"tools": [{"input_schema": {}}]}, "tools[0]", "no name"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool"}}, "tool_choice", "`type` is"),
        ({"tools": [WEATHER], "tool_choice": 3}, "tool_choice", "`type` is"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice", "offers only 'weather'"),
        ({"tools": [SEARCH], "tool_choice": {"type": "any"}}, "tool_choice", "no tool that could be called"),
    ],
)
def test_mistakes_are_named(body: dict[str, Json], param: str, says: str) -> None:
    with pytest.raises(ClientError, match=says) as caught:
        read_offer(body)
    assert caught.value.param == param


def test_messages_may_add_tools_and_take_them_away() -> None:
    def change(kind: str, tool: Json) -> Json:
        return {"role": "system", "content": [{"type": kind, "tool": tool}]}

    added = change("tool_addition", {"type": "tool_definition", "definition": CLOCK})
    known = change("tool_addition", {"type": "tool_reference", "name": "weather"})
    removed = change("tool_removal", {"type": "tool_reference", "name": "weather"})
    user = {"role": "user", "content": "hi"}
    offer = read_offer({"tools": [WEATHER], "messages": [user, added, known, removed]})
    assert [tool.name for tool in offer.tools] == ["clock"]
    with pytest.raises(ClientError, match="no name") as caught:
        read_offer({"messages": [change("tool_addition", {"type": "tool_definition", "definition": {}})]})
    assert caught.value.param == "messages[0].content[0].tool.definition"

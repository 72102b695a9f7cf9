import pytest

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, Json, KeptTools, Tool, ToolChoice
from proxy.wire.openai_chat.tools import read_offer

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Look up.", "parameters": SCHEMA}}
CLOCK = {"type": "function", "function": {"name": "clock"}}
SHELL = {"type": "custom", "custom": {"name": "shell", "description": "Run a command."}}
TOOLS = [WEATHER, CLOCK, SHELL]


def test_tools_in_their_order() -> None:
    offer = read_offer({"tools": TOOLS})
    assert [tool.name for tool in offer.tools] == ["weather", "clock", "shell"]
    assert offer.tools[0] == Tool("weather", "Look up.", SCHEMA)
    assert offer.tools[1] == Tool("clock")
    assert offer.tools[2].custom
    assert offer.tools[2].parameters["required"] == ["input"]
    assert (offer.choice, offer.legacy, offer.dropped) == (AUTO, False, ())


@pytest.mark.parametrize("body", [{}, {"tools": None}, {"tools": []}, {"tools": [], "tool_choice": "auto"}])
def test_no_tools(body: dict[str, Json]) -> None:
    assert read_offer(body).tools == ()


@pytest.mark.parametrize(
    "tool",
    [
        {"function": {"name": "t", "parameters": SCHEMA}},
        {"name": "t", "parameters": SCHEMA},
        {"type": "function", "name": "t", "parameters": SCHEMA, "strict": None},
        {"name": "t", "input_schema": SCHEMA},
        {"type": "client", "function": {"name": "t", "parameters": SCHEMA}},
        {"type": "function", "function": {"name": "t", "description": None, "parameters": SCHEMA}},
    ],
)
def test_shapes_of_other_clients(tool: Json) -> None:
    assert read_offer({"tools": [tool]}).tools == (Tool("t", "", SCHEMA),)


def test_a_schema_that_is_none_is_kept_for_the_prompt() -> None:
    tool = {"type": "function", "function": {"name": "t", "parameters": {"type": "str", "required": True}}}
    assert read_offer({"tools": [tool]}).tools[0].parameters == {"type": "str", "required": True}


def test_the_later_of_two_tools_with_one_name_counts() -> None:
    later = {"type": "function", "function": {"name": "clock", "description": "New."}}
    assert read_offer({"tools": [CLOCK, WEATHER, later]}).tools == (
        Tool("clock", "New."),
        Tool("weather", "Look up.", SCHEMA),
    )


def test_a_tool_that_only_its_vendors_models_can_call_is_refused_unless_it_has_a_schema() -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    with pytest.raises(ClientError, match="bash_20250124") as caught:
        read_offer({"tools": [CLOCK, bash]})
    assert caught.value.param == "tools[1]"
    assert read_offer({"tools": [bash | {"parameters": SCHEMA}]}).tools == (Tool("bash", "", SCHEMA),)


def test_hosted_tools_are_left_out_and_reported_once() -> None:
    hosted = [{"type": "web_search"}, {"type": "web_search", "name": "web_search"}, {"type": "code_interpreter"}]
    offer = read_offer({"tools": [*hosted, CLOCK]})
    assert [tool.name for tool in offer.tools] == ["clock"]
    assert offer.dropped == ("web_search", "code_interpreter")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, AUTO),
        ("auto", AUTO),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ("any", ToolChoice("required")),
        ({"type": "auto"}, AUTO),
        ({"type": "any"}, ToolChoice("required")),
        ({"type": "function", "function": {"name": "clock"}}, ToolChoice("named", "clock")),
        ({"type": "function", "name": "clock"}, ToolChoice("named", "clock")),
        ({"type": "tool", "name": "clock"}, ToolChoice("named", "clock")),
        ({"type": "custom", "custom": {"name": "shell"}}, ToolChoice("named", "shell")),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [CLOCK, {"type": "web_search"}]}},
            ToolChoice("required", allowed=frozenset({"clock"})),
        ),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}, SHELL]},
            ToolChoice(allowed=frozenset({"weather", "shell"})),
        ),
    ],
)
def test_choices(choice: Json, expected: ToolChoice) -> None:
    assert read_offer({"tools": [*TOOLS, {"type": "web_search"}], "tool_choice": choice}).choice == expected


@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_a_choice_without_tools_that_asks_for_nothing(choice: Json) -> None:
    assert read_offer({"tool_choice": choice}).tools == ()


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"tools": "x"}, "tools", "must be a list"),
        ({"tools": {"name": "x"}}, "tools", "must be a list"),
        ({"functions": {"name": "x"}}, "functions", "must be a list"),
        ({"tools": [WEATHER, "clock"]}, "tools[1]", "must be an object"),
        ({"tools": [{"type": "function"}]}, "tools[0]", "has no name"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0]", "has no name"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0]", "has no name"),
        ({"functions": [{"description": "x"}]}, "functions[0]", "has no name"),
        ({"tools": TOOLS, "tool_choice": "banana"}, "tool_choice", "must be 'auto'"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice", "must be 'auto'"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice", "must be 'auto'"),
        ({"tools": TOOLS, "tool_choice": {"type": "web_search"}}, "tool_choice", "'web_search'"),
        (
            {"tools": TOOLS, "tool_choice": {"name": "nope"}},
            "tool_choice",
            "'nope', but the request offers only 'weather'",
        ),
        ({"tool_choice": {"name": "nope"}}, "tool_choice", "'nope', but the request offers no tools"),
        ({"tool_choice": "required"}, "tool_choice", "offers no tool"),
        ({"tools": [{"type": "web_search"}], "tool_choice": "required"}, "tool_choice", "offers no tool"),
        ({"functions": [{"name": "a"}], "function_call": {"name": "b"}}, "function_call", "'b'"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}},
            "tool_choice",
            "offers no tool",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "x"}]}},
            "tool_choice",
            "'x'",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{}]}},
            "tool_choice",
            "without a name",
        ),
    ],
)
def test_what_the_client_can_mend(body: dict[str, Json], param: str, words: str) -> None:
    with pytest.raises(ClientError) as caught:
        read_offer(body)
    assert (caught.value.status, caught.value.type, caught.value.param) == (400, "invalid_request_error", param)
    assert words in caught.value.message


def test_a_long_list_of_names_is_broken_off() -> None:
    tools = [{"type": "function", "function": {"name": f"tool_{number:02}"}} for number in range(25)]
    with pytest.raises(ClientError, match="'tool_19' and 5 more"):
        read_offer({"tools": tools, "tool_choice": {"name": "nope"}})


def test_functions_of_old_clients() -> None:
    offer = read_offer({"functions": [{"name": "clock"}, {"name": "x"}], "function_call": {"name": "clock"}})
    assert [tool.name for tool in offer.tools] == ["clock", "x"]
    assert (offer.choice, offer.legacy) == (ToolChoice("named", "clock"), True)


def test_tools_win_over_functions() -> None:
    offer = read_offer({"tools": [CLOCK], "functions": [{"name": "x"}], "function_call": {"name": "x"}})
    assert ([tool.name for tool in offer.tools], offer.choice, offer.legacy) == (["clock"], AUTO, False)


def test_the_same_tools_are_read_once() -> None:
    copy = [{**tool} for tool in TOOLS]
    assert read_offer({"tools": TOOLS}).tools is read_offer({"tools": copy, "tool_choice": "none"}).tools
    other = [{**CLOCK, "function": {"name": "clock", "format": "short"}}]
    assert read_offer({"tools": other}).tools[0].extra != read_offer({"tools": [CLOCK]}).tools[0].extra
    large = [{"type": "function", "function": {"name": "f", "description": "long" * 40_000}}]
    assert read_offer({"tools": large}).tools is not read_offer({"tools": large}).tools
    assert isinstance(read_offer({"tools": TOOLS}).tools, KeptTools)
    assert not isinstance(read_offer({"tools": large}).tools, KeptTools)


def test_what_cannot_be_written_is_still_read() -> None:
    nested: Json = {}
    for _ in range(3000):
        nested = {"items": nested}
    assert read_offer({"tools": [{"name": "deep", "parameters": nested}]}).tools[0].name == "deep"

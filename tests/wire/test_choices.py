import pytest

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, Tool, ToolChoice
from proxy.wire.choices import NAMES_SHOWN, check_choice, refuse_client_side

TOOLS = {name: Tool(name) for name in ("clock", "weather")}


@pytest.mark.parametrize(
    "choice",
    [
        AUTO,
        ToolChoice("none"),
        ToolChoice("required"),
        ToolChoice("named", "clock"),
        ToolChoice(allowed=frozenset({"weather"})),
    ],
)
def test_what_can_be_done(choice: ToolChoice) -> None:
    check_choice(choice, TOOLS, "tool_choice")


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        (ToolChoice("named", "clok"), r"names 'clok', but the request offers only 'clock', 'weather'"),
        (ToolChoice(allowed=frozenset({"a", "clock"})), "names 'a'"),
        (ToolChoice("required", allowed=frozenset()), "no tool that could be called"),
    ],
)
def test_what_cannot(choice: ToolChoice, says: str) -> None:
    with pytest.raises(ClientError, match=says) as caught:
        check_choice(choice, TOOLS, "tool_choice")
    assert caught.value.param == "tool_choice"


def test_a_demand_without_tools() -> None:
    with pytest.raises(ClientError, match="no tool that could be called"):
        check_choice(ToolChoice("required"), {}, "tool_choice")
    with pytest.raises(ClientError, match="offers no tools"):
        check_choice(ToolChoice("named", "a"), {}, "tool_choice")


def test_a_long_list_is_cut() -> None:
    many = {f"t{number:03}": Tool(f"t{number:03}") for number in range(NAMES_SHOWN + 5)}
    with pytest.raises(ClientError, match="and 5 more"):
        check_choice(ToolChoice("named", "a"), many, "tool_choice")


@pytest.mark.parametrize(
    "kind", ["bash_20250124", "text_editor_20250728", "computer_use_preview", "computer", "memory_20250818"]
)
def test_a_tool_that_the_client_runs_by_its_type_is_refused_by_name(kind: str) -> None:
    with pytest.raises(ClientError, match=f"`tools.0.` is of the type '{kind}'.*`parameters`") as caught:
        refuse_client_side(kind, "tools[0]", "parameters")
    assert (caught.value.status, caught.value.param) == (400, "tools[0]")


@pytest.mark.parametrize("kind", ["web_search", "web_search_20250305", "code_interpreter", "mcp", "bash"])
def test_other_types_are_not(kind: str) -> None:
    refuse_client_side(kind, "tools[0]", "parameters")

from __future__ import annotations

from proxy.core.bodies.base import RawCall, Value
from proxy.core.calls import Resolved, ToolSet, compiled
from proxy.core.model import Tool
from tests.support.reading import tool

TOOLS = ToolSet((tool("get_weather", "city", city="string", days="integer"), Tool("odd", parameters={"type": "str"})))


def kinds(call: Resolved) -> list[str]:
    return [problem.kind for problem in call.problems]


def test_a_good_call_passes_as_written() -> None:
    call = TOOLS.resolve(RawCall("get_weather", '{"city" : "Oslo"}'), 3)
    assert call == Resolved("get_weather", '{"city" : "Oslo"}', (), declared=True, valid=True)


def test_names_types_and_faults_are_said_with_the_calls_index() -> None:
    call = TOOLS.resolve(RawCall("Get-Weather", '{"days": "3"}', ("a comma",)), 3)
    assert (call.name, call.arguments, call.valid) == ("get_weather", '{"days": 3}', False)
    assert sorted(kinds(call)) == ["coerced", "invalid_arguments", "renamed", "repaired"]
    assert {problem.call for problem in call.problems} == {3}


def test_raw_values_are_typed_by_the_schema() -> None:
    call = TOOLS.resolve(RawCall("get_weather", (Value("city", "12"), Value("days", "3"))), 0)
    assert call.arguments == '{"city": "12", "days": 3}'


def test_a_value_that_the_model_calls_a_string_is_one() -> None:
    raw = RawCall("f", (Value("a", "007", string=True), Value("b", "7", string=False), Value("c", "x")))
    assert ToolSet(()).resolve(raw, 0).arguments == '{"a": "007", "b": 7, "c": "x"}'


def test_an_unknown_name_passes_with_the_names_there_are() -> None:
    call = TOOLS.resolve(RawCall("teleport", "{}"), 0)
    assert (call.name, call.declared) == ("teleport", False)
    assert kinds(call) == ["unknown_tool"]
    assert "get_weather" in call.problems[0].message


def test_of_very_many_tools_a_few_are_named() -> None:
    tools = ToolSet([Tool(f"tool_{number:04}") for number in range(1000)])
    (problem,) = tools.resolve(RawCall("teleport", "{}"), 0).problems
    assert problem.message.endswith("tool_0048, tool_0049 and 950 more.")


def test_without_tools_no_name_is_unknown() -> None:
    assert ToolSet(()).resolve(RawCall("anything", "{}"), 0).problems == ()


def test_a_schema_that_does_not_compile_serves_without_validation() -> None:
    call = TOOLS.resolve(RawCall("odd", '{"a": 1}'), 0)
    assert call.valid
    assert kinds(call) == ["schema"]


def test_schemas_are_compiled_once_for_all_requests() -> None:
    again = ToolSet((tool("get_weather", "city", city="string", days="integer"),))
    assert again.schema("get_weather") is TOOLS.schema("get_weather")
    assert TOOLS.schema("nothing") is None


def test_what_is_too_large_or_no_json_is_not_kept() -> None:
    large = {"description": "x" * 100_000}
    assert compiled(large) is not compiled(large)
    odd = {"default": object()}
    assert compiled(odd).coerce("{}")[0] == "{}"

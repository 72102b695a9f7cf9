from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.names import Names


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("Read", ["read", "Read"], "Read"),
        ("READ", ["read", "Read"], None),
        ("Get_Weather", ["get_weather", "get_time"], "get_weather"),
        ("get-weather", ["get_weather"], "get_weather"),
        ("get_weather", ["Get-Weather"], "Get-Weather"),
        (" get_weather\n", ["get_weather"], "get_weather"),
        ("functions.get_weather", ["get_weather"], "get_weather"),
        ("Functions.Get-Weather", ["get_weather"], "get_weather"),
        ("mcp__geo__get_weather", ["get_weather"], "get_weather"),
        ("geo/get_weather", ["get_weather"], "get_weather"),
        ("search", ["mcp__a__search", "mcp__a__fetch"], "mcp__a__search"),
        ("search", ["mcp__a__search", "mcp__b__search"], None),
        ("a.search", ["search", "A.Search"], "A.Search"),
        ("mcp__b__search", ["mcp__a__search"], None),
        ("a.search", ["a__search", "b__search"], "a__search"),
        ("functions.a.search", ["a__search", "b__search"], "a__search"),
        ("a/search", ["a__search", "a:search"], None),
        ("search", ["web_search"], None),
        ("web_search", ["search"], None),
        ("get_wether", ["get_weather"], None),
        ("getWeather", ["get_weather"], None),
        ("", ["get_weather"], None),
        (".", ["get_weather", ""], None),
        ("get_weather", [], None),
    ],
)
def test_match(name: str, declared: list[str], expected: str | None) -> None:
    assert Names(declared).match(name) == expected


@given(st.text(), st.lists(st.text()))
def test_a_match_is_declared_and_an_exact_one_wins(name: str, declared: list[str]) -> None:
    found = Names(declared).match(name)
    assert found is None or found in declared
    assert name not in declared or found == name

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.jsontext import Number, dumps, loads, members, scan

any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates too
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
NUMBERS = ["0", "-0", "4611686018427387905", "1e5", "1E+400", "-0.10", "1.0", "7" * 5_000, "0." + "3" * 5_000]


@pytest.mark.parametrize("written", NUMBERS)
def test_a_number_stays_as_written(written: str) -> None:
    text = f'{{"n": {written}, "list": [{written}]}}'
    assert loads(text) == {"n": Number(written), "list": [Number(written)]}
    assert isinstance(loads(text)["n"], Number)
    assert dumps(loads(text)) == text


def test_a_number_that_python_keeps_as_a_decimal_is_written_as_it_was() -> None:
    assert dumps([Decimal("-" + "7" * 5_000)]) == "[-" + "7" * 5_000 + "]"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", '{"a": 1,}', "[1,]", "{'a': 1}", "NaN", "[Infinity]", "-Infinity", "01", "1.", ".5", "+1", "- 1",
        "True", "nul", '"a\nb"', '"\\x"', '"\\ud"', '"open', "1 2", '{"a" 1}', "\ufeff{}", "\xa0{}", "[" * 100_000,
        '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000,
    ],
)  # fmt: skip
def test_what_is_not_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(text)
    with pytest.raises(ValueError, match=r"."):
        members(text)


def test_depth() -> None:
    text = '{"a": [' * 100 + "1" + "]}" * 100
    assert dumps(loads(text)) == text
    deep: object = []
    for _ in range(100_000):
        deep = [deep]
    assert dumps(deep) == "[" * 100_001 + "]" * 100_001


def test_the_last_of_duplicate_keys_counts() -> None:
    assert loads('{"a": 1, "a": 2}') == {"a": Number("2")}


def test_scan_stops_at_the_end_of_the_value() -> None:
    assert scan('x {"a": "}"} {"b"', 2) == ({"a": "}"}, 12)
    with pytest.raises(ValueError, match=r"."):
        scan(" 1")
    with pytest.raises(ValueError, match="nested too deeply"):
        scan("[" * 100_000)


def test_members_are_found_with_their_places() -> None:
    text = 'x{ "a" : 1e5 , "a":\n["}"],"\\u0062":{"c":"\\""} } rest'
    found, end = members(text, 1)
    assert [(member.key, member.value) for member in found] == [
        ("a", Number("1e5")), ("a", ["}"]), ("b", {"c": '"'}),
    ]  # fmt: skip
    assert [text[member.value_start : member.value_end] for member in found] == ["1e5", '["}"]', '{"c":"\\""}']
    assert text[end:] == " rest"
    assert members("{ }") == ([], 3)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a"}', '{"a":}', '{"a":1', '{"a":1,}', "{1:2}", '{"a":1 "b":2}', '{"a":NaN}', '{"a":1;}']
)
def test_members_of_something_else(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        members(text)


def test_lone_surrogates_are_escaped() -> None:
    assert dumps({"\ud83c": ["x\udf78", "🍸"]}) == '{"\\ud83c": ["x\\udf78", "🍸"]}'
    assert loads('"\\ud83c"') == "\ud83c"


def test_values_that_json_cannot_say() -> None:
    for value in (float("nan"), float("inf"), {1}, [b"x"]):
        with pytest.raises(ValueError, match=r"."):
            dumps(value)


@given(json_values)
def test_round_trip(value: object) -> None:
    text = dumps(value)
    text.encode()
    assert dumps(loads(text)) == text
    if "\\u" not in text:  # two lone halves side by side read back as one character
        assert json.loads(text) == value


@given(st.dictionaries(any_text, json_values, max_size=4), st.sampled_from(["", " ", "\n\t"]))
def test_members_agree_with_loads(value: dict[str, object], space: str) -> None:
    text = space + dumps(value) + space
    found, end = members(text, len(space))
    assert end == len(text) - len(space)
    assert {member.key: member.value for member in found} == loads(text)
    for member in found:
        assert loads(text[member.value_start : member.value_end]) == member.value


@given(any_text)
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    for read in (loads, scan, members):
        try:
            read(text)
        except ValueError:
            continue

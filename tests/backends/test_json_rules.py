"""JSON values as rules: what they make is JSON, bounds hold exactly, and nothing is without end."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.backends import gbnf, json_rules
from tests.support.gbnf import Grammar

WHOLE = st.integers(-(10**18), 10**18) | st.integers(-200, 200)
DECIMAL = st.decimals(-1000, 1000, places=3)


def grammar(expression: str) -> Grammar:
    return Grammar(gbnf.write({"root": expression}, json_rules.RULES))


@pytest.mark.parametrize("name", ["string", "key", "integer", "number", "boolean", "null", "scalar", "json", "object"])
def test_what_a_rule_makes_is_json(name: str) -> None:
    written = grammar(name)
    for seed in range(50):
        json.loads(written.sample(random.Random(seed)))


def test_white_space_is_as_in_the_prompt() -> None:
    written = grammar("object")
    assert written.matches('{"a": [1, {"b": null}], "c": true}')
    for text in ['{"a":1}', '{"a": 1,"b": 2}', '{ "a": 1}', '{"a": 1 }', '{"a": [1,2]}', '{"a": 1}\n']:
        assert not written.matches(text), text


def test_a_string_may_hold_anything_but_raw_control_characters() -> None:
    written = grammar("string")
    for text in ["", "a", "é中😀", "</tool_call>", '\\"', "\\\\", "\\n", "\\u00e9", "\\u001b", "\\uD7ff", "\\uE000"]:
        assert written.matches(f'"{text}"'), text
    for text in ["\n", "\t", "\x00", "\x7f", '"', "\\", "\\x41", "\\u12", "\\ud83d", "\\uDE00", "\\/"]:
        assert not written.matches(f'"{text}"'), text


def test_nothing_is_longer_than_its_bound() -> None:
    assert grammar("string").matches(f'"{"é" * json_rules.LONGEST_STRING}"')
    assert not grammar("string").matches(f'"{"é" * (json_rules.LONGEST_STRING + 1)}"')
    members = [f'"k{n}": 1' for n in range(json_rules.LONGEST_LIST + 1)]
    assert grammar("object").matches(f"{{{', '.join(members[:-1])}}}")
    assert not grammar("object").matches(f"{{{', '.join(members)}}}")
    assert grammar("json").matches('[{"a": [1]}]') is False
    assert grammar("json").matches('[{"a": 1}, [1, "x"], null]')


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("0", True),
        ("-7", True),
        ("123456789012345678", True),
        ("01", False),
        ("1.0", False),
        ("-", False),
        ("+1", False),
    ],
)
def test_an_integer_is_written_as_json_has_it(text: str, fits: bool) -> None:
    assert grammar("integer").matches(text) is fits


@pytest.mark.parametrize(
    ("text", "fits"), [("0.5", True), ("-1e9", True), ("2E-07", True), (".5", False), ("1.", False), ("1e", False)]
)
def test_a_number_is_written_as_json_has_it(text: str, fits: bool) -> None:
    assert grammar("number").matches(text) is fits


@given(WHOLE, WHOLE, st.integers(-3, 3), st.booleans(), st.booleans())
def test_integer_bounds_hold_exactly(one: int, other: int, off: int, open_low: bool, open_high: bool) -> None:
    low, high = sorted((one, other))
    expression = json_rules.between(Decimal(low), Decimal(high), open_low=open_low, open_high=open_high)
    written = grammar(expression) if expression else None
    digits = json_rules.INTEGER_DIGITS
    for value in {low + off, high + off, (low + high) // 2 + off}:
        inside = low + open_low <= value <= high - open_high and abs(value) < 10**digits
        assert (written is not None and written.matches(str(value))) == inside


@given(DECIMAL, DECIMAL, DECIMAL, st.booleans(), st.booleans())
@example(Decimal("0.000"), Decimal("-0.001"), Decimal(1), False, False)
def test_decimal_bounds_hold_exactly(
    one: Decimal, other: Decimal, value: Decimal, open_low: bool, open_high: bool
) -> None:
    low, high = sorted((one, other))
    expression = json_rules.between(low, high, open_low=open_low, open_high=open_high, decimals=3)
    written = grammar(expression) if expression else None
    for candidate in (value, low, high, (low + high) / 2, Decimal(round(value))):
        text = f"{candidate.quantize(Decimal('0.001')):f}".rstrip("0").rstrip(".")
        text = "0" if text == "-0" else text  # what rounds to nothing is written without a sign
        candidate = Decimal(text)
        inside = (low < candidate or (candidate == low and not open_low)) and (
            candidate < high or (candidate == high and not open_high)
        )
        assert (written is not None and written.matches(text)) == inside, text


@pytest.mark.parametrize("bound", ["1e999999999", "1e-999999999", "0.1000000000000000055511151231257827", "-1e18"])
def test_a_strange_bound_is_no_trouble(bound: str) -> None:
    for low, high in ((Decimal(bound), None), (None, Decimal(bound))):
        expression = json_rules.between(low, high, decimals=json_rules.DECIMALS)
        if expression is None:
            continue
        assert len(expression) < 10_000
        for seed in range(20):
            value = Decimal(grammar(expression).sample(random.Random(seed)))
            assert low is None or value >= low
            assert high is None or value <= high


def test_a_range_without_numbers_is_none() -> None:
    assert json_rules.between(Decimal("0.1"), Decimal("0.9")) is None
    assert json_rules.between(Decimal(10**19), None) is None
    assert json_rules.between(None, Decimal(-(10**19))) is None


@given(
    st.lists(st.text("abc_", max_size=5), max_size=6),
    st.text("abc_", min_size=1, max_size=6),
)
def test_another_key_is_never_one_that_is_named(names: list[str], key: str) -> None:
    written = grammar(json_rules.other_key(names))
    told_apart = all(key[:3] != name[:3] or min(len(key), len(name)) < 3 for name in names)
    assert written.matches(f'"{key}"') == (key not in names and told_apart)


def test_another_key_is_not_empty_and_holds_no_escapes() -> None:
    written = grammar(json_rules.other_key(["id"]))
    assert written.matches('"ide"')
    for key in ["", "id", "i\\u0064", 'a\\"b']:
        assert not written.matches(f'"{key}"')


@pytest.mark.parametrize("name", json_rules.FORMATS)
def test_a_format_is_kept(name: str) -> None:
    reads = {
        "date": date.fromisoformat,
        "time": time.fromisoformat,
        "date-time": datetime.fromisoformat,
        "uuid": UUID,
    }
    written = grammar(json_rules.FORMATS[name])
    for seed in range(100):
        text = json.loads(written.sample(random.Random(seed)))
        if "02-29" not in text:
            reads[name](text)


@pytest.mark.parametrize(
    ("name", "text", "fits"),
    [
        ("date", "2026-11-30", True),
        ("date", "2026-11-31", False),
        ("date", "2026-13-01", False),
        ("date", "2026-02-30", False),
        ("date", "26-01-01", False),
        ("time", "23:59:59Z", True),
        ("time", "23:59:59.123+02:00", True),
        ("time", "24:00:00Z", False),
        ("time", "23:59:59", False),
        ("date-time", "2026-11-30T08:00:00Z", True),
        ("date-time", "2026-11-30", False),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", True),
        ("uuid", "123e4567e89b12d3a456426614174000", False),
    ],
)
def test_formats(name: str, text: str, fits: bool) -> None:
    assert grammar(json_rules.FORMATS[name]).matches(f'"{text}"') is fits

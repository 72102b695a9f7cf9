from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proxy.core.arguments.jsontext import dumps, loads
from proxy.core.arguments.repair import repair

# Words that look like structure, so that strings are mistaken for it if they can be.
strings = st.lists(st.sampled_from([*"\"',:{}[] \n\tab1", "\\", "\\d", "say ", '": "', '", "', "//", "print("])).map(
    "".join
)
values = st.recursive(
    strings | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), values, min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": "al\nbe\tx\x01"}', {"a": "al\nbe\tx\x01"}, 1),
        ('{"a": 1, "b": [2, 3,], }', {"a": 1, "b": [2, 3]}, 1),
        ("{'a': 'say \"hi\"', \"b\": 'it\\'s'}", {"a": 'say "hi"', "b": "it's"}, 1),
        ('{"a": True, "b": False, "c": None, "d": undefined}', {"a": True, "b": False, "c": None, "d": None}, 1),
        (r'{"a": "grep -E \'\d+\.\d+\' f"}'.replace(r"\'", "'"), {"a": r"grep -E '\d+\.\d+' f"}, 1),
        ('{"a": {"b": [1, 2', {"a": {"b": [1, 2]}}, 1),
        ('{"a": [1, 2}', {"a": [1, 2]}, 1),
        ('{"a": "x"}}]', {"a": "x"}, 1),
        ('```json\n{"a": 1}\n```', {"a": 1}, 1),
        ("```\n{'a': 1}", {"a": 1}, 2),
        ('{"c":"print("hi")"}', {"c": 'print("hi")'}, 1),
        ('{"p":"a.py","c":"print("hi")"}', {"p": "a.py", "c": 'print("hi")'}, 1),
        ('{"c":"{"name":"foo"}"}', {"c": '{"name":"foo"}'}, 1),
        ('{"a":["say "hi" now"],"b":1}', {"a": ['say "hi" now'], "b": 1}, 1),
        (r'{"a":{\"query\": \"tides\", \"n\": 1}}', {"a": {"query": "tides", "n": 1}}, 1),
        (r"{\"a\": \"x\ny\"}", {"a": "x\ny"}, 1),
        ("{a: 1, $b_2: {c: 2}}", {"a": 1, "$b_2": {"c": 2}}, 1),
        ('{"a": 1, // one\n /* two */ "b": 2}', {"a": 1, "b": 2}, 1),
        ('{n:1// "closer"\n}', {"n": 1}, 2),
        ("{'tool': 'f', 'on': True,}", {"tool": "f", "on": True}, 3),
        ("True", True, 1),
        ("['a', None]", ["a", None], 2),
    ],
)
def test_one_reading(text: str, value: object, repairs: int) -> None:
    repaired = repair(text)
    assert repaired is not None
    assert [json.loads(part) for part in repaired.texts] == [value]
    assert len(repaired.repairs) == repairs


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "hello", "{", "[", "{}x", '{"a"', '{"a":', '{"a":}', '{"a": 1,', '{"a": hello}', '{"a" 1}',
        '{"a": 1 "b": 2}', '{,"a": 1}', '{"a": 1,,}', '{"a": NaN}', '{"a": -Infinity}', '{"a": 01}', '{"a": .5}',
        '{"a": 1_000}', '{"a": 0x10}', '{"a": (1, 2)}', '{"a": r"x"}', '{"a": "x" + "y"}', '{"a": "x" "y"}',
        '{"a": """x"""}', '{"a": `x`}', '{"a": "open}', '{"a: "x"}', '{a b: 1}', '{a-b: 1}', '{1: 2}',
        '{__proto__: {"a": 1}}', '{"a": "x", b: 1}', '{"a": [1}, "b": 2}', '{"a": 1]}', '{"a": 1}} {"b": 2}',
        '{"a": "x "y" z"}}', '{"a": ["x "y" z"}', '{"c":"print("hi")","p":"a.py"}', '{"a": ["x", "y "z" w"]}',
        '{"a": "say "hi}', '{"a": "hi""}', '{"a": "x, "b": "y"}', r'{"a": "C:\docs", "b": "C:\new"}',
        r'{"a": "\d\n"}', r'{"a": {\"q\": \"say \\\"hi\\\"\"}}', r'{\"a\": \"b}', '{"a": "b", // c",\n "d": 1}',
        '{"a": 1 // }', '{"a": 1 /* }', "1 2", '"a" "b"', '{"a": 1} 2', "[" * 20_000, '{"a":' * 20_000, "\\", "'",
        '{"a": "x", "y"}', '"', "//", "/*", "``````", "{'a': '\\x41'}",
    ],
)  # fmt: skip
def test_no_reading_or_more_than_one(text: str) -> None:
    assert repair(text) is None


@pytest.mark.parametrize("between", ["", "\n", " , ", ";", ",\n"])
def test_values_side_by_side(between: str) -> None:
    repaired = repair(f'{{"a": 1}}{between}[{{"b": 2,}}]{between}{{}}')
    assert repaired is not None
    assert repaired.texts == ('{"a": 1}', '[{"b": 2}]', "{}")
    assert len(repaired.repairs) == 2


def test_what_was_right_stays_as_written() -> None:
    text = '{ "n":1E+400,"i" : ' + "7" * 5_000 + ',\n\t"s": "\\u00e9\\/", "t": [ ],'
    repaired = repair(text + "}")
    assert repaired is not None
    assert repaired.texts == (text[:-1] + "}",)


def test_only_a_completed_text_may_have_been_cut() -> None:
    for text, completed in [('{"a": {"b": 1}', True), ('{"a": {"b": 1,}}', False), ('{"a": 1}}', False)]:
        repaired = repair(text)
        assert repaired is not None
        assert repaired.completed is completed


@pytest.mark.parametrize(
    "text",
    [
        '"' * 40_000,
        '{"a":"x' + '"}' * 20_000 + '"}',
        '{"a":"x' + '",/*' * 10_000 + '"}',
        "{" + ",".join(f'"k{at}":"a "b" c"' for at in range(2_000)) + ',"z":1}',
        '{"a":1' + "/*" * 20_000 + "}",
        "[" * 40_000,
        '{"a":"' + "\\d" * 20_000 + '"}',
        '{"a":"x"y' + "\n" * 40_000 + '"}',
        "```" + " " * 40_000 + "x",
    ],
)
def test_hostile_text_comes_to_an_end(text: str) -> None:
    repaired = repair(text)
    assert repaired is None or all(loads(part) is not None for part in repaired.texts)


@given(st.text(st.sampled_from("\"'{}[]:,;\\/*` \n1ae-.+TruNo")) | st.text())
def test_any_text_is_strict_json_or_none(text: str) -> None:
    repaired = repair(text)
    if repaired is not None:
        assert repaired.texts
        for part in repaired.texts:
            loads(part)


@given(values)
def test_strict_json_is_left_alone(value: object) -> None:
    text = dumps(value)
    repaired = repair(text)
    assert repaired is not None
    assert (repaired.texts, repaired.repairs, repaired.completed) == ((text,), (), False)


def _read(text: str) -> list[object] | None:
    repaired = repair(text)
    return None if repaired is None else [json.loads(part) for part in repaired.texts]


def _misread(text: str, value: object) -> bool:
    """Whether a damaged ``text`` is mended to something else than ``value``. Strict JSON is not mended."""
    repaired = repair(text)
    return bool(repaired and repaired.repairs and _read(text) != [value])


@given(objects)
def test_raw_control_characters_come_back(value: dict[str, object]) -> None:
    raw = {"\\n": "\n", "\\t": "\t"}
    assert _read(re.sub(r"\\.", lambda found: raw.get(found[0], found[0]), dumps(value))) == [value]


@given(objects)
def test_a_python_literal_comes_back(value: dict[str, object]) -> None:
    assert _read(repr(value)) == [value]


@given(objects)
def test_trailing_commas_come_back(value: dict[str, object]) -> None:
    assert _read(dumps(value)[:-1] + ",}") == [value]


@given(objects)
def test_bare_keys_come_back(value: dict[str, object]) -> None:
    members = ", ".join(f"{key}: {dumps(part)}" for key, part in value.items())
    assert _read(f"{{{members}}}") == [value]


@given(objects, st.integers(1, 3))
def test_missing_brackets_at_the_end_come_back(value: dict[str, object], count: int) -> None:
    text = dumps(value)
    end = len(text.rstrip("]}"))
    assume(text[end - 1] not in "[{" and len(text) - end >= count)
    assert _read(text[:-count]) == [value]


@given(objects, st.text(st.sampled_from("]}"), min_size=1, max_size=3))
def test_superfluous_brackets_at_the_end_are_left_out(value: dict[str, object], more: str) -> None:
    assert _read(dumps(value) + more) == [value]


@given(objects)
def test_quotes_escaped_outside_of_strings_come_back_or_nothing_does(value: dict[str, object]) -> None:
    assert not _misread(dumps(value).replace('"', '\\"'), value)


@given(objects)
def test_escapes_that_were_forgotten_come_back_or_nothing_does(value: dict[str, object]) -> None:
    text = dumps(value)
    if "\\\\'" not in text:  # a backslash before a single quote is taken for an escape of it
        assert not _misread(text.replace("\\\\", "\\"), value)


@given(objects)
def test_a_missing_quote_is_never_guessed(value: dict[str, object]) -> None:
    text = dumps(value)
    for found in re.finditer(r'\\.|"', text):
        if found[0] == '"':
            assert not _misread(text[: found.start()] + text[found.end() :], value)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), strings, min_size=1, max_size=3))
def test_an_unescaped_quote_comes_back_or_nothing_does(value: dict[str, str]) -> None:
    text = dumps(value)
    for found in re.finditer(r"\\.", text):
        if found[0] == '\\"':
            assert not _misread(text[: found.start()] + text[found.start() + 1 :], value)

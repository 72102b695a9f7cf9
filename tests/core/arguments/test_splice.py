from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.jsontext import dumps, loads
from proxy.core.arguments.splice import Path, splice, spoken


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        ('{"a": "1", "b": 2}', {("a",): "1"}, '{"a": 1, "b": 2}'),
        ('{ "a" :\n["x", {"b": "}\\"]"} ] }', {("a", 1, "b"): "0"}, '{ "a" :\n["x", {"b": 0} ] }'),
        (
            '{"\\u0061": [[], {}, 3], "c": 4}',
            {("a", 2): '"3"', ("c",): "null"},
            '{"\\u0061": [[], {}, "3"], "c": null}',
        ),
        ('{"a": 1, "a": 2}', {("a",): "3"}, '{"a": 1, "a": 3}'),
        ('{"a": {"b": 1}, "a": {"b": 2}}', {("a", "b"): "3"}, '{"a": {"b": 1}, "a": {"b": 3}}'),
        ('[["1"], "2"]', {(0, 0): "1", (1,): "2"}, "[[1], 2]"),
        (' "5" ', {(): "5"}, " 5 "),
        ('{"a": 1}', {}, '{"a": 1}'),
    ],
)
def test_splice(text: str, edits: dict[Path, str], expected: str) -> None:
    assert splice(text, edits) == expected


def test_spoken() -> None:
    assert spoken(("items", 2, "id")) == "items[2].id"
    assert spoken((0,)) == "[0]"
    assert spoken(()) == "the arguments"


scalars = st.none() | st.booleans() | st.integers() | st.text('"\\{}[]:, ab')
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\{}:ab'), inner, max_size=3)
)


def _scalars(value: object, path: Path = ()) -> list[Path]:
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in _scalars(part, (*path, key))]
    if isinstance(value, list):
        return [found for index, part in enumerate(value) for found in _scalars(part, (*path, index))]
    return [path]


@given(values)
def test_every_scalar_is_found_where_it_is(value: object) -> None:
    text = dumps(value)
    for path in _scalars(value):
        part = value
        for step in path:
            part = part[step]  # type: ignore[index]
        assert splice(text, {path: dumps(part)}) == text
        assert "<here>" in splice(text, {path: "<here>"})
    assert loads(splice(text, dict.fromkeys(_scalars(value), "0"))) == loads(text) or _scalars(value)

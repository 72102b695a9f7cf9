"""The line of a key, however the file is written."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from proxy.settings.lines import line_of

TEXT = """\
# settings
host = "::1"

"quoted key" = 1
list = [
  1,   # host = 3

  2,
]
long = '''
[[backend]]
url = "no"
'''
dotted.inner.leaf = true

[[backend]]
# the first
url = "a"
aliases = { "gpt-4o" = "x", deep = { er = 1 } }

[[backend]]

url = [
  "b",
]
[[backend.model]]
match = "m"

[backend.more]
last = 1"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["host"], 2),
        (["quoted key"], 4),
        (["list"], 5),
        (["list", 1], 5),
        (["long"], 10),
        (["dotted"], 14),
        (["dotted", "inner", "leaf"], 14),
        (["backend"], 16),
        (["backend", 0], 16),
        (["backend", 0, "url"], 18),
        (["backend", 0, "aliases", "gpt-4o"], 19),
        (["backend", 0, "aliases", "deep", "er"], 19),
        (["backend", 1], 21),
        (["backend", 1, "url"], 23),
        (["backend", 1, "model", 0], 26),
        (["backend", 1, "model", 0, "match"], 27),
        (["backend", 1, "more", "last"], 30),
        (["backend", 2], None),
        (["backend", 0, "model"], None),
        (["host", "deeper"], None),
        (["host", 0], None),
        (["nowhere"], None),
    ],
)
def test_where_a_key_stands(path: list[str | int], line: int | None) -> None:
    assert line_of(TEXT, path) == line


def test_an_empty_file_has_no_keys() -> None:
    assert line_of("", ["a"]) is None


def test_a_long_file_takes_few_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"key{number} = {number}\n" for number in range(2_000))
    readings = []
    loads = tomllib.loads

    def counted(given: str) -> dict[str, Any]:
        readings.append(given)
        return loads(given)

    monkeypatch.setattr(tomllib, "loads", counted)
    assert line_of(text, ["key1234"]) == 1235
    assert len(readings) < 20


def statements(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Keys, what stands before them, and their text, in every way of writing over several lines."""
    for number in range(rng.randrange(1, 12)):
        value = rng.choice(["1", '"""\n\n#"""', "[\n1,\n]", "{ a = 1 }", "'''\nk0 = 1\n'''"])
        yield f"k{number}", rng.choice(["", "\n", "# k1 = 2\n\n"]), f"k{number} = {value}\n"


@pytest.mark.parametrize("seed", range(30))
def test_any_key_of_any_file(seed: int) -> None:
    text, wanted = "", {}
    for key, before, statement in statements(random.Random(seed)):
        text += before
        wanted[key] = text.count("\n") + 1
        text += statement
    assert {key: line_of(text, [key]) for key in wanted} == wanted

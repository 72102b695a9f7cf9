from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.wire.arguments import custom_arguments, custom_input, read_arguments


@pytest.mark.parametrize(
    ("raw", "text"),
    [('{"a": 1}', '{"a": 1}'), ({"a": 1}, '{"a":1}'), (None, "{}"), ("", "{}"), (" \n", "{}"), ("{broken", "{broken")],
)
def test_arguments_are_json_text_however_they_were_replayed(raw: Any, text: str) -> None:
    assert read_arguments(raw) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "a\\nb"}', "a\nb"),
        ('{"input": 5}', '{"input": 5}'),
        ('{"input": "a", "n": ' + "7" * 5000 + "}", "a"),
        ('{"other": "a"}', '{"other": "a"}'),
        ('["a"]', '["a"]'),
        ("not json", "not json"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_input_of_a_custom_call(arguments: str, text: str) -> None:
    assert custom_input(arguments) == text


@pytest.mark.parametrize("text", ["", "ls -l", 'say "hi"\n', "é\U0001f600"])
def test_the_free_text_of_a_call_survives_the_way_there_and_back(text: str) -> None:
    assert json.loads(custom_arguments(text)) == {"input": text}
    assert custom_input(custom_arguments(text)) == text

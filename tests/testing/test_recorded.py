from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.testing import Recording, recordings

MADE = {
    "model": "some-model",
    "dialect": "hermes",
    "text": '<think>Hm.</think>Look: <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
    "calls": [{"name": "f", "arguments": {"a": 1}}],
    "content": "Look:",
    "reasoning": "Hm.",
}


def saved(folder: Path, name: str = "one", **changed: Any) -> Path:
    file = folder / f"{name}.toolgraft.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**MADE, **changed}))
    return file


def test_a_recording_is_read_as_it_was(tmp_path: Path) -> None:
    recording = Recording.load(saved(tmp_path))
    assert str(recording) == "one"
    recording.check()
    assert recording.read().reasoning == "Hm."


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"content": "Looked"}, "-{'content': 'Looked',"),
        ({"calls": []}, "-{'content': 'Look:', 'reasoning': 'Hm.', 'calls': []}"),
        ({"calls": [{"name": "f", "arguments": {"a": 2}}]}, "- 'calls': [{'name': 'f', 'arguments': {'a': 2}}]}"),
        ({"tools": []}, "+ 'calls': []}"),  # with no tools nothing is a call
        ({"starts_in_reasoning": True, "text": "Hm.", "content": "Hm."}, "+{'content': '',"),
    ],
)
def test_a_recording_that_is_read_otherwise_now(changed: dict[str, Any], line: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        Recording.load(saved(tmp_path, **changed)).check()
    assert str(caught.value).startswith("one is not read as it was recorded:\n--- recorded\n+++ read now\n")
    assert line in str(caught.value)


def test_how_it_was_read_counts(tmp_path: Path) -> None:
    text = '<tool_call>{"name": "f", "arguments": {"a": 1'
    cut = saved(tmp_path, text=text, calls=[], content="", reasoning="", finish_reason="length")
    Recording.load(cut).check()
    twice = MADE["text"] + str(MADE["text"]).partition(": ")[2]  # type: ignore[operator]
    Recording.load(saved(tmp_path, text=twice, parallel=False)).check()
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}]
    Recording.load(saved(tmp_path, tools=tools, calls=[{"name": "f", "arguments": {"a": "1"}}])).check()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"text": 5}', '{"text": "", "calls": [1]}', '{"text": "", "tools": [{}]}']
)
def test_a_file_that_holds_none(content: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toolgraft.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"x\.toolgraft\.json holds no recorded reply"):
        Recording.load(file)


def test_a_folder_of_recordings(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no files \*\.toolgraft\.json"):
        recordings(tmp_path)
    saved(tmp_path, "b")
    saved(tmp_path / "in", "a")
    (tmp_path / "other.json").write_text("{}")
    assert [recording.name for recording in recordings(str(tmp_path))] == ["b", "a"]

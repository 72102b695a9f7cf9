from __future__ import annotations

from pathlib import Path

import pytest

from proxy.demo.scenes import NOTES, OLD, PersonNeededError, Scene, ToolError, furnish, scenes


@pytest.fixture
def played(tmp_path: Path) -> tuple[Scene, ...]:
    furnish(tmp_path)
    return scenes(tmp_path)


def test_what_the_scenes_are_about_is_what_their_tools_do(played: tuple[Scene, ...], tmp_path: Path) -> None:
    one, two, mended, refused, final = played
    assert one.tool.run("Oslo") == "Snow, -3 degrees Celsius."
    assert [two.tool.run(city) for _, city in two.calls] == ["Snow, -3 degrees Celsius.", "Rain, 11 degrees Celsius."]
    (_, wrong), (_, right) = mended.calls
    with pytest.raises(ToolError, match=f"Call read_file with the path {right}"):
        mended.tool.run(wrong)
    assert mended.tool.run(right) == "The key is under the blue pot."
    with pytest.raises(PersonNeededError, match="key has expired"):
        refused.tool.run("Monday")
    assert final.tool.final
    assert final.tool.run(OLD) == "Deleted old.txt."
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["notes.txt"]


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/hosts", "docs", "docs/../../outside.txt"])
def test_the_model_cannot_reach_outside_the_folder(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "outside.txt").write_text("secret")
    furnish(folder)
    _, _, reading, _, deleting = scenes(folder)
    for tool in (reading.tool, deleting.tool):
        with pytest.raises(ToolError):
            tool.run(path)
    assert (tmp_path / "outside.txt").exists()


def test_each_example_is_a_whole_conversation(played: tuple[Scene, ...]) -> None:
    for scene in played:
        first, calling, *results, last = scene.example
        assert (first["role"], last["role"]) == ("user", "assistant")
        assert [call["id"] for call in calling["tool_calls"]] == [result["tool_call_id"] for result in results]
        assert {call["function"]["name"] for call in calling["tool_calls"]} == {scene.tool.name}
        assert len(results) == (2 if scene.choice == "auto" else 1)


def test_no_example_gives_the_answer_away(played: tuple[Scene, ...]) -> None:
    for scene in played:
        assert not any(word in str(scene.example) for word in scene.says)
        assert not any(argument in str(scene.example) for _, argument in scene.calls)


def test_a_scene_went_well_when_the_calls_and_the_last_words_are_right(played: tuple[Scene, ...]) -> None:
    scene = played[2]
    calls = (("read_file", "notes.txt"), ("read_file", NOTES))
    assert scene.went_well(calls, "The key is under the blue pot.")
    assert not scene.went_well(calls[:1], "The key is under the blue pot.")
    assert not scene.went_well(calls, "Pot? What pot?")

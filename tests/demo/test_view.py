from __future__ import annotations

from typing import Any

import pytest

from proxy.demo.agent import Ended, Got, Sent
from proxy.demo.columns import WIDE
from proxy.demo.recorder import Exchange
from proxy.demo.scenes import DemoTool, Scene
from proxy.demo.view import View

TOOL = DemoTool("look", "Look at a thing.", "thing", lambda thing: thing)
SCENE = Scene("A title", "What it is about.", TOOL, (), "Look!", "required", (), ())
SYSTEM = '# Tools\n<tools>\n{"name":"look"}\n</tools>\nHow to call.'
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"thing": "a"}'}}
ASKED: tuple[dict[str, Any], ...] = ({"role": "user", "content": "Look!"},)
ANSWERED: tuple[dict[str, Any], ...] = (
    *ASKED,
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "saw a"},
)


def saw(*texts: str) -> tuple[dict[str, str], ...]:
    roles = ("system", *("user", "assistant") * len(texts))
    return tuple({"role": role, "content": text} for role, text in zip(roles, texts, strict=False))


class Stage:
    def __init__(self, width: int = 120) -> None:
        self.lines: list[str] = []
        self.view = View(self.lines.append, width)

    def shown(self) -> str:
        text = "\n".join(self.lines)
        self.lines.clear()
        return text


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_one_request_from_both_sides(stage: Stage) -> None:
    stage.view.turn(
        Sent(ASKED, 1, TOOL, "required"),
        Got("tool_calls", None, (("look", '{"thing": "a"}'),)),
        Exchange(saw(SYSTEM, "Look!\n\nCall."), True, "<tool_call>x</tool_call>"),
    )
    text = stage.shown()
    for heading in ("THE CLIENT SENT", "| THE MODEL SAW", "THE CLIENT GOT", "| THE MODEL WROTE (HELD BY A GRAMMAR)"):
        assert heading in text
    for left in ("user      Look!", "tools     look(thing)", "choice    required", 'call      look({"thing": "a"})'):
        assert f"\n{left}" in text
    for right in ("system    # Tools", "How to call.", "user      Look!", "model     <tool_call>x</tool_call>"):
        assert any(line.partition("| ")[2].strip() == right for line in text.splitlines()), right


def test_only_what_is_new_is_shown_again(stage: Stage) -> None:
    first = Exchange(saw(SYSTEM, "Look!"), False, "<tool_call>x</tool_call>")
    stage.view.turn(Sent(ASKED, 1, TOOL, "auto"), Got("tool_calls", None, ()), first)
    stage.shown()
    second = Exchange(saw(SYSTEM, "Look!", "<tool_call>x</tool_call>", "[Tool results] saw a"), False, "An a.")
    stage.view.turn(Sent(ANSWERED, 1, TOOL, "auto"), Got("stop", "An a.", ()), second)
    text = stage.shown()
    assert "Look!" not in text
    assert "# Tools" not in text
    assert "(the 2 messages from above, then)" in text
    assert "tool      saw a" in text
    assert "user      [Tool results] saw a" in text
    assert 'content   "An a."' in text
    assert "GRAMMAR" not in text


def test_the_protocol_is_shown_once_and_then_only_the_tools(stage: Stage) -> None:
    exchange = Exchange(saw(SYSTEM, "Look!"), False, "x")
    for number, expected in ((1, True), (2, False)):
        stage.view.scene(number, SCENE)
        stage.view.turn(Sent(ASKED, 1, TOOL, "auto"), Got("stop", "x", ()), exchange)
        text = stage.shown()
        assert text.startswith(f"\n-- {number}. A title ---")
        assert "What it is about." in text
        assert ("How to call." in text) is expected
        assert '{"name":"look"}' in text
        assert "Look!" in text.partition("| THE MODEL SAW")[2]


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (Ended("answered", "An a.", ()), "=> The person reads: An a."),
        (Ended("person", "No key.", ()), "=> The loop ends here, without a retry. The person reads: No key."),
        (Ended("gave up", "No answer.", ()), "=> The loop was given up. No answer."),
    ],
)
def test_how_it_ended(ended: Ended, expected: str, stage: Stage) -> None:
    stage.view.ended(ended)
    assert stage.shown().strip() == expected


@pytest.mark.parametrize("width", [40, 80, 200])
def test_it_keeps_to_the_terminal(width: int) -> None:
    stage = Stage(width)
    stage.view.scene(1, SCENE)
    stage.view.say("word " * 100)
    stage.view.turn(Sent(ANSWERED, 3, TOOL, "auto"), Got("stop", "x " * 200, ()), Exchange(saw("y" * 500), False, "z"))
    assert max(map(len, stage.lines)) <= min(width, WIDE)
    assert stage.lines[1].startswith("-- 1. A title")

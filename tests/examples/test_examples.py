"""The examples can be read by what they are for and name one address; those that need no more than the tests do run."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.clients.brain import ADVICE, weather
from tests.clients.loops import came_to_it
from tests.examples.pages import ADDRESS, FOLDER, Block, at, blocks, exports
from tests.examples.run import EXAMPLES
from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.speech import Mode

FILES = sorted(path for path in FOLDER.iterdir() if path.name != "README.md")
BLOCKS = list(blocks())


def shell(text: str) -> None:
    subprocess.run(["bash", "-n"], input=text, text=True, check=True, capture_output=True)


READERS: Mapping[str, Callable[[str], object]] = {"json": json.loads, "sh": shell, "toml": tomllib.loads}


@pytest.mark.parametrize("block", BLOCKS, ids=[f"{block.page}-{block.language}" for block in BLOCKS])
def test_a_block_can_be_read(block: Block) -> None:
    READERS[block.language](block.text)


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".py"], ids=lambda path: path.name)
def test_a_program_for_python_can_be_compiled(path: Path) -> None:
    compile(path.read_text("utf-8"), path.name, "exec")


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".mjs"], ids=lambda path: path.name)
def test_a_program_for_node_can_be_read(path: Path) -> None:
    subprocess.run(["node", "--check", str(path)], check=True, capture_output=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_is_listed_and_says_where_the_proxy_is(path: Path) -> None:
    text = path.read_text("utf-8")
    assert f"({path.name})" in (FOLDER / "README.md").read_text("utf-8")
    assert ADDRESS in text or ":8787/v1" in text


def test_every_program_is_run() -> None:
    assert {loop.file for loop in EXAMPLES} == {path for path in FILES if path.suffix != ".md"}


def test_the_environment_of_an_agent_is_what_its_page_exports() -> None:
    assert exports("claude-code.md")["ANTHROPIC_BASE_URL"] == ADDRESS
    assert exports("qwen-code.md")["OPENAI_BASE_URL"] == f"{ADDRESS}/v1"


@pytest.mark.parametrize("mode", ["xml", "native"])
@pytest.mark.parametrize("name", ["openai_sdk.py", "anthropic_sdk.py"])
def test_a_program_comes_to_the_advice_by_way_of_its_tool(
    name: str, mode: Mode, capsys: pytest.CaptureFixture[str]
) -> None:
    with Backend() as backend, proxy_before(backend, mode) as url:
        backend.script(weather(mode))
        program = at(url, (FOLDER / name).read_text("utf-8"))
        exec(compile(program, name, "exec"), {"__name__": "__main__"})  # here, where its SDK is imported already
    assert came_to_it(capsys.readouterr().out)
    assert len(backend.chats) == 2


def test_words_without_a_result_are_no_advice() -> None:
    assert not came_to_it(f"{ADVICE} Rain in Rome, 7 degrees.")
    assert not came_to_it("Rain in Oslo, 7 degrees.")

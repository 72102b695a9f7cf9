"""Files of settings that the documentation shows are taken, and its JSON is JSON."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from proxy.settings.load import load
from tests.docs.pages import ROOT, Found, blocks

TEMPLATE = ROOT / "fixtures" / "prompts" / "own.jinja"
SETTINGS = [block for block in blocks("toml") if "[[backend]]" in block.text]
OTHERS = [block for block in blocks("toml") if block not in SETTINGS]


@pytest.mark.parametrize("block", SETTINGS, ids=str)
def test_a_file_of_settings_is_taken(block: Found, tmp_path: Path) -> None:
    file = tmp_path / "toolgraft.toml"
    file.write_text(block.text, "utf-8")
    (tmp_path / "tools.jinja").write_bytes(TEMPLATE.read_bytes())
    keys = dict.fromkeys(re.findall(r'key_env = "(\w+)"', block.text), "sk-1")
    assert load({}, keys, file).backends


@pytest.mark.parametrize("block", OTHERS, ids=str)
def test_the_files_of_other_programs_can_be_read(block: Found) -> None:
    assert tomllib.loads(block.text)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_json(block: Found) -> None:
    assert json.loads(block.text)


def test_there_are_files_of_settings_in_each_page_that_explains_them() -> None:
    assert {block.page.name for block in SETTINGS} >= {"README.md", "configuration.md", "backends.md", "operations.md"}

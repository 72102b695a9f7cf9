"""Every setting is documented, and what is shown as an example can be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.core.errors import ConfigError
from proxy.settings.keys import BACKEND, MODEL, SERVER
from proxy.settings.load import load
from proxy.settings.reference import example, table, tables
from tests.support.conversations import FIXTURES

ROOT = FIXTURES.parent


def test_the_documentation_has_the_tables_as_they_are() -> None:
    """To mend it: ``python -m proxy.settings.reference``."""
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    for each in tables():
        assert each in text
    for key in (*SERVER, *BACKEND, *MODEL):
        assert f"| `{key.name}` |" in text


def test_a_table_has_the_variables_where_there_are_any() -> None:
    with_them = table(SERVER[:1], "TOOLGRAFT_").splitlines()
    assert with_them[0] == "| key | meaning | default | flag | environment |"
    assert with_them[2].endswith('| `"127.0.0.1"` | `--host` | `TOOLGRAFT_HOST` |')
    assert "environment" not in table(SERVER[:1], None)


def test_the_example_changes_nothing_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "toolgraft.toml"
    file.write_text(example())
    given = load({"url": ("http://127.0.0.1:8080",)}, {}, None)
    assert load({}, {}, file) == given


def test_each_line_of_the_example_can_be_used(tmp_path: Path) -> None:
    file = tmp_path / "toolgraft.toml"
    (tmp_path / "tools.jinja").write_bytes((FIXTURES / "prompts" / "own.jinja").read_bytes())
    lines = example().splitlines()
    head = lines.index("#[[backend.model]]")
    settings = [number for number, line in enumerate(lines) if re.match(r"#\w+ = ", line)]
    assert len(settings) == len(SERVER) + len(BACKEND) - 1 + len(MODEL)
    match = next(number for number in settings if lines[number].startswith("#match"))
    for number in settings:
        tried = list(lines)
        for each in {number} | ({head, match} if number > head else set()):
            tried[each] = tried[each].removeprefix("#")
        file.write_text("\n".join(tried))
        try:
            load({}, {"BIG_KEY": "sk-1", "PROXY_KEY": "tg-1"}, file)
        except ConfigError as error:
            pytest.fail(f"{lines[number]}: {error.message}")

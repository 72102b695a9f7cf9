"""A flag before the environment before the file, and who is told when a value is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.core.errors import ConfigError
from proxy.settings import kinds
from proxy.settings.document import Document
from proxy.settings.keys import Key
from proxy.settings.sources import Setting, Sources, from_file

PORT = Key("port", kinds.whole(0, 9), "", flag="--port")
FILE = Key("template", kinds.path(), "")
SECRET = Key("key_env", kinds.variable(), "")


def test_a_flag_comes_first_then_each_prefix_in_turn() -> None:
    environ = {"A_PORT": "1", "B_PORT": "2"}
    assert Sources({"port": 3}, environ).by_hand(PORT, ["A_"]) == Setting(3, "--port")
    assert Sources({"port": None}, environ).by_hand(PORT, ["A_", "B_"]) == Setting(1, "A_PORT")
    assert Sources({}, environ).by_hand(PORT, ["C_", "B_"]) == Setting(2, "B_PORT")
    assert Sources({}, environ).by_hand(PORT, ["C_"]) is None


@pytest.mark.parametrize("given", ["", "tcp://10.0.0.7:8787"])
def test_an_empty_variable_and_one_that_kubernetes_made_say_nothing(given: str) -> None:
    assert Sources({}, {"A_PORT": given}).by_hand(PORT, ["A_"]) is None


def test_a_variable_that_is_wrong_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        Sources({}, {"A_PORT": "ten"}).by_hand(PORT, ["A_"])
    assert caught.value.message == ('The environment variable A_PORT must be a whole number from 0 to 9, not "ten".')


def document(tmp_path: Path, text: str) -> Document:
    file = tmp_path / "t.toml"
    file.write_text(text)
    return Document.read(file)


def test_a_value_of_the_file_knows_its_line(tmp_path: Path) -> None:
    read = document(tmp_path, "[t]\nport = 3")
    assert from_file(PORT, read, read.data["t"], ["t"]) == Setting(3, f"{tmp_path}/t.toml, line 2: `port`")
    assert from_file(FILE, read, read.data["t"], ["t"]) is None


def test_a_file_is_seen_from_the_file_that_names_it(tmp_path: Path) -> None:
    for given, found in (("a.jinja", tmp_path / "a.jinja"), ("/b.jinja", Path("/b.jinja"))):
        read = document(tmp_path, f'template = "{given}"')
        setting = from_file(FILE, read, read.data, [])
        assert setting
        assert setting.value == found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('port = "ten"', 'not "ten".'),
        ("port = 1979-05-27", 'not "1979-05-27".'),
        (f'port = "{"x" * 500}"', f'not "{"x" * 59}….'),
    ],
)
def test_a_value_that_is_wrong_is_shown_with_its_line(tmp_path: Path, text: str, shown: str) -> None:
    read = document(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        from_file(PORT, read, read.data, [])
    assert caught.value.message == f"{read.name}, line 1: `port` must be a whole number from 0 to 9, {shown}"


def test_what_may_be_a_secret_is_not_shown(tmp_path: Path) -> None:
    read = document(tmp_path, 'key_env = "sk-secret"')
    with pytest.raises(ConfigError) as from_the_file:
        from_file(SECRET, read, read.data, [])
    with pytest.raises(ConfigError) as from_outside:
        Sources({}, {"KEY_ENV": "sk-secret"}).by_hand(SECRET, [""])
    for caught in (from_the_file, from_outside):
        assert "the name of an environment variable" in caught.value.message
        assert "sk-secret" not in caught.value.message

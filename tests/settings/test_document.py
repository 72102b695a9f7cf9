"""A file that cannot be read says why, and an unknown key what is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.core.errors import ConfigError
from proxy.settings.document import MOST_BYTES, Document


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "toolgraft.toml"


def refusal(file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Document.read(file)
    assert str(file) in caught.value.message
    return caught.value.message.replace(str(file), "FILE")


def test_a_file_is_read_and_knows_its_folder(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbfhost = "a"\r\nport = 1\r\n')
    document = Document.read(file)
    assert document.data == {"host": "a", "port": 1}
    assert document.folder == file.parent
    assert document.where(["port"]) == f"{file}, line 2"
    assert document.where(["nowhere"]) == str(file)


def test_a_file_that_is_not_there(file: Path) -> None:
    assert refusal(file) == "The file FILE cannot be read: No such file or directory."
    assert "Is a directory" in refusal_of_folder(file.parent)


def refusal_of_folder(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Document.read(folder)
    return caught.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"host = ", "FILE, line 1: this is not valid TOML: Invalid value."),
        (b'a = 1\nhost = "a\n', "FILE, line 2: this is not valid TOML: Illegal character '\\n'."),
        (b"a = 1\na = 2", "FILE, line 2: this is not valid TOML: Cannot overwrite a value."),
        (b"a = 1\n\xff", "FILE, line 2: this is not text in UTF-8."),
        (b"a = 1\nb = [\n\n", "FILE, line 2: this is not valid TOML: "),
        (b'a = """\n', "FILE, line 1: this is not valid TOML: "),
        (b"#" * (MOST_BYTES + 1), "The file FILE has more than 1,048,576 bytes. Is it the right one?"),
        (b"a = " + b"[" * 100_000, "FILE is nested too deeply."),
        (b"\x00", "FILE, line 1: this is not valid TOML: "),
    ],
)
def test_a_file_that_is_no_toml(file: Path, data: bytes, message: str) -> None:
    file.write_bytes(data)
    assert refusal(file).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host = 1\nprot = 2", "FILE, line 2: there is no key `prot` here. Did you mean `port`?"),
        ("zzz = 2", "FILE, line 1: there is no key `zzz` here. There are: host, port."),
        ("url = 2", "FILE, line 1: there is no key `url` here. It is elsewhere."),
        ('\nkey = "sk-1"', "FILE, line 2: a key does not belong into a file."),
        ('API_KEY = "sk-1"', "FILE, line 1: a key does not belong into a file."),
    ],
)
def test_an_unknown_key(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    document = Document.read(file)
    with pytest.raises(ConfigError) as caught:
        document.refuse_unknown(document.data, (), ["host", "port"], {"url": "It is elsewhere."})
    assert caught.value.message.replace(str(file), "FILE").startswith(message)
    assert "sk-1" not in caught.value.message


def test_known_keys_are_fine(file: Path) -> None:
    file.write_text("[table]\nhost = 1")
    document = Document.read(file)
    document.refuse_unknown(document.data["table"], ["table"], ["host"], {})

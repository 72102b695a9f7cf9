from __future__ import annotations

from pathlib import Path

import pytest

from proxy.core.errors import ConfigError
from proxy.template_file import read_template
from tests.support.conversations import FIXTURES


def test_a_template_is_read_and_checked(tmp_path: Path) -> None:
    assert "## What you can do" in read_template(FIXTURES / "prompts" / "own.jinja").render([])
    file = tmp_path / "x.jinja"
    file.write_text("Hello.")
    with pytest.raises(ConfigError, match=r"x\.jinja leaves out the name of a tool"):
        read_template(file)


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none cannot be read: No such file"):
        read_template(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"bytes is not text in UTF-8"):
        read_template(tmp_path / "bytes")

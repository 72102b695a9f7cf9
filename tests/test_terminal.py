from __future__ import annotations

import os
import sys

import pytest

from proxy.terminal import Terminal


def test_a_terminal_is_gone_once_its_other_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, fd = os.openpty()
    with os.fdopen(fd, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        terminal = Terminal()
        assert not terminal.is_gone()
        os.close(controller)
        assert terminal.is_gone()


def test_what_reports_to_a_file_has_none_to_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        assert not Terminal().is_gone()

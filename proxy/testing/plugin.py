"""Replays recorded replies in pytest: each file ``….toolgraft.json`` where tests are looked for is one test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

SUFFIX = ".toolgraft.json"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Pytest's question what a file holds."""
    return RecordingFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class RecordingFile(pytest.File):
    """A file that holds a recorded reply."""

    def collect(self) -> Iterable[pytest.Item]:
        """Its one test."""
        yield Replay.from_parent(self, name="replay")


class Replay(pytest.Item):
    """The test that a recorded reply is read as it was then."""

    def runtest(self) -> None:
        """Raise where it is not."""
        from proxy.testing.recorded import Recording

        Recording.load(self.path).check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What pytest prints: of a difference, that alone."""
        if isinstance(excinfo.value, AssertionError | ValueError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is, and what it is called."""
        return self.path, None, self.path.name

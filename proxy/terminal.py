"""The terminal that a program was started in."""

from __future__ import annotations

import os
import sys


class Terminal:
    """The terminal that this process reports to, if there is one."""

    def __init__(self) -> None:
        self._fd = sys.stderr.fileno() if sys.stderr.isatty() else None

    def is_gone(self) -> bool:
        """Whether there was one that has been closed: SIGHUP then means that its user has left."""
        return self._fd is not None and not os.isatty(self._fd)

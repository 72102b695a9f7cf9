"""What the doctor finds: a line each, for a person, with the mend where something is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["ok", "note", "bad"]
"""``note``: worth knowing, and provided for. ``bad``: something to mend."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``about`` is what was looked at, in a word or two. ``mend`` says what to do, ``""`` where there is nothing to."""

    about: str
    said: str
    level: Level = "ok"
    mend: str = ""


class SickError(Exception):
    """The examination cannot go on. ``findings`` are those so far, the last one says why."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__(self.findings[-1].said)

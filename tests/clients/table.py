"""What came of the runs of real clients, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.backend import Recorded
from tests.support.speech import Mode

HEAD = ("client", "version", "API", "mode", "whole, streamed", "outcome")


@dataclass(frozen=True, slots=True)
class Row:
    """One client before one kind of backend. ``ways``: how it asked for its replies. ``problem``: empty if all is well,
    else what went wrong. ``did``: what it did.
    """

    client: str
    version: str
    api: str
    mode: Mode
    ways: str
    did: str
    problem: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        outcome = f"failed: {' '.join(self.problem.split())[-200:]}" if self.problem else f"ok: {self.did}"
        return (self.client, self.version, self.api, self.mode, self.ways, outcome.replace("|", "\\|"))


def ways(requests: Iterable[Recorded]) -> str:
    """How the replies to ``requests`` were asked for: whole, streamed or both."""
    streamed = {bool(request.json.get("stream")) for request in requests}
    return ", ".join(word for flag, word in ((False, "whole"), (True, "streamed")) if flag in streamed)


def markdown(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    lines = [HEAD, ("---",) * len(HEAD), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

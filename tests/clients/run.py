"""Real clients against the proxy: installs each, and lets it work in front of a scripted model.

    python -m tests.clients.run [--dir DIR] [NAME ...]

An agent has to read one file and write another. A program of an SDK plays every scenario, one of a framework comes to
an answer by way of a tool. Each is tried before a model
that only writes text and before a server with tools of its own. Needs npm and the network; it takes minutes and is no
part of the test suite.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tests.clients.agents import AGENTS
from tests.clients.loops import FRAMEWORKS
from tests.clients.programs import PROGRAMS
from tests.clients.table import Row, markdown

DIRECTORY = Path(tempfile.gettempdir()) / "toolgraft-clients"
"""Where clients are installed unless told otherwise; what is there already is brought up to date."""


class Client(Protocol):
    """What can be installed below a directory and run, to some rows of the table."""

    @property
    def name(self) -> str: ...

    def run(self, directory: Path) -> Iterator[Row]: ...


def rows(clients: Iterable[Client], directory: Path) -> Iterator[Row]:
    """Run ``clients`` one after another, and tell of each as it comes."""
    logging.disable()  # the proxy's log: streams that break on purpose
    for client in clients:
        for row in client.run(directory):
            print(" | ".join(row.cells), file=sys.stderr, flush=True)
            yield row


def main(clients: Sequence[Client], words: str | None) -> int:
    """Run the ``clients`` that are named, or all, and print the table. The exit status says whether any failed."""
    parser = argparse.ArgumentParser(description=(words or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=", ".join(dict.fromkeys(client.name for client in clients)))
    parser.add_argument("--dir", type=Path, default=DIRECTORY, help="where to install them")
    options = parser.parse_args()
    done = list(rows([each for each in clients if each.name in (options.names or [each.name])], options.dir))
    print(markdown(done))
    return int(not done or any(row.problem for row in done))


if __name__ == "__main__":
    sys.exit(main([*PROGRAMS, *FRAMEWORKS, *AGENTS], __doc__))

"""The figures of docs/conformance.md: ``python -m tests.conformance.page [--offline] [--check]``.

It runs everything that the page tells of and writes what came of it between the page's marks; the words around them
stay. Real clients are installed for it, which needs npm, PyPI and some minutes: ``--offline`` leaves their table as it
stands. ``--check`` writes nothing, measures what needs no network, and says which parts of the page are no longer so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import platform
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.clients.agents import AGENTS
from tests.clients.loops import FRAMEWORKS
from tests.clients.programs import PROGRAMS
from tests.clients.run import DIRECTORY, Client, rows
from tests.clients.table import Row, markdown
from tests.conformance.expected import OTHERWISE
from tests.conformance.measure import ROOT, fixtures, probe, statuses, suite
from tests.conformance.speaker import WRITERS
from tests.examples.run import EXAMPLES

PAGE = ROOT / "docs" / "conformance.md"
CLIENTS: Sequence[Client] = [*EXAMPLES, *FRAMEWORKS, *PROGRAMS, *AGENTS]


def section(page: str, name: str) -> str:
    """The part of ``page`` between the marks of ``name``. Raises ``ValueError`` if it has none."""
    return page[slice(*_span(page, name))]


def with_section(page: str, name: str, text: str) -> str:
    """``page`` with ``text`` as that part."""
    start, end = _span(page, name)
    return page[:start] + text + page[end:]


def _span(page: str, name: str) -> tuple[int, int]:
    begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
    start = page.index(begin) + len(begin)
    return start, page.index(end, start)


def _table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in cells)


def suite_table() -> str:
    """What came of the public suite's fixtures, by family."""
    with contextlib.redirect_stdout(io.StringIO()):
        cases = suite()
    families: dict[str, Counter[str]] = {}
    for case in cases:
        families.setdefault(case["fixture_id"].partition("/")[0], Counter())[case["status"]] += 1
    families["**all**"] = sum(families.values(), Counter())
    kinds = ("pass", "soft_pass", "fail", "error")
    lines = [[name, seen.total(), *(seen[kind] for kind in kinds)] for name, seen in families.items()]
    failed = {case["fixture_id"] for case in cases if case["status"] not in kinds[:2]}
    table = _table(["family", "fixtures", "pass", "pass but for white space", "fail", "error"], lines)
    soft = [case["fixture_id"] for case in cases if case["status"] == "soft_pass"]
    unknown = "".join(f" Not explained yet: `{name}`." for name in sorted(failed - OTHERWISE.keys()))
    spaces = f"Other white space only: {_names(soft)}."
    return f"canitoolcall {version('canitoolcall')}:\n\n{table}\n\n{spaces}{unknown}"


def failures() -> str:
    """The fixtures of the public suite that are answered otherwise, each with the reason."""
    return "\n".join(f"- `{name}`: {why}" for name, why in OTHERWISE.items())


def probe_table() -> str:
    """The public suite's probe, scenario by scenario."""
    done = probe("hermes")
    before, after = statuses(done.before), statuses(done.after)
    lines = [[name, *before[name][:2], *after[name]] for name in after]
    head = ["scenario", "bare, whole", "bare, streamed", "proxy, whole", "proxy, streamed", "proxy, both alike"]
    return _table(head, lines)


def writers_table() -> str:
    """The same probe of models that write otherwise."""
    lines = []
    for name in WRITERS:
        done = probe(name)
        passed = [f"{report.summary()['pass']} of {len(report.outcomes)}" for report in (done.before, done.after)]
        lines.append([f"`{name}`", *passed])
    return _table(["calls written as", "bare", "through the proxy"], lines)


def fixtures_table() -> str:
    """Our own fixtures, dialect by dialect, and those that have to be asked for."""
    done = fixtures()
    counts = [(len(row.examples), len(row.unasked), len(row.named)) for row in done]
    lines: list[Sequence[object]] = [[f"`{row.dialect.name}`", *each] for row, each in zip(done, counts, strict=True)]
    lines.append(["**all**", *map(sum, zip(*counts, strict=True))])
    named = [name for row in done for name in row.examples if name not in row.unasked]
    unasked = [name for row in done for name in row.examples if name not in row.named]
    return "\n".join(
        [
            _table(["dialect", "replies", "read unasked", "read when named"], lines),
            "",
            f"Read only when named: {_names(named)}. Read only unasked: {_names(unasked)}.",
        ]
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


SECTIONS: Mapping[str, Callable[[], str]] = {
    "suite": suite_table,
    "failures": failures,
    "probe": probe_table,
    "writers": writers_table,
    "fixtures": fixtures_table,
}
"""What needs no network, by the names of its marks."""


def made() -> str:
    """With what, and when, figures were made."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%h"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    python = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]  # the tree's own
    return f"{datetime.now(UTC):%Y-%m-%d}: Toolgraft {ours} at commit {commit}, {python}."


def clients_table(directory: Path) -> str:
    """What came of all real clients. Needs the network."""
    done: list[Row] = list(rows(CLIENTS, directory))
    node = subprocess.run(
        [next(directory.rglob("node_modules/.bin/node")), "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return f"{made()} Node {node}.\n\n{markdown(done)}"


def outdated(page: str) -> list[str]:
    """The parts of ``page`` that are no longer so: what needs no network is measured, clients are looked for."""
    wrong = [name for name, measure in SECTIONS.items() if section(page, name) != measure()]
    listed = set(re.findall(r"^\| ([^|]+) \|", section(page, "clients"), re.MULTILINE))
    return wrong + ["clients"] * bool({client.name for client in CLIENTS} - listed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the figures, or check them. The exit status is 1 if the page is not current."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--offline", action="store_true", help="leave the clients' table as it stands")
    parser.add_argument("--check", action="store_true", help="only say which parts are no longer so")
    parser.add_argument("--dir", type=Path, default=DIRECTORY, help="where to install clients")
    given = parser.parse_args(arguments)
    page = PAGE.read_text("utf-8")
    if given.check:
        wrong = outdated(page)
        print(f"no longer so: {', '.join(wrong)}" if wrong else "the page is current")
        return int(bool(wrong))
    for name, measure in {"made": made, **SECTIONS}.items():
        page = with_section(page, name, measure())
    if not given.offline:
        page = with_section(page, "clients", clients_table(given.dir))
    PAGE.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

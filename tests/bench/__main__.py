"""What the proxy costs, beside the least that it could: ``python -m tests.bench``. Nothing else has to run.

The backend, the load, the floor and the product are processes of their own. They are measured in turn, several times,
and the medians count: CPU time of the process in the first place, which other programs on the machine disturb least.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.bench import profile
from tests.bench.programs import Program, backend, bare, cpu_of, floor, load, product

REFERENCES = ("floor", "libraries")

Figures = dict[str, dict[str, float]]
"""By figure and program."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table. ``added``: what the backend alone takes is subtracted."""

    key: str
    shown: str
    digits: int = 0
    added: bool = False


ROWS = (
    Row("request", "CPU µs a request (whole, one call)"),
    Row("token", "CPU µs a streamed token"),
    Row("delay", "added delay of a token, median, µs", added=True),
    Row("delay99", "added delay of a token, p99, µs", added=True),
    Row("first", "added to the first token, median, µs", added=True),
    Row("argument", "CPU s, an argument of 1 MB", 2),
    Row("memory", "kB an open stream", 1),
    Row("many", "share of a core, 1,000 streams of 8 a second", 2),
    Row("many_worst", "the longest delay among them, ms", added=True),
    Row("ready", "s from the start to listening", 2),
    Row("import", "CPU s to import the command line", 3),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of each load."""

    rounds: int
    requests: int
    streams: int
    seconds: float
    opened: int
    many: int


FULL = Size(rounds=5, requests=1500, streams=50, seconds=6.0, opened=300, many=1000)
QUICK = Size(rounds=2, requests=500, streams=20, seconds=2.5, opened=100, many=0)
CONNECTIONS = 8
RATE = 50
MEGABYTE = 1_000_000


def measure(programs: list[Program], size: Size) -> Figures:
    """Each figure of each program, the median of some rounds."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for program in programs:  # so that what is asked once, and kept, has been asked
        load(program, "requests", count=100, connections=CONNECTIONS)
        load(program, "streams", count=5, rate=RATE, seconds=1.0)
    for number in range(size.rounds):
        for program in programs:
            whole = load(program, "requests", count=size.requests, connections=CONNECTIONS)
            streamed = load(program, "streams", count=size.streams, rate=RATE, seconds=size.seconds)
            told = {
                "request": whole["cpu_us"],
                "token": streamed["cpu_us"],
                "delay": streamed["median_us"],
                "delay99": streamed["p99_us"],
                "first": streamed["first_us"],
            }
            if number % 2 == 0 and program.process:
                told["argument"] = load(program, "argument", size=MEGABYTE)["cpu_s"]
            for key, value in told.items():
                found[key][program.name].append(value)
    for program in programs:
        if program.process:
            found["memory"][program.name].append(load(program, "open_streams", count=size.opened)["bytes"] / 1000)
        if size.many:
            many = load(program, "many", count=size.many, rate=8, seconds=20.0)
            found["many"][program.name].append(many["load"])
            found["many_worst"][program.name].append(many["worst_us"] / 1000)
    return {key: {name: statistics.median(each) for name, each in by.items()} for key, by in found.items()}


def starts(trees: dict[str, Path], port: int, size: Size) -> Figures:
    """How long the product takes to start, and its command line to be imported."""
    ready, imports = {}, {}
    for name, tree in trees.items():
        times, costs = [], []
        for _ in range(size.rounds):
            with product(port, name, tree) as program:
                times.append(program.ready)
            costs.append(cpu_of("import proxy.cli", tree) - cpu_of("pass", tree))
        ready[name], imports[name] = statistics.median(times), statistics.median(costs)
    return {"ready": ready, "import": imports}


def scaling(port: int, size: Size) -> str:
    """Requests a second with one worker and with two, as Markdown."""
    with (
        product(port, flags=("--inspector", "off")) as one,
        product(port, flags=("--inspector", "off", "--workers", "2")) as two,
    ):
        rates: dict[int, list[float]] = {1: [], 2: []}
        for number in range(size.rounds + 1):
            for workers, program in ((1, one), (2, two)):
                told = load(program, "requests", count=size.requests, connections=4 * CONNECTIONS)
                if number:  # the first round warms up
                    rates[workers].append(told["a_second"])
    lines = [f"| {count} | {statistics.median(each):,.0f} |" for count, each in rates.items()]
    return "\n".join(["| workers | whole requests a second |", "|---|---|", *lines])


def table(figures: Figures, names: list[str]) -> str:
    """The figures as Markdown, and the last program's ratios to the ``REFERENCES``."""
    columns = [*names, *(f"to the {reference}" for reference in REFERENCES)]
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for row in ROWS:
        by = figures.get(row.key, {})
        if row.added:
            by = {name: value - by["direct"] for name, value in by.items() if name != "direct"}
        elif row.key in ("request", "token", "many"):
            by = {name: value for name, value in by.items() if name != "direct"}
        if by:
            cells = [f"{by[name]:,.{row.digits}f}" if name in by else "" for name in names]
            others = [by.get(reference) if not row.added else None for reference in REFERENCES]
            ratios = [f"{by[names[-1]] / other:.1f}" if other else "" for other in others]
            lines.append(f"| {row.shown} | " + " | ".join([*cells, *ratios]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller loads and two rounds: under a minute")
    parser.add_argument("--profile", action="store_true", help="say instead where the product's time goes")
    parser.add_argument("--workers", action="store_true", help="say instead what a second worker brings")
    parser.add_argument("--against", type=Path, metavar="TREE", help="measure another checkout of the product too")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", default=Path("bench.json"), help="where figures are written"
    )
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    with ExitStack() as stack:
        direct = stack.enter_context(backend())
        if options.profile:
            profile.show(direct.port)
            return
        if options.workers:
            print(scaling(direct.port, size))
            return
        trees = {"before": options.against.resolve()} if options.against else {}
        trees["toolgraft"] = Path(__file__).parents[2]
        figures = starts(trees, direct.port, size)
        programs = [Program("direct", direct.port)]
        programs += [stack.enter_context(each(direct.port)) for each in (floor, bare)]
        programs += [stack.enter_context(product(direct.port, name, tree)) for name, tree in trees.items()]
        figures |= measure(programs, size)
    options.json.write_text(
        json.dumps({"python": sys.version, "size": repr(size), "figures": figures}, indent=1) + "\n"
    )
    print(table(figures, [*REFERENCES, *trees]))


if __name__ == "__main__":
    main()

"""How well the embedded model calls tools in each way: ``python -m tests.bench.quality``, which writes docs/quality.md.

All prompts of ``proxy/trial`` and ``fixtures/quality`` are asked in each way, through the proxy, at temperature 0. With
``--ways xml,forced`` only some are; ``--resume`` goes on where an earlier run was broken off. What came of each prompt
is kept in the file that ``--raw`` names. The exit code is 1 if a forced call that was not cut did not fit its schema.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from proxy.config import BackendConfig
from proxy.local import LocalModel
from proxy.trial.prompts import BUILTIN, Prompt, read_prompts
from proxy.trial.run import Limits, Outcome, Score, due, run
from proxy.trial.ways import WAYS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quality.md"
RAW = Path(tempfile.gettempdir()) / "toolgraft-quality.json"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"

ASKED = tuple(name for name in WAYS if name != "auto")
"""All ways but the one that is as ``xml`` for this model, whose server drops tools."""
LIMITS = Limits(tokens=160, seconds=300)

Outcomes = Mapping[str, Sequence[Outcome]]


class Engine:
    """The engine's process on one thread, and the seconds of the processor that it has taken, whatever else runs."""

    def __init__(self, model: LocalModel) -> None:
        assert model._process
        self._stat = Path(f"/proc/{model._process.pid}/stat")
        self._before = self._seconds()

    def lap(self) -> float:
        """The seconds since this was last asked."""
        before, self._before = self._before, self._seconds()
        return self._before - before

    def _seconds(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # time in the program and in the kernel


def prompts() -> list[Prompt]:
    """All prompts; those with the same tools follow each other, so that the engine reads the tools once."""
    return sorted(
        read_prompts(BUILTIN, ROOT / "fixtures" / "quality" / "prompts.jsonl"), key=lambda each: str(each.tools)
    )


def measure(ways: Sequence[str], known: dict[str, list[Outcome]], raw: Path) -> None:
    """Add to ``known`` what comes of each way and prompt that is not in it, and keep it in ``raw``."""
    with LocalModel(threads=1) as model:
        backend = BackendConfig(model.url, constrain="required", reask=0)
        engine = Engine(model)
        for name in ways:
            outcomes = known.setdefault(name, [])
            asked = due(WAYS[name], prompts())
            answered = {outcome.prompt for outcome in outcomes}

            def told(outcome: Outcome, name: str = name, most: int = len(asked)) -> None:
                known[name].append(replace(outcome, seconds=engine.lap()))
                raw.write_text(json.dumps({key: [asdict(each) for each in value] for key, value in known.items()}))
                print(f"\r{name}: {len(known[name])} of {most}", end="", file=sys.stderr, flush=True)

            run(WAYS[name], [prompt for prompt in asked if prompt.id not in answered], backend, LIMITS, told)
            print(file=sys.stderr)


def read(raw: Path) -> dict[str, list[Outcome]]:
    """What an earlier run has kept."""
    return {name: [Outcome(**each) for each in kept] for name, kept in json.loads(raw.read_text()).items()}


def forced(known: Outcomes) -> list[Outcome]:
    """All replies that had to be a call."""
    return [outcome for name, outcomes in known.items() if WAYS[name].forced for outcome in outcomes]


def broken(known: Outcomes) -> list[Outcome]:
    """Forced replies that were not cut and are no valid calls."""
    return [outcome for outcome in forced(known) if not (outcome.valid or outcome.cut)]


def tables(known: Outcomes) -> str:
    """The part of the page that holds figures."""
    return "\n\n".join([_sums(known), _categories(known), _forced(known), _styles(known)])


def _sums(known: Outcomes) -> str:
    head = ["| way | valid | right | cut | prompt tokens | completion tokens | seconds a prompt |", "|---" * 7 + "|"]
    return "\n".join([*head, *(_sum(name, Score.of(outcomes)) for name, outcomes in known.items())])


def _sum(name: str, score: Score) -> str:
    valid, right = f"{score.valid} of {score.asked}", f"{score.right} of {score.asked}"
    tokens = f"{score.prompt_tokens:,} | {score.completion_tokens:,}"
    return f"| {WAYS[name].title} | {valid} | {right} | {score.cut} | {tokens} | {score.seconds:.1f} |"


def _categories(known: Outcomes) -> str:
    categories = dict.fromkeys(prompt.category for prompt in read_prompts(BUILTIN))
    lines = [
        "By category, valid / right:",
        "",
        f"| way | {' | '.join(categories)} |",
        "|---" * (len(categories) + 1) + "|",
    ]
    for name, outcomes in known.items():
        cells = []
        for category in categories:
            score = Score.of([each for each in outcomes if each.category == category])
            cells.append(f"{score.valid} / {score.right} of {score.asked}" if score.asked else "-")
        lines.append(f"| {WAYS[name].title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _forced(known: Outcomes) -> str:
    whole = [outcome for outcome in forced(known) if not outcome.cut]
    valid = sum(outcome.valid for outcome in whole)
    return f"Of {len(forced(known))} forced replies {len(whole)} were not cut, and {valid} of these are valid calls."


def _styles(known: Outcomes) -> str:
    full, compact = (Score.of(known.get(name, ())) for name in ("xml", "compact"))
    share = compact.prompt_tokens / max(full.prompt_tokens, 1)
    return f"`compact` took {share:.0%} of the prompt tokens of `full`."


def write(known: Outcomes) -> None:
    """Put the figures into the page, between its marks; the words around them stay."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    where = f"One thread of a processor ({platform.machine()}); at most {LIMITS.tokens} tokens a reply."
    PAGE.write_text(f"{before}{BEGIN}\n{where}\n\n{tables(known)}\n{END}{after}", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page, and say whether forced calls were valid."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", default=",".join(ASKED), help="short names of the ways, with commas between them")
    parser.add_argument("--resume", action="store_true", help="go on with what --raw holds")
    parser.add_argument("--raw", type=Path, default=RAW, help="where what came of each prompt is kept")
    given = parser.parse_args(arguments)
    known = read(given.raw) if given.resume and given.raw.exists() else {}
    measure(given.ways.split(","), known, given.raw)
    known = {name: known[name] for name in WAYS if name in known}
    write(known)
    print(tables(known))
    for outcome in broken(known):
        print(f"forced, whole and not valid: {outcome}", file=sys.stderr)
    return 1 if broken(known) else 0


if __name__ == "__main__":
    sys.exit(main())

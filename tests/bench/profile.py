"""Where the product's time goes: its stack is looked at every millisecond of CPU time, while it is under load.

    python -m tests.bench --profile

A profiler that counts calls would make small functions look dear; this one disturbs nothing. ``self`` is the share of
the time in a function's own lines (and in C that they call), ``all`` that with what it calls.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tests.bench.programs import SERVE, load, product

EVERY = 0.001
MOST_SHOWN = 45
LOADS: tuple[tuple[str, str, dict[str, float], dict[str, float]], ...] = (
    ("whole requests", "requests", {"count": 100}, {"count": 3000, "connections": 8}),
    ("streams", "streams", {"seconds": 1.0}, {"count": 50, "rate": 50, "seconds": 8.0}),
)
"""What is shown, the kind of load, and what it wants: for a warm up, and then."""

_KEPT_PARTS = 3


def show(port: int) -> None:
    """Print the profile of whole requests and of streams, in front of the backend at ``port``."""
    for title, kind, warm, wants in LOADS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "samples"
            code = f"from tests.bench.profile import watch; watch({str(file)!r}); {SERVE}"
            with product(port, begin=("-c", code)) as program:
                load(program, kind, **{**wants, **warm})
                os.kill(program.process, signal.SIGUSR1)
                load(program, kind, **wants)
            print(f"\n{title}\n{_table(json.loads(file.read_text()))}")


def watch(file: str) -> None:
    """In the product's process: look from SIGUSR1 on, and write what was seen at its end."""
    alone: Counter[str] = Counter()
    within: Counter[str] = Counter()

    def look(number: int, frame: FrameType | None) -> None:
        names = list(_names(frame))
        if names:
            alone[names[0]] += 1
            within.update(set(names))

    def begin(number: int, frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)

    def end() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        Path(file).write_text(json.dumps({"alone": alone, "within": within}))

    signal.signal(signal.SIGPROF, look)
    signal.signal(signal.SIGUSR1, begin)
    atexit.register(end)


def _names(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        code = frame.f_code
        yield f"{'/'.join(Path(code.co_filename).parts[-_KEPT_PARTS:])}:{code.co_qualname}"
        frame = frame.f_back


def _table(seen: dict[str, dict[str, int]]) -> str:
    alone, within = Counter(seen["alone"]), Counter(seen["within"])
    total = sum(alone.values()) or 1
    lines = [f"{total} samples", f"{'self':>6}{'all':>7}"]
    for name, count in alone.most_common(MOST_SHOWN):
        lines.append(f"{count / total:6.1%}{within[name] / total:7.1%}  {name}")
    lines.append("with what they call")
    for name, count in within.most_common(MOST_SHOWN):
        lines.append(f"{alone[name] / total:6.1%}{count / total:7.1%}  {name}")
    return "\n".join(lines)

"""Whether the proxy's memory stays flat: ``python -m tests.bench.soak [--streams 200] [--minutes 10] [--keeping]``.

The proxy and a scripted backend are processes of their own. So many clients ask one thing after another: streams, whole
calls, long arguments, conversations, broken requests; and some leave in the middle. What the proxy keeps on purpose, up
to a bound, is left out unless ``--keeping`` is given: the inspector's exchanges, and the answers that Responses may
refer to; both have come to their bound when the first third of the time is over, which warms up. The exit code is 1 if
the resident memory grew by more than a tenth after that, if files were left open, if the proxy counted an error of its
own, or if it was not well in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import uvloop

from tests.bench.programs import SERVE, Program, backend, started

SAMPLES = 60
GROWTH = 0.1
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
TOOL = {
    "name": "write_file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the proxy held at a time (``at``, seconds): megabytes of resident memory, open files."""

    at: float
    megabytes: float
    files: int


@dataclass(slots=True)
class Soak:
    """The load. ``outcomes`` are how requests ended: by status, ``left`` or the name of an exception."""

    url: str
    until: float
    keeping: bool
    outcomes: Counter[str] = field(default_factory=Counter)

    async def client(self, number: int) -> None:
        """One client, until the time is over."""
        dice = random.Random(number)
        async with httpx2.AsyncClient(base_url=self.url, timeout=120, trust_env=False, verify=False) as http:
            while time.monotonic() < self.until:
                try:
                    self.outcomes[await self._one(http, dice)] += 1
                except httpx2.HTTPError as error:
                    self.outcomes[type(error).__name__] += 1

    async def _one(self, http: httpx2.AsyncClient, dice: random.Random) -> str:
        surface = dice.choice(list(PATHS))
        turns = [{"role": "user", "content": "What now? " * dice.randrange(1, 200)}] * dice.choice((1, 1, 3, 21))
        script = dice.choices(("text-20", "call-1", "write-50000"), (8, 2, 1))[0]
        asked: dict[str, object] = {
            "model": script,
            "stream": script != "call-1",
            "max_tokens": dice.randrange(20, 200),
        }
        asked["input" if surface == "responses" else "messages"] = turns
        asked |= {"tools": [_tool(surface)], "store": self.keeping}
        content = b"{" if dice.random() < 0.02 else json.dumps(asked).encode()
        leaves = dice.random() < 0.1
        async with http.stream("POST", PATHS[surface], content=content) as answer:
            async for _ in answer.aiter_raw():
                if leaves and dice.random() < 0.1:
                    return "left"
            return str(answer.status_code)


def _tool(surface: str) -> dict[str, object]:
    match surface:
        case "messages":
            return {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
        case "responses":
            return {"type": "function", **TOOL}
    return {"type": "function", "function": TOOL}


def sample(process: int, since: float) -> Sample:
    """What a process holds now."""
    status = Path(f"/proc/{process}/status").read_text()
    kilobytes = int(status.partition("VmRSS:")[2].split()[0])
    return Sample(time.monotonic() - since, kilobytes / 1024, len(list(Path(f"/proc/{process}/fd").iterdir())))


def slope(samples: Sequence[Sample]) -> float:
    """Megabytes a minute, by least squares."""
    return statistics.linear_regression([each.at / 60 for each in samples], [each.megabytes for each in samples]).slope


async def soak(
    url: str, process: int, streams: int, minutes: float, *, keeping: bool
) -> tuple[list[Sample], Counter[str]]:
    """Samples while clients ask, and how their requests ended."""
    begun = time.monotonic()
    work = Soak(url, begun + minutes * 60, keeping)
    samples = [sample(process, begun)]
    async with asyncio.TaskGroup() as clients:
        for number in range(streams):
            clients.create_task(work.client(number))
        while time.monotonic() < work.until:
            await asyncio.sleep(minutes * 60 / SAMPLES)
            samples.append(sample(process, begun))
            if len(samples) % 6 == 1:
                last = samples[-1]
                done = work.outcomes.total()
                print(f"{last.at:6.0f} s {last.megabytes:8.1f} MB {last.files:6} files {done:8,} requests", flush=True)
    return samples, work.outcomes


async def well(url: str) -> str:
    """What the proxy counts in the end, of errors of its own. Raises when it does not answer."""
    async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False, verify=False) as http:
        (await http.get("/health")).raise_for_status()
        page = (await http.get("/metrics")).text
    return "\n".join(line for line in page.splitlines() if 'fault="proxy"' in line)


def proxy_before(port: int, *, keeping: bool) -> contextlib.AbstractContextManager[Program]:
    """``toolgraft serve`` in front of the backend at ``port``."""
    command = ["-c", SERVE, "serve", "--backend", f"http://127.0.0.1:{port}/v1", "--port", "0"]
    command += ["--inspector", "on" if keeping else "off"]
    return started("toolgraft", command, r"Toolgraft listens on http://127\.0\.0\.1:(\d+)/v1 .*")


def main() -> int:
    """Print the samples and the verdict."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--streams", type=int, default=200)
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--keeping", action="store_true", help="with what is kept on purpose, as by default")
    given = options.parse_args()
    with backend() as model, proxy_before(model.port, keeping=given.keeping) as proxy:
        url = f"http://127.0.0.1:{proxy.port}"
        before = sample(proxy.process, time.monotonic())
        samples, outcomes = uvloop.run(soak(url, proxy.process, given.streams, given.minutes, keeping=given.keeping))
        time.sleep(2.0)
        after = sample(proxy.process, time.monotonic())
        own = uvloop.run(well(url))
    warm = [each for each in samples if each.at > given.minutes * 20]
    early, late = (statistics.mean(each.megabytes for each in part) for part in (warm[:10], warm[-10:]))
    print(f"requests: {', '.join(f'{count:,} {name}' for name, count in outcomes.most_common())}")
    print(f"memory, MB: {before.megabytes:.1f} at the start, {early:.1f} warm, {late:.1f} at the end")
    print(f"memory, MB: {after.megabytes:.1f} idle; once warm {slope(warm):+.2f} a minute")
    print(f"files: {before.files} at the start, {after.files} idle")
    faults = []
    if late > early * (1 + GROWTH):
        faults.append("memory grew")
    if after.files > before.files + given.streams + 8:  # idle connections to the backend are kept for a minute
        faults.append("files were left open")
    if own:
        faults.append(f"the proxy failed: {own}")
    print("flat" if not faults else "; ".join(faults))
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())

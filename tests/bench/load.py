"""The load, in its own process: ``python -m tests.bench.load JSON`` sends it, and prints what was measured as JSON.

A job is ``{"kind": …, "port": …, "process": …}`` and what its kind wants; ``process`` is whose CPU time and memory are
read while the load runs.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from typing import Any

import uvloop

from tests.bench.clocks import cpu, memory, now, since, stamps
from tests.bench.http1 import Message, request

PATH = b"/v1/chat/completions"
WARM_UP = 0.2
"""The share of requests, or of a stream's time, that comes before anything is counted."""

BEGIN = 200
"""Of very many streams, those that begin in a second."""

OUT_OF_STEP = (5**0.5 - 1) / 2
"""The part of the time between two tokens by which each stream begins later than in step with the one before: else the
tokens of all would come at the same moment, and the time that they wait for one another would be measured.
"""

Result = dict[str, float]


def tool(name: str, **types: str) -> dict[str, object]:
    """A tool as a client offers it."""
    properties = {key: {"type": kind, "description": f"The {key}, as a {kind}."} for key, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(types)}
    described = {
        "name": name,
        "description": f"Use this to {name.replace('_', ' ')} for the user.",
        "parameters": schema,
    }
    return {"type": "function", "function": described}


TOOLS = [
    tool("get_weather", city="string", unit="string"),
    tool("write_file", path="string", content="string"),
    tool("search", query="string", limit="integer"),
]


def asked(model: str, **more: object) -> bytes:
    """A request with three tools and a short conversation."""
    messages = [
        {"role": "system", "content": "You are a helpful assistant. Answer in one sentence where that is enough."},
        {"role": "user", "content": "What is the weather in Paris today? I would like to go for a walk."},
    ]
    return request(PATH, json.dumps({"model": model, "messages": messages, "tools": TOOLS, **more}).encode())


class Client(asyncio.Protocol):
    """A connection: one request after another. ``came`` hears what comes, ``ended`` that an answer is whole."""

    def __init__(self, came: Callable[[bytes], None], ended: Callable[[Client], None]) -> None:
        self._came = came
        self._ended = ended
        self._message = Message()
        self.gone = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True

    def send(self, data: bytes) -> None:
        self._message = Message()
        self.sent = now()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self._came(self._message.feed(data))
        if self._message.ended:
            if b" 200 " not in (self._message.head or b"").partition(b"\r\n")[0]:
                raise SystemExit(f"an answer was {self._message.head!r}")
            self._ended(self)


async def connect(port: int, came: Callable[[bytes], None], ended: Callable[[Client], None]) -> Client:
    """A connection to a port of this machine."""
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Client(came, ended), "127.0.0.1", port)
    return client


async def requests(port: int, process: int, count: int, connections: int) -> Result:
    """Whole answers with one call in each, as many at a time as there are connections."""
    payload = asked("call")
    done = asyncio.Event()
    taken: list[int] = []
    warm = int(count * WARM_UP)
    begun, since_when = 0.0, 0

    def ended(client: Client) -> None:
        nonlocal begun, since_when
        taken.append(now() - client.sent)
        if len(taken) == warm:
            begun, since_when = cpu(process), now()
        elif len(taken) == count:
            done.set()
        if len(taken) < count:
            client.send(payload)

    clients = [await connect(port, lambda data: None, ended) for _ in range(connections)]
    for client in clients:
        client.send(payload)
    await done.wait()
    spent, lasted = cpu(process) - begun, (now() - since_when) / 1e6
    counted = count - warm
    return {
        "cpu_us": spent / counted * 1e6,
        "median_us": statistics.median(taken[warm:]),
        "a_second": counted / lasted,
    }


async def streams(
    port: int, process: int, count: int, rate: float, seconds: float, spread: float | None = None
) -> Result:
    """So many streams at a time, each of ``rate`` tokens a second. They begin one after another, within ``spread``."""
    delays: list[int] = []
    firsts: list[int] = []
    counting = False
    left = count
    tokens = 0
    done = asyncio.Event()
    payload = asked(f"text-{rate:g}", stream=True, max_tokens=int(rate * seconds))

    def ended(client: Client) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    def listener() -> Callable[[bytes], None]:
        begun = False

        def came(data: bytes) -> None:
            nonlocal begun, tokens
            at = now()
            told = [since(sent, at) for sent in stamps(data)]
            if told and not begun:
                begun = True
                firsts.append(at - clients[came].sent)
            if counting:
                tokens += len(told)
                delays.extend(told)

        return came

    clients: dict[Callable[[bytes], None], Client] = {}
    for _ in range(count):
        came = listener()
        clients[came] = await connect(port, came, ended)
    loop = asyncio.get_running_loop()
    start = loop.time()
    spread = min(seconds * WARM_UP, 1.0) if spread is None else spread
    begins = sorted(spread * at / count + at * OUT_OF_STEP % 1 / rate for at in range(count))
    for begin, client in zip(begins, clients.values(), strict=True):
        await asyncio.sleep(max(0.0, start + begin - loop.time()))
        client.send(payload)
    await asyncio.sleep(seconds * WARM_UP / 2)
    counting, begun = True, cpu(process)
    await asyncio.sleep(seconds * (1 - 2 * WARM_UP))
    counting, spent = False, cpu(process) - begun
    await done.wait()
    delays.sort()
    return {
        "cpu_us": spent / tokens * 1e6,
        "median_us": delays[len(delays) // 2],
        "p99_us": delays[len(delays) * 99 // 100],
        "worst_us": delays[-1],
        "first_us": statistics.median(firsts),
    }


async def argument(port: int, process: int, size: int) -> Result:
    """One stream with a call whose argument has so many characters."""
    done = asyncio.Event()
    came = 0

    def heard(data: bytes) -> None:
        nonlocal came
        came += len(data)

    client = await connect(port, heard, lambda client: done.set())
    begun, at = cpu(process), now()
    client.send(asked(f"write-{size}", stream=True))
    await done.wait()
    if came < size:
        raise SystemExit(f"of an argument of {size} bytes an answer of {came} came")
    return {"cpu_s": cpu(process) - begun, "s": (now() - at) / 1e6}


async def open_streams(port: int, process: int, count: int) -> Result:
    """What the process holds more while so many streams are open, which say little."""
    payload = asked("text-1", stream=True, max_tokens=100)

    def nothing(told: object) -> None:
        pass

    async def begin(number: int) -> list[Client]:
        found = [await connect(port, nothing, nothing) for _ in range(number)]
        for client in found:
            client.send(payload)
        await asyncio.sleep(2.0)
        return found

    first = await begin(count // 4)  # with them come pools and caches that stay
    before = memory(process)
    clients = await begin(count)
    after = memory(process)
    if any(client.gone for client in clients):
        raise SystemExit("a stream broke off")
    for client in [*first, *clients]:
        client.transport.abort()
    return {"bytes": (after - before) / count}


async def many(port: int, process: int, count: int, rate: float, seconds: float) -> Result:
    """Very many streams at a time, and the share of a core that they take."""
    at = now()
    begun = cpu(process)
    found = await streams(port, process, count, rate, seconds, spread=count / BEGIN)
    return {**found, "load": (cpu(process) - begun) / ((now() - at) / 1e6)}


KINDS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (requests, streams, argument, open_streams, many)
}


def main(arguments: Iterable[str]) -> None:
    """Do one job."""
    (text,) = arguments
    job = json.loads(text)
    kind = KINDS[job.pop("kind")]
    print(json.dumps(uvloop.run(kind(**job))))


if __name__ == "__main__":
    main(sys.argv[1:])

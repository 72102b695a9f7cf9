"""A backend that misbehaves in every way, and clients that leave: each request ends right, and nothing is left behind.

    TOOLGRAFT_CHAOS=50 pytest tests/chaos      50 seeds of each case instead of one

Everything runs in one event loop: the proxies as they are served, the backend and the clients, over loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import re
import resource
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from proxy.asgi import Exchange
from proxy.config import BackendConfig, Config, DispatcherName
from proxy.relay import native, pump, rescue
from proxy.relay.pump import Pump
from proxy.server import Server, bind
from proxy.transport.reply import UpstreamReply
from tests.chaos.answers import SURFACES, Got
from tests.chaos.upstream import CALL, FAULTS, TEXT, Upstream

SEEDS = range(int(os.environ.get("TOOLGRAFT_CHAOS", "1")))
MODES: tuple[DispatcherName, ...] = ("xml", "native", "auto")
LIMIT = 30.0
"""Seconds in which any request must have ended, whatever the backend does."""

HEAVY = frozenset({"a_line_of_a_gigabyte", "a_bomb"})
"""Cases that move much data: only some of their combinations are tried, one after another."""

OF_THE_LOOP = 2
"""Files that an event loop opens for itself when it first needs them."""

MOST_MEMORY = 400 * 1024 * 1024
"""Bytes by which the whole process, backend and clients included, may grow over one of those."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


@dataclass
class World:
    upstream: Upstream
    urls: dict[str, str]
    client: httpx2.AsyncClient
    servers: list[Server]

    async def ask(self, mode: str, surface: str, model: str, stream: bool, tools: bool) -> Got:
        asked = SURFACES[surface]
        async with asyncio.timeout(LIMIT):
            answer = await self.client.post(self.urls[mode] + asked.path, json=asked.body(model, stream, tools))
        return asked.read(answer)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0


def alive() -> list[str]:
    """What is still there of requests, once the connections are closed that they came on."""
    gc.collect()
    kinds = (Exchange, Pump, UpstreamReply)
    return [type(each).__name__ for each in gc.get_objects() if type(each) in kinds]


@pytest.fixture(scope="module", autouse=True)
def _impatient() -> Iterator[None]:
    """Servers that fall silent when all is said are not waited for as long as in earnest."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (native, pump, rescue):
            patch.setattr(module, "PATIENCE", 0.2)
        yield


async def serve(config: Config) -> tuple[Server, asyncio.Task[None]]:
    """A proxy that listens, and the task that ends with it."""
    ready = asyncio.Event()
    bound = bind(config.host, config.port)
    server = Server(config, bound, lambda url: ready.set())
    task = asyncio.create_task(server.serve([bound]))
    await ready.wait()
    return server, task


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    before = open_files()
    upstream = Upstream()
    await upstream.start()
    servers: list[Server] = []
    serving: list[asyncio.Task[None]] = []
    urls: dict[str, str] = {}
    for mode in MODES:
        config = Config(
            (
                BackendConfig(
                    f"http://127.0.0.1:{upstream.port}", dispatcher=mode, reask=0, max_concurrent=64, max_queue=10_000
                ),
            ),
            port=0,
            first_byte_timeout=1.5,
            idle_timeout=1.5,
            shutdown_timeout=5,
        )
        server, task = await serve(config)
        servers.append(server)
        serving.append(task)
        urls[mode] = server.url
    async with httpx2.AsyncClient(timeout=LIMIT, trust_env=False, verify=False, limits=httpx2.Limits()) as client:
        yield World(upstream, urls, client, servers)
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*serving)
    await upstream.stop()
    for _ in range(100):
        if open_files() <= before + OF_THE_LOOP:
            break
        await asyncio.sleep(0.01)
    assert open_files() <= before + OF_THE_LOOP


def seed_of(*parts: object) -> int:
    return zlib.crc32(repr(parts).encode())


def judge(name: str, got: Got, mode: str, tools: bool) -> None:
    """Whether what a client got is right for a case."""
    assert got.outcome in FAULTS[name].outcomes, got
    if name in ("of_another_shape", "broken_text"):
        return
    calls = (("f", {"n": 1}),) if tools and mode != "native" else ()
    text = TEXT + CALL if tools and mode == "native" else TEXT
    if got.outcome == "answer":
        assert got.text.strip() == text.strip()
        assert got.calls == calls
    else:
        assert (TEXT + CALL).startswith(got.text.rstrip())


async def quiet(world: World) -> None:
    """Wait until nobody is being answered any more."""
    async with asyncio.timeout(LIMIT):
        while world.upstream.active or any(server.server_state.tasks for server in world.servers):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - HEAVY))
async def test_every_request_ends_right(world: World, name: str) -> None:
    async def one(mode: str, surface: str, stream: bool, seed: int) -> None:
        dice = random.Random(seed_of(name, mode, surface, stream, seed))
        tools = dice.random() < 0.5
        model = f"{name}-{dice.randrange(10**9)}"
        try:
            judge(name, await world.ask(mode, surface, model, stream, tools), mode, tools)
        except BaseException as error:
            error.add_note(f"{model} over {mode}, {surface}, stream={stream}, tools={tools}")
            raise

    for seed in SEEDS:
        cases = [one(mode, surface, stream, seed) for mode in MODES for surface in SURFACES for stream in (False, True)]
        await asyncio.gather(*cases)
    await quiet(world)


@pytest.mark.parametrize("name", sorted(HEAVY))
async def test_what_never_ends_is_given_up_with_little_in_memory(world: World, name: str) -> None:
    for mode, stream in (("xml", True), ("native", True), ("native", False)):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        judge(name, await world.ask(mode, "chat", f"{name}-1", stream, False), mode, False)
        await quiet(world)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown * 1024 < MOST_MEMORY


async def test_a_backend_that_is_not_there_is_told() -> None:
    with bind("127.0.0.1", 0) as unused:
        port = unused.getsockname()[1]
    config = Config((BackendConfig(f"http://127.0.0.1:{port}", dispatcher="xml"),), port=0)
    server, serving = await serve(config)
    async with httpx2.AsyncClient(timeout=LIMIT, trust_env=False, verify=False) as client:
        for surface in SURFACES.values():
            for stream in (False, True):
                answer = await client.post(server.url + surface.path, json=surface.body("m", stream, False))
                assert surface.read(answer).outcome == "error"
                assert str(port) in answer.text
    server.should_exit = True
    await serving


async def test_a_backend_that_comes_back_is_used_again(world: World) -> None:
    for name in ("hung_up", "reset", "garbage_behind_the_reply", "a_redirect", "plain"):
        for mode in MODES:
            with contextlib.suppress(AssertionError):
                await world.ask(mode, "chat", f"{name}-1", False, False)
            assert (await world.ask(mode, "chat", "plain-1", False, False)).outcome == "answer"


@pytest.mark.parametrize("name", ["plain", "slow", "silent", "silent_in_the_middle", "a_line_of_a_gigabyte"])
async def test_clients_that_leave_take_everything_with_them(world: World, name: str) -> None:
    async def one(mode: str, surface: str, stream: bool, seed: int) -> None:
        dice = random.Random(seed_of("leave", name, mode, surface, stream, seed))
        asked = SURFACES[surface]
        with contextlib.suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(dice.random() / 5):
                body = asked.body(f"{name}-{seed}", stream, dice.random() < 0.5)
                async with world.client.stream("POST", world.urls[mode] + asked.path, json=body) as answer:
                    async for _ in answer.aiter_raw():
                        if dice.random() < 0.2:
                            return

    for seed in SEEDS:
        cases = [one(mode, surface, stream, seed) for mode in MODES for surface in SURFACES for stream in (False, True)]
        await asyncio.gather(*cases)
    await quiet(world)


async def test_nothing_is_left(world: World) -> None:
    await quiet(world)
    for url in world.urls.values():
        page = (await world.client.get(url + "/metrics")).text
        for gauge, left in (("backend_requests", 0), ("backend_queue", 0), ("requests_in_progress", 1)):
            assert re.findall(rf"^toolgraft_{gauge}(?:{{.*}})? (.*)$", page, re.MULTILINE) == [f"{left}.0"]
    await world.client.aclose()
    for _ in range(50):
        if not alive():
            break
        await asyncio.sleep(0.1)
    assert not alive()

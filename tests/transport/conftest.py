"""The transport is tried on both event loops: asyncio's own, and uvloop, on which the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec

import pytest
import pytest_asyncio

from proxy.transport import failures
from proxy.transport.address import Proxies
from proxy.transport.upstream import Upstream


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if find_spec("uvloop"):
        import uvloop

        factories["uvloop"] = uvloop.new_event_loop
    return factories


@pytest.fixture(autouse=True)
def outside_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "in_container", lambda: False)


@pytest_asyncio.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream(proxies=Proxies({})) as client:
        yield client

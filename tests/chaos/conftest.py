"""The event loop that serves in earnest, where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    if not find_spec("uvloop"):
        return {"asyncio": asyncio.new_event_loop}
    import uvloop

    return {"uvloop": uvloop.new_event_loop}

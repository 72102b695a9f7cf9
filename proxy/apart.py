"""Work that takes long for a large request is done beside the event loop, so that other requests do not wait for it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

LARGE = 256 * 1024
"""Bytes of a request from which on it counts as large: a conversation of that size takes some 50 ms to be rendered."""

AT_ONCE = 2
"""Large requests that are worked on at a time. They share the interpreter with the event loop, so more gain nothing."""

Result = TypeVar("Result")


async def apart(size: int, work: Callable[[], Result]) -> Result:
    """What ``work`` gives, or raises, for a request of ``size`` bytes.

    Who is cancelled meanwhile does not wait for the work to end.
    """
    if size < LARGE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="toolgraft-large")

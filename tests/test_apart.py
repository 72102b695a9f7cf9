from __future__ import annotations

import asyncio
import threading

import pytest

from proxy.apart import AT_ONCE, LARGE, apart


async def test_small_work_is_done_on_the_spot() -> None:
    assert await apart(LARGE - 1, threading.current_thread) is threading.current_thread()


async def test_large_work_does_not_hold_up_the_loop() -> None:
    let_go = threading.Event()
    work = asyncio.create_task(apart(LARGE, lambda: let_go.wait(10)))
    await asyncio.sleep(0)
    assert not work.done()
    let_go.set()
    assert await work


async def test_an_error_is_the_caller_s() -> None:
    with pytest.raises(ZeroDivisionError):
        await apart(LARGE, lambda: 1 // 0)


async def test_who_leaves_does_not_wait() -> None:
    let_go = threading.Event()
    work = asyncio.create_task(apart(LARGE, lambda: let_go.wait(10)))
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    let_go.set()


async def test_the_threads_are_few() -> None:
    let_go = threading.Event()
    running: set[str] = set()

    def work() -> None:
        running.add(threading.current_thread().name)
        let_go.wait(10)

    tasks = [asyncio.create_task(apart(LARGE, work)) for _ in range(10)]
    await asyncio.sleep(0.01)
    let_go.set()
    await asyncio.gather(*tasks)
    assert len(running) <= AT_ONCE

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from proxy.core.errors import UpstreamError
from proxy.relay.answers import Begun


class Source:
    def __init__(self, *items: int, failure: Exception | None = None) -> None:
        self._items = items
        self._failure = failure
        self.closed = False

    async def run(self) -> AsyncGenerator[int, None]:
        try:
            for item in self._items:
                yield item
            if self._failure:
                raise self._failure
        finally:
            self.closed = True


async def test_nothing_is_lost_by_waiting_for_the_first() -> None:
    assert [item async for item in await Begun.wait(Source(0, 1, 2).run())] == [0, 1, 2]
    assert [item async for item in await Begun.wait(Source().run())] == []


async def test_an_item_may_be_all_there_is() -> None:
    closed: list[bool] = []
    alone = Begun(1)
    alone.afterwards(lambda: closed.append(True))
    assert [item async for item in alone] == [1]
    await alone.aclose()
    assert closed == [True]


async def test_a_failure_before_the_first_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="early"):
        await Begun.wait(Source(failure=ValueError("early")).run())


@pytest.mark.parametrize("items", [(), (1,)])
async def test_a_backend_s_failure_is_amended_whenever_it_comes(items: tuple[int, ...]) -> None:
    def amend(error: UpstreamError) -> None:
        error.message = "amended"

    source = Source(*items, failure=UpstreamError("raw"))
    with pytest.raises(UpstreamError) as caught:
        [item async for item in await Begun.wait(source.run(), amend)]
    assert caught.value.message == "amended"


async def test_a_later_failure_is_told_in_its_place() -> None:
    begun = await Begun.wait(Source(1, failure=ValueError("late")).run())
    assert await anext(begun) == 1
    with pytest.raises(ValueError, match="late"):
        await anext(begun)


@pytest.mark.parametrize("read", [0, 1])
async def test_closing_it_closes_the_source_however_much_was_read(read: int) -> None:
    source = Source(1, 2, 3)
    begun = await Begun.wait(source.run())
    for _ in range(read):
        await anext(begun)
    await begun.aclose()
    assert source.closed
    with pytest.raises(StopAsyncIteration):
        await anext(begun)

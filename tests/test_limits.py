from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy.core.errors import ClientError
from proxy.limits import LONGEST_NAME, MOST_CLIENTS, Rate, Slots, Turns, check_counts


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("field", ["messages", "input", "tools", "functions"])
def test_more_entries_than_allowed_are_refused(field: str) -> None:
    check_counts({field: [{}] * 3}, messages=3, tools=3)
    with pytest.raises(ClientError, match=f"`{field}` has 4 entries; the proxy takes 3 at most") as caught:
        check_counts({field: [{}] * 4}, messages=3, tools=3)
    assert (caught.value.status, caught.value.param) == (400, field)


def test_names_of_models_are_kept_and_so_have_an_end() -> None:
    check_counts({"model": "m" * LONGEST_NAME}, messages=1, tools=1)
    with pytest.raises(ClientError, match="4,097 characters") as caught:
        check_counts({"model": "m" * (LONGEST_NAME + 1)}, messages=1, tools=1)
    assert (caught.value.status, caught.value.param) == (400, "model")


@pytest.mark.parametrize("raw", [{}, {"messages": None}, {"input": "hello there"}, {"tools": {"a": 1, "b": 2}}])
def test_what_is_no_list_is_not_counted(raw: Any) -> None:
    check_counts(raw, messages=1, tools=1)


def test_a_client_may_make_so_many_requests_at_once_and_then_as_many_as_time_gives() -> None:
    clock = Clock()
    rate = Rate(60, clock)
    for left in range(59, -1, -1):
        assert dict(rate.take("a"))["x-ratelimit-remaining-requests"] == str(left)
    with pytest.raises(ClientError, match=r"More than 60 requests a minute\. Try again in 1 s") as caught:
        rate.take("a")
    told = dict(caught.value.headers)
    assert (caught.value.status, told["retry-after"]) == (429, "1")
    assert told["x-ratelimit-limit-requests"] == "60"
    assert told["x-ratelimit-remaining-requests"] == "0"
    assert told["x-ratelimit-reset-requests"] == "60.000s"
    clock.now += 2
    rate.take("a")
    rate.take("a")
    with pytest.raises(ClientError):
        rate.take("a")


def test_a_bucket_never_holds_more_than_a_minute_s_worth() -> None:
    clock = Clock()
    rate = Rate(2, clock)
    rate.take("a")
    clock.now += 86_400
    rate.take("a")
    rate.take("a")
    with pytest.raises(ClientError, match="Try again in 30 s"):
        rate.take("a")


def test_refused_requests_do_not_put_off_the_next_one() -> None:
    clock = Clock()
    rate = Rate(1, clock)
    rate.take("a")
    for _ in range(100):
        with pytest.raises(ClientError):
            rate.take("a")
    clock.now += 60
    rate.take("a")


def test_clients_do_not_share_a_bucket() -> None:
    rate = Rate(1, Clock())
    rate.take("a")
    rate.take("b")


def test_the_clients_that_are_kept_are_bounded() -> None:
    rate = Rate(1, Clock())
    rate.take("first")
    for number in range(MOST_CLIENTS):
        rate.take(str(number))
    rate.take("first")  # forgotten
    with pytest.raises(ClientError):
        rate.take(str(MOST_CLIENTS - 1))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_slots_are_given_in_the_order_of_coming() -> None:
    slots = Slots(1, 10)
    give_back = await slots.take()
    order: list[int] = []

    async def work(number: int) -> None:
        done = await slots.take()
        order.append(number)
        await asyncio.sleep(0)
        done()

    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await settle()
    assert (slots.taken, slots.waiting, order) == (1, 5, [])
    give_back()
    late = asyncio.create_task(work(99))
    await asyncio.gather(*tasks, late)
    assert order == [0, 1, 2, 3, 4, 99]
    assert (slots.taken, slots.waiting) == (0, 0)


async def test_a_full_queue_is_told_with_the_time_that_a_place_takes_to_come_free() -> None:
    clock = Clock()
    slots = Slots(2, 1, clock)
    first = await slots.take()
    clock.now += 160
    first()
    held = [await slots.take(), await slots.take()]
    waiting = asyncio.create_task(slots.take())
    await settle()
    with pytest.raises(ClientError, match="works on 2 requests and 1 wait") as caught:
        await slots.take()
    assert (caught.value.status, caught.value.code) == (429, "queue_full")
    assert dict(caught.value.headers)["retry-after"] == "10"
    for give_back in held:
        give_back()
    (await waiting)()


async def test_who_leaves_the_queue_frees_the_place_at_once() -> None:
    slots = Slots(1, 1)
    give_back = await slots.take()
    leaving = asyncio.create_task(slots.take())
    await settle()
    leaving.cancel()
    await settle()
    assert slots.waiting == 0
    staying = asyncio.create_task(slots.take())
    await settle()
    give_back()
    (await staying)()
    assert slots.taken == 0


async def test_a_slot_that_is_given_to_one_who_leaves_goes_to_the_next() -> None:
    slots = Slots(1, 2)
    give_back = await slots.take()
    leaving, staying = (asyncio.create_task(slots.take()) for _ in range(2))
    await settle()
    give_back()
    leaving.cancel()
    (await asyncio.wait_for(staying, 1))()
    assert (slots.taken, slots.waiting) == (0, 0)


async def test_a_slot_is_given_back_once() -> None:
    slots = Slots(1, 0)
    give_back = await slots.take()
    give_back()
    give_back()
    await slots.take()
    with pytest.raises(ClientError):
        await slots.take()
    assert slots.taken == 1


async def test_turns_are_kept_as_long_as_the_limits_are() -> None:
    turns = Turns()
    give_back = await turns.of("a", 1, 0).take()
    assert turns.of("a", 1, 0).taken == 1
    assert [turns.of(*other).taken for other in (("b", 1, 0), ("a", 2, 0), ("a", 1, 5))] == [0, 0, 0]
    give_back()
    assert turns.of("a", 1, 0).taken == 0

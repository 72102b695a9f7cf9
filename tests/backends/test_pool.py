"""The replica with the fewest open requests, and what a failure does."""

from __future__ import annotations

import pytest

from proxy.backends.pool import FIRST_PAUSE, LONGEST_PAUSE, Pool


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pool(clock: Clock) -> Pool:
    return Pool(3, clock)


def test_the_one_with_the_fewest_open_requests_is_next_and_the_first_of_equals(pool: Pool) -> None:
    assert pool.choose() == 0
    end = pool.begin(0)
    assert pool.choose() == 1
    pool.begin(1)
    assert pool.choose() == 2
    pool.begin(2)
    assert pool.choose() == 0
    pool.begin(0)
    end()
    pool.begin(0)
    assert pool.choose() == 1


def test_a_request_ends_once(pool: Pool) -> None:
    end = pool.begin(0)
    end()
    end()
    pool.begin(1)
    assert pool.choose({2}) == 0
    pool.begin(0)
    pool.begin(0)
    assert pool.choose({2}) == 1


def test_one_that_is_down_comes_last(pool: Pool, clock: Clock) -> None:
    pool.failed(0)
    pool.begin(1)
    pool.begin(2)
    assert pool.choose() == 1
    assert pool.choose({1, 2}) == 0
    clock.now += FIRST_PAUSE
    assert pool.choose() == 0


def test_when_all_are_down_the_first_to_be_up_again_is_asked(pool: Pool, clock: Clock) -> None:
    pool.failed(2)
    clock.now += FIRST_PAUSE / 2
    pool.failed(0)
    pool.failed(1)
    assert pool.choose() == 2
    assert pool.choose({2}) == 0


def test_the_pause_grows_with_each_failure_and_ends_with_an_answer(pool: Pool, clock: Clock) -> None:
    pauses = []
    for _ in range(8):
        pauses.append(pool.failed(0))
        clock.now += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    pool.failed(0)
    pool.answered(0)
    assert pool.choose() == 0
    assert pool.failed(0) == FIRST_PAUSE


def test_requests_that_fail_together_are_one_failure(pool: Pool, clock: Clock) -> None:
    assert pool.failed(0) == FIRST_PAUSE
    clock.now += FIRST_PAUSE / 4
    assert pool.failed(0) == FIRST_PAUSE * 3 / 4
    clock.now += FIRST_PAUSE
    assert pool.failed(0) == 2 * FIRST_PAUSE


def test_one_request_tries_whether_a_replica_is_well_again(pool: Pool, clock: Clock) -> None:
    pool.failed(0)
    clock.now += FIRST_PAUSE
    for busy in (1, 2):
        pool.begin(busy)
    assert pool.choose() == 0
    end = pool.begin(0)
    assert pool.choose() == 1
    assert pool.choose({1, 2}) == 0
    end()  # given up before there was an answer
    assert pool.choose() == 0
    pool.begin(0)
    for busy in (1, 2):
        pool.begin(busy)
    assert pool.choose() == 1
    pool.answered(0)
    assert pool.choose() == 0
    pool.begin(0)
    pool.begin(0)
    assert pool.choose() == 1


def test_when_all_were_tried_there_is_none(pool: Pool) -> None:
    with pytest.raises(ValueError, match="empty"):
        pool.choose({0, 1, 2})

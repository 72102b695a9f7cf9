from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy.inspector.ring import Entry, Ring
from proxy.telemetry import RequestLog


def begin(ring: Ring, headers: Any = (), secrets: Any = ()) -> Entry:
    return ring.begin(RequestLog("r1", "chat"), "POST", "/v1/chat/completions", headers, secrets)


def said(entry: Entry, size: int) -> Entry:
    assert entry.tape is not None
    entry.tape.told.add(b"x" * size)
    return entry


def numbers(ring: Ring, since: int = 0) -> list[int]:
    return [entry.number for entry in ring.since(since)]


def test_only_the_last_exchanges_are_kept() -> None:
    ring = Ring(3, 1000)
    for _ in range(5):
        ring.end(said(begin(ring), 10))
    assert numbers(ring) == [3, 4, 5]
    assert ring.held == 30
    assert ring.get(2) is None
    entry = ring.get(4)
    assert entry is not None
    assert not entry.running


def test_what_was_said_goes_before_its_line_does() -> None:
    ring = Ring(10, 100)
    first = said(begin(ring), 60)
    ring.end(first)
    second = said(begin(ring), 60)
    assert first.tape is None
    assert second.tape is not None
    assert (numbers(ring), ring.held) == ([1, 2], 60)


def test_what_is_being_said_is_not_pushed_out() -> None:
    ring = Ring(10, 100)
    first = said(begin(ring), 80)
    second = said(begin(ring), 80)
    assert first.tape is not None
    assert second.tape is not None
    assert (len(second.tape.told.data), second.tape.told.cut, ring.held) == (0, True, 80)


def test_an_exchange_that_outlives_its_place_is_forgotten() -> None:
    ring = Ring(1, 1000)
    first = said(begin(ring), 10)
    said(begin(ring), 20)
    assert first.tape is None
    assert first.log.tape is None
    ring.end(first)
    assert ring.held == 20


def test_headers_that_may_hold_secrets_are_not_kept() -> None:
    headers = [(b"authorization", b"Bearer k"), (b"cookie", b"k"), (b"x-own", b"k"), (b"user-agent", b"curl")]
    entry = begin(Ring(1, 100), [*headers, (b"host", b"h"), (b"x-stainless-lang", b"python")])
    assert entry.headers == [("user-agent", "curl"), ("host", "h"), ("x-stainless-lang", "python")]


def test_the_secrets_are_known_no_longer_than_needed() -> None:
    ring = Ring(1, 100)
    entry = begin(ring, secrets=["sk-12345678"])
    assert entry.tape is not None
    entry.tape.told.add(b"sk-12345678")
    ring.end(entry)
    assert bytes(entry.tape.told.data) == b"[the key]"


def test_room_that_was_taken_is_given_back_whole() -> None:
    ring = Ring(1, 100)
    for _ in range(50):
        entry = begin(ring, secrets=["sk-1234567890123456"])
        assert entry.tape is not None
        entry.tape.told.add(b"sk-1234567890123456")
        turn = entry.tape.turn("http://there", b"sk-1234567890123456")
        turn.came.add(b"sk-1234567890123456")
        assert not turn.came.cut
        ring.end(entry)
    assert ring.held < 100


async def test_changes_are_told_as_they_come() -> None:
    ring = Ring(10, 100)
    first, second = begin(ring), begin(ring)
    seen = ring.revision
    assert numbers(ring, seen) == []
    waiting = asyncio.create_task(ring.changed(seen, 60))
    await asyncio.sleep(0)
    ring.end(first)
    await waiting
    assert numbers(ring, seen) == [1]
    ring.end(second)
    await ring.changed(seen, 60)
    assert numbers(ring, seen) == [1, 2]


async def test_waiting_has_an_end() -> None:
    ring = Ring(10, 100)
    await ring.changed(ring.revision, 0.001)
    assert numbers(ring) == []


@pytest.mark.parametrize(("size", "most"), [(0, 0), (5, 0), (0, 5)])
def test_no_room_at_all(size: int, most: int) -> None:
    ring = Ring(1, most)
    ring.end(said(begin(ring), size))
    assert ring.held <= most

"""How much there may be: in one request, of one client in a minute, and for one backend at a time."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from proxy.core.errors import ClientError
from proxy.core.model import Json

MOST_CLIENTS = 10_000
"""Clients whose rates are kept. Whoever was not seen for longest is forgotten, and starts anew."""

LONGEST_NAME = 4096
"""Characters of a model's name, which may be the path of a file. What is known of models is kept by their names."""

LONGEST_WAIT = 60
"""Seconds after which to try again that are told at most: SDKs do not wait for longer."""

Headers = tuple[tuple[str, str], ...]


def check_counts(raw: Mapping[str, Json], *, messages: int, tools: int) -> None:
    """Raise ``ClientError`` when a request, on any surface, has more messages or tools, or too long a model's name."""
    model = raw.get("model")
    if isinstance(model, str) and len(model) > LONGEST_NAME:
        raise ClientError(
            f"`model` has {len(model):,} characters; the proxy takes {LONGEST_NAME:,} at most.",
            code="string_above_max_length",
            param="model",
        )
    for field, most in (("messages", messages), ("input", messages), ("tools", tools), ("functions", tools)):
        given = raw.get(field)
        if isinstance(given, list) and len(given) > most:
            raise ClientError(
                f"`{field}` has {len(given):,} entries; the proxy takes {most:,} at most.",
                code="array_above_max_length",
                param=field,
            )


class Rate:
    """A number of requests a minute for each client: a bucket of so many tokens, which fills up all the time.

    ``clock`` gives seconds.
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = a_minute
        self._a_second = a_minute / 60
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # the tokens, and when there were so many

    def take(self, client: str) -> Headers:
        """Count a request. Returns what its answer says of the rate, in the words of OpenAI's.

        Raises ``ClientError`` (429) when it is one too many; that does not count.
        """
        now = self._clock()
        tokens, since = self._buckets.get(client, (float(self.most), now))
        tokens = min(float(self.most), tokens + (now - since) * self._a_second)
        admitted = tokens >= 1
        tokens -= admitted
        self._buckets[client] = tokens, now
        self._buckets.move_to_end(client)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        headers = (
            ("x-ratelimit-limit-requests", str(self.most)),
            ("x-ratelimit-remaining-requests", str(int(tokens))),
            ("x-ratelimit-reset-requests", f"{(self.most - tokens) / self._a_second:.3f}s"),
        )
        if admitted:
            return headers
        wait = math.ceil((1 - tokens) / self._a_second)
        raise ClientError(
            f"More than {self.most} requests a minute. Try again in {wait} s.",
            status=429,
            type="rate_limit_error",
            code="rate_limit_exceeded",
            headers=(("retry-after", str(wait)), *headers),
        )


class Slots:
    """The requests that a backend works on ``at_once``, and those that wait for their turn, first come first served.

    ``at_once`` None is any number. More than ``waiting`` are not let in. ``clock`` gives seconds.
    """

    def __init__(self, at_once: int | None, waiting: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.taken = 0
        self.waiting = 0
        self._at_once = sys.maxsize if at_once is None else at_once
        self._most_waiting = waiting
        self._clock = clock
        self._free = None if at_once is None else asyncio.Semaphore(at_once)
        self._held_for = 0.0  # seconds, on average, of late

    async def take(self) -> Callable[[], None]:
        """Wait for a slot. What is returned gives it back, once, however often it is called.

        Who is cancelled gives up the place at once. Raises ``ClientError`` (429) when too many wait already.
        """
        if self._free is not None:
            await self._wait(self._free)
        self.taken += 1
        since = self._clock()
        given_back = False

        def give_back() -> None:
            nonlocal given_back
            if not given_back:
                given_back = True
                self.taken -= 1
                self._held_for += (self._clock() - since - self._held_for) / 8
                if self._free is not None:
                    self._free.release()

        return give_back

    async def _wait(self, free: asyncio.Semaphore) -> None:
        if free.locked() and self.waiting >= self._most_waiting:
            raise self._refusal()
        self.waiting += 1
        try:
            await free.acquire()
        finally:
            self.waiting -= 1

    def _refusal(self) -> ClientError:
        wait = min(max(1, math.ceil(self._held_for / self._at_once)), LONGEST_WAIT)
        return ClientError(
            f"The backend works on {self._at_once} requests and {self.waiting} wait, which is as many as may. "
            f"Try again in {wait} s.",
            status=429,
            type="rate_limit_error",
            code="queue_full",
            headers=(("retry-after", str(wait)),),
        )


class Turns:
    """The slots of each backend. Those of one that keeps its name and its limits stay, whatever else is changed."""

    def __init__(self) -> None:
        self._slots: dict[tuple[str, int | None, int], Slots] = {}

    def of(self, backend: str, at_once: int | None, waiting: int) -> Slots:
        """The slots of ``backend``, which works on so many requests at once."""
        return self._slots.setdefault((backend, at_once, waiting), Slots(at_once, waiting))

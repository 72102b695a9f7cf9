"""Which of a backend's replicas gets the next request: the one with the fewest open, unless it is known to be down.

Nothing cleverer: fleets belong behind an engine that was made for them. Among equals the first is taken, so that at low
load the conversations meet a server that has their beginnings in its cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

FIRST_PAUSE = 1.0
"""Seconds for which a replica that could not be reached, or was not ready, is passed over."""

LONGEST_PAUSE = 30.0
"""The pause doubles with each failure in a row, up to this."""


@dataclass(slots=True)
class _State:
    open: int = 0
    failures: int = 0
    down_until: float = 0.0
    on_trial: bool = False


class Pool:
    """The state of ``size`` replicas, which are known by their number. ``clock`` gives seconds."""

    def __init__(self, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._states = [_State() for _ in range(size)]
        self._clock = clock

    def choose(self, tried: Collection[int] = ()) -> int:
        """The replica to ask, among those that were not ``tried``. When all are down, the one that is up again first.

        Raises ``ValueError`` when all were tried.
        """
        if len(self._states) == 1 and not tried:
            return 0
        now = self._clock()

        def order(replica: int) -> tuple[int, float]:
            state = self._states[replica]
            if now < state.down_until:
                return 2, state.down_until
            return (1 if state.on_trial else 0), state.open

        return min((replica for replica in range(len(self._states)) if replica not in tried), key=order)

    def begin(self, replica: int) -> Callable[[], None]:
        """Count a request as open. What is returned ends it, once, however often it is called.

        The first request after a failure is a trial: the others keep away until it has got an answer.
        """
        state = self._states[replica]
        state.open += 1
        trial = state.failures > 0 and not state.on_trial
        state.on_trial = state.on_trial or trial
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                state.open -= 1
                state.on_trial = state.on_trial and not trial

        return end

    def failed(self, replica: int) -> float:
        """The replica could not be reached, or was not ready. Returns for how many seconds it counts as down.

        Requests that fail while it is down were begun together: they are one failure.
        """
        state, now = self._states[replica], self._clock()
        if now >= state.down_until:
            state.down_until = now + min(FIRST_PAUSE * 2**state.failures, LONGEST_PAUSE)
            state.failures = min(state.failures + 1, 10)
        return state.down_until - now

    def answered(self, replica: int) -> None:
        """The replica is well."""
        state = self._states[replica]
        state.failures, state.down_until, state.on_trial = 0, 0.0, False

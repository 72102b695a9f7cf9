"""Several backends as one: each request goes to the backend of its model, and there to a replica that answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from math import inf
from time import monotonic, perf_counter
from typing import TypeVar

from proxy.backends.capability import Capabilities
from proxy.backends.pool import Pool
from proxy.backends.routing import Route, Routing
from proxy.core.errors import UpstreamError
from proxy.limits import Turns
from proxy.metrics import Load
from proxy.relay.answers import Ask, Begun, ByteReply, EventReply, Headers
from proxy.relay.count import Count
from proxy.relay.models import Model, merged
from proxy.relay.peek import Passing
from proxy.relay.relay import Relay
from proxy.telemetry import RequestLog, logger
from proxy.transport.failures import UNREACHABLE
from proxy.transport.upstream import Upstream

LISTED_WITHIN = 5.0
"""Seconds that a backend has to tell its models."""

READY_FOR = 1.0
"""Seconds for which it is not asked again whether a backend answers: anybody may want to know, without a key."""

NOT_READY = frozenset({502, 503, 504})
"""What servers, and the balancers before them, answer that are starting, or gone: nothing was begun."""

Answer = TypeVar("Answer")


class Routes:
    """Sends each request to a backend. The methods are those of ``Relay``, and raise what they raise.

    ``clock`` gives seconds.
    """

    def __init__(
        self,
        routing: Routing,
        upstream: Upstream,
        capabilities: Capabilities,
        turns: Turns | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._routing = routing
        self._upstream = upstream
        self._capabilities = capabilities
        self._pools = [Pool(len(route.replicas)) for route in routing.backends]
        turns = turns or Turns()
        self._slots = [
            turns.of(route.name, route.config.max_concurrent, route.config.max_queue) for route in routing.backends
        ]
        self._relays: dict[tuple[Route, int], Relay] = {}
        self._clock = clock
        self._asking = asyncio.Lock()
        self._ready: tuple[bool, float] = False, -inf  # as it was found, and when

    async def answer(self, ask: Ask, log: RequestLog) -> ByteReply | EventReply:
        """The answer to a generation, once it has begun. Raises ``ClientError`` for a model that leads nowhere."""
        route = self._routing.find(ask.model)
        return await self._in_turn(route, log, self._reach(route, log, lambda relay: relay.answer(ask, log)))

    async def count(self, ask: Ask, log: RequestLog) -> Count:
        """How many tokens a request has for its model."""
        log.model = ask.model
        return await self._reach(self._routing.find(ask.model), log, lambda relay: relay.count(ask, log))

    async def forward(
        self,
        method: str,
        path: str,
        headers: Headers,
        body: bytes | AsyncIterator[bytes],
        length: int | None,
        log: RequestLog,
    ) -> ByteReply:
        """The answer to a request that is none of ours, from the backend of the model that its body names."""
        passing = Passing(body)
        if self._routing.looks_at_names:
            await passing.look(dict(headers).get("content-type", ""))
        route = self._routing.find(passing.model)
        if passing.model in self._routing.aliases:
            added = await passing.rename(route.config.model)
            length = None if length is None else length + added

        def attempt(relay: Relay) -> Awaitable[ByteReply]:
            return relay.forward(method, path, headers, passing.body(), length, log)

        return await self._in_turn(route, log, self._reach(route, log, attempt, lambda: passing.repeatable))

    async def models(self, headers: Headers) -> list[Model]:
        """The models that can be asked for. A backend that does not answer is left out, unless none does."""
        told = await asyncio.gather(*(self._list(route, headers) for route in self._routing.backends))
        failures = [each for each in told if isinstance(each, UpstreamError)]
        if len(failures) == len(told):
            raise failures[0]
        lists = [None if isinstance(each, UpstreamError) else each for each in told]
        return merged(self._routing, lists, self._capabilities)

    def loads(self) -> list[Load]:
        """How busy the backends are."""
        return [
            Load(route.name, slots.taken, slots.waiting)
            for route, slots in zip(self._routing.backends, self._slots, strict=True)
        ]

    async def ready(self) -> bool:
        """Whether any backend answers, or did within the last second; asked once for all who want to know."""
        async with self._asking:
            if self._clock() >= self._ready[1] + READY_FOR:
                self._ready = await self._any_answers(), self._clock()
            return self._ready[0]

    async def _any_answers(self) -> bool:
        relays = [self._relay(route, at) for route in self._routing.backends for at in range(len(route.replicas))]
        asking = [asyncio.create_task(relay.ready()) for relay in relays]
        try:
            for answered in asyncio.as_completed(asking):
                if await answered:
                    return True
            return False
        finally:
            for task in asking:
                task.cancel()

    async def _list(self, route: Route, headers: Headers) -> list[Model] | UpstreamError:
        log = RequestLog("models", "models")
        try:
            async with asyncio.timeout(LISTED_WITHIN):
                return await self._reach(route, log, lambda relay: relay.models(headers))
        except TimeoutError:
            error = UpstreamError(
                f"The backend {route.name} did not tell its models within {LISTED_WITHIN:g} seconds.", status=504
            )
        except UpstreamError as failure:
            error = failure
        if len(self._routing.backends) > 1:
            logger.warning("backend %s: its models are left out: %s", route.name, error.message)
        return error

    async def _in_turn(self, route: Route, log: RequestLog, reach: Coroutine[None, None, Answer]) -> Answer:
        """What ``reach`` gives, when it is the request's turn; that lasts until the answer is closed."""
        log.backend = route.replicas[0].api_root
        since = perf_counter()
        try:
            give_back = await self._slots[route.backend].take()
        except BaseException:
            reach.close()
            raise
        log.queued = perf_counter() - since
        try:
            outcome = await reach
        except BaseException:
            give_back()
            raise
        _when_closed(outcome, give_back)
        return outcome

    async def _reach(
        self,
        route: Route,
        log: RequestLog,
        attempt: Callable[[Relay], Awaitable[Answer]],
        repeatable: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """What ``attempt`` gives with one replica after another, up to the first that takes the request.

        Only one that could not be reached, or that said that it is not ready before any of its answer was sent on, is
        followed by the next: whatever else went wrong, the request may have been worked on.
        """
        tried: set[int] = set()
        while True:
            at = self._pools[route.backend].choose(tried)
            tried.add(at)
            outcome = await self._try(route, at, attempt)
            reason = _not_taken(outcome)
            if reason is None or len(tried) == len(route.replicas) or not repeatable():
                if isinstance(outcome, UpstreamError):
                    raise outcome
                return outcome
            if isinstance(outcome, ByteReply) and isinstance(outcome.body, Begun):
                await outcome.body.aclose()
            where = route.replicas[at].api_root
            logger.warning(
                "request %s: %s did not take it, the next one of %s is asked: %s", log.id, where, route.name, reason
            )

    async def _try(
        self, route: Route, at: int, attempt: Callable[[Relay], Awaitable[Answer]]
    ) -> Answer | UpstreamError:
        """What one replica says; it counts as busy until that is closed."""
        pool = self._pools[route.backend]
        end = pool.begin(at)
        outcome: Answer | UpstreamError
        try:
            outcome = await attempt(self._relay(route, at))
        except UpstreamError as error:
            outcome = error
        except BaseException:
            end()
            raise
        if _not_taken(outcome) is not None:
            pool.failed(at)
        elif not isinstance(outcome, UpstreamError):
            pool.answered(at)
        _when_closed(outcome, end)
        return outcome

    def _relay(self, route: Route, at: int) -> Relay:
        key = route, at
        if key not in self._relays:
            self._relays[key] = Relay(route.replicas[at], self._upstream, self._capabilities)
        return self._relays[key]


def _not_taken(outcome: object) -> str | None:
    """Why the replica cannot have worked on the request, None if it may have."""
    match outcome:
        case UpstreamError(code=code, answered=answered) if code == UNREACHABLE or answered in NOT_READY:
            return outcome.message
        case ByteReply(status=status, body=Begun()) if status in NOT_READY:
            return f"it answered with status {status}"
    return None


def _when_closed(outcome: object, do: Callable[[], None]) -> None:
    """Call ``do`` when there is no more of an answer to come."""
    match outcome:
        case ByteReply(body=Begun() as rest) | EventReply(batches=rest):
            rest.afterwards(do)
        case _:
            do()

"""What the backends can do, asked once and kept for a while.

One question at a time for a backend and a model, however many requests wait for the answer. What an error of the
backend teaches is kept beside it. Nothing is remembered of a question that was not answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, TypeVar

from proxy.backends.probes import Ask, Facts, NoAnswerError, identity, probe
from proxy.backends.registry import Backend
from proxy.core.errors import UpstreamError
from proxy.core.model import Json
from proxy.telemetry import logger
from proxy.wire import jsonio
from proxy.wire.upstream_errors import is_capability_error

KEPT_FOR = 600.0
"""Seconds after which a fact is asked for again: a server may have been restarted with another model."""

ANSWERED_WITHIN = 5.0
"""Seconds that a backend has for all questions about a model: the first request waits for them."""

_MAX_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer: Ollama lists every tensor of the model."""

_MAX_QUOTE = 200
"""Characters of an error that are repeated in the log."""

_RECHECKED_WITHIN = 1.0
"""Seconds that a llama.cpp server has to say whether it is still the same: somebody waits for something else."""

_TELLING = ("id", "root", "meta")
"""What a model's entry in a list says of the model, and not of the moment (llama.cpp: sizes; vLLM: its folder)."""

_MOST_KEPT = 1000
"""Backends and models that are remembered: clients can ask for any name."""

Headers: TypeAlias = Iterable[tuple[str, str]]
_Key: TypeAlias = tuple[str, str | None]


class Reply(Protocol):
    """The reply to a question."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    async def read(self, limit: int = ...) -> bytes:
        """The whole body."""
        ...

    async def aclose(self) -> None:
        """Give the reply up."""
        ...


class Opens(Protocol):
    """What sends the questions: ``Upstream``, as far as it is needed here."""

    async def open(self, method: str, url: str, *, headers: Headers, body: bytes) -> Reply:
        """Raises ``UpstreamError`` when there is no reply."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """Facts and the time up to which they hold."""

    facts: Facts
    until: float


@dataclass(frozen=True, slots=True)
class _Learned:
    """What an error taught, and the time up to which it holds."""

    native: bool
    source: str
    until: float


@dataclass(frozen=True, slots=True)
class Known:
    """Facts, and how many seconds ago they were learned."""

    facts: Facts
    age: float


_Value = TypeVar("_Value")


class Capabilities:
    """The facts about each backend and model. Used from one event loop.

    ``clock`` gives seconds; ``answered_within`` is how many the backend has for its answers.
    """

    def __init__(
        self, upstream: Opens, *, clock: Callable[[], float] = time.monotonic, answered_within: float = ANSWERED_WITHIN
    ) -> None:
        self._upstream = upstream
        self._clock = clock
        self._answered_within = answered_within
        self._kept: dict[_Key, _Kept] = {}
        self._learned: dict[_Key, _Learned] = {}
        self._refused: dict[_Key, float] = {}  # up to when no constraint is sent
        self._listed: dict[str, list[bytes]] = {}
        self._asking: dict[_Key, asyncio.Task[Facts]] = {}
        self._waiting: Counter[asyncio.Task[Facts]] = Counter()

    async def resolve(self, backend: Backend, model: str | None, headers: Headers | None = None) -> Facts:
        """The facts about ``model`` on ``backend``. Never raises for what the backend does.

        ``headers`` are for the questions; without them they carry the backend's own key.
        """
        key = backend.name, model
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept.until:
            return self._corrected(key, kept.facts)
        asking = self._asking.get(key)
        if asking is None:
            if headers is None:
                headers = [("authorization", f"Bearer {backend.config.key}")] if backend.config.key else []
            asking = self._asking[key] = asyncio.create_task(self._ask(backend, model, headers))
        self._waiting[asking] += 1
        try:
            # One who no longer waits must not take the answer from the others.
            facts = await asyncio.shield(asking)
        finally:
            self._waiting[asking] -= 1
            if not self._waiting[asking]:
                del self._waiting[asking]
                self._give_up(key, asking)
        return self._corrected(key, facts)

    def learn(self, backend: Backend, model: str | None, *, native: bool, source: str) -> None:
        """Take it that the server does (or does not) turn ``tools`` into calls, whatever it says of itself."""
        learned = _Learned(native, source, self._clock() + KEPT_FOR)
        _remember(self._learned, (backend.name, model), learned)
        logger.info("backend %s, model %s: %s", backend.name, model, source)

    def learn_from_error(self, backend: Backend, model: str | None, message: str) -> bool:
        """Whether an error's ``message`` says that the backend has no use for tools; this is then known of it."""
        if not is_capability_error(message):
            return False
        self.learn(backend, model, native=False, source=f"The backend refused tools: {message[:_MAX_QUOTE]}")
        return True

    def refuse_constraint(self, backend: Backend, model: str | None, message: str) -> None:
        """Take it that the backend cannot be kept from writing anything but calls: it answered with this error."""
        _remember(self._refused, (backend.name, model), self._clock() + KEPT_FOR)
        shown = message[:_MAX_QUOTE]
        logger.warning("backend %s, model %s: it refused to be constrained: %s", backend.name, model, shown)

    def takes_constraint(self, backend: Backend, model: str | None) -> bool:
        """Whether nothing is known against sending one."""
        return self._clock() >= self._refused.get((backend.name, model), 0.0)

    def forget(self, backend: Backend) -> None:
        """Drop all that is known of ``backend``: it refused a connection, or serves another model."""
        for known in (self._kept, self._learned, self._refused, self._asking):
            for key in [key for key in known if key[0] == backend.name]:
                del known[key]

    async def recheck(self, backend: Backend, models: Iterable[Mapping[str, Json]], headers: Headers) -> None:
        """Forget what is known of ``backend`` if it serves another model than when that was learned.

        ``models`` is what it lists now. The list of a llama.cpp server may be the same with another model or template
        behind it: its ``/props`` are asked for too, with ``headers``, about the model that was last looked at.
        """
        listed = sorted(jsonio.dumps([entry.get(name) for name in _TELLING]) for entry in models)
        before = self._listed.get(backend.name)
        self._listed[backend.name] = listed
        if before not in (None, listed):
            self._changed(backend, "lists other models")
            return
        key, kept = next((item for item in reversed(self._kept.items()) if item[0][0] == backend.name), (None, None))
        if key is None or kept is None or not kept.facts.identity:
            return
        with contextlib.suppress(NoAnswerError, UpstreamError, TimeoutError):
            async with asyncio.timeout(_RECHECKED_WITHIN):
                now = await identity(self._asker(headers), backend, key[1])
            if now != kept.facts.identity:
                self._changed(backend, "has another model or template")

    def _changed(self, backend: Backend, how: str) -> None:
        logger.info("backend %s %s: what was known of it is dropped", backend.name, how)
        self.forget(backend)

    def known_of(self, backend: Backend, model: str | None, *, any_name: bool = False) -> Known | None:
        """What is known at the moment of ``model`` on ``backend``; with ``any_name``, else of any other there."""
        now = self._clock()
        keys = [(backend.name, model)]
        if any_name:
            keys += [key for key in self._kept if key[0] == backend.name]
        for key in keys:
            kept = self._kept.get(key)
            if kept is not None and now < kept.until:
                learned = self._learned.get(key)
                until = kept.until if learned is None or now >= learned.until else learned.until
                return Known(self._corrected(key, kept.facts), now - (until - KEPT_FOR))
        return None

    def known(self) -> dict[_Key, Facts]:
        """What is known at the moment, by backend name and model."""
        now = self._clock()
        return {key: self._corrected(key, kept.facts) for key, kept in self._kept.items() if now < kept.until}

    async def aclose(self) -> None:
        """Ask nothing more."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _give_up(self, key: _Key, asking: asyncio.Task[Facts]) -> None:
        """Nobody waits for the answer any more."""
        if not asking.done():
            asking.cancel()
            if self._asking.get(key) is asking:
                del self._asking[key]

    def _corrected(self, key: _Key, facts: Facts) -> Facts:
        learned = self._learned.get(key)
        if learned is None or self._clock() >= learned.until:
            return facts
        return replace(facts, native=learned.native, source=learned.source)

    def _asker(self, headers: Headers) -> Ask:
        """What puts a question, with ``headers``."""

        async def ask(method: str, url: str, body: Json) -> tuple[int, bytes]:
            data = b"" if body is None else jsonio.dumps(body)
            reply = await self._upstream.open(method, url, headers=headers, body=data)
            try:
                return reply.status, await reply.read(_MAX_ANSWER)
            finally:
                await reply.aclose()

        return ask

    async def _ask(self, backend: Backend, model: str | None, headers: Headers) -> Facts:
        """The facts, kept if they are an answer. Without one, what was known before stands."""
        key = backend.name, model
        try:
            async with asyncio.timeout(self._answered_within):
                facts = await probe(self._asker(headers), backend, model)
        except (NoAnswerError, UpstreamError, TimeoutError) as failure:
            kept = self._kept.get(key)
            if kept is not None:
                return kept.facts
            if isinstance(failure, NoAnswerError):
                return failure.facts
            why = failure.message if isinstance(failure, UpstreamError) else f"no answer in {self._answered_within:g} s"
            return Facts("unknown", native=False, source=f"The backend could not be asked: {why}")
        finally:
            # Unless it was forgotten meanwhile: the answer may then be of a server that is gone.
            current = self._asking.get(key) is asyncio.current_task()
            if current:
                del self._asking[key]
        if current:
            _remember(self._kept, key, _Kept(facts, self._clock() + KEPT_FOR))
            logger.info("backend %s, model %s: %s", backend.name, model, facts.source)
        return facts


def _remember(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Put the newest last, and drop the oldest when there are too many."""
    known.pop(key, None)
    known[key] = value
    if len(known) > _MOST_KEPT:
        del known[next(iter(known))]

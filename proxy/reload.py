"""Settings that change while the proxy runs: new requests follow the new ones, those under way end as they began."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from proxy.app import App, with_cors
from proxy.asgi import STOPPING, Exchange
from proxy.config import Config
from proxy.core.errors import ClientError, ConfigError
from proxy.metrics import counts_together
from proxy.telemetry import RequestLog, logger
from proxy.voice import JSON
from proxy.wire import jsonio

FIXED = ("host", "port", "workers")
"""Settings that hold until the proxy is started anew: the socket is bound, the processes are there."""

NOTE_EVERY = 1.0
"""Seconds after which one of several workers tells the others how busy it is."""


class _Generation:
    """The application of one configuration. It lives until it is replaced and the last of its requests has ended."""

    def __init__(self, app: App, config: Config) -> None:
        self.app = app
        self.config = config
        self._serve = with_cors(app, config)
        self._open: dict[int, Scope] = {}
        self._replaced = False
        self._over = asyncio.Event()

    async def live(self, started: asyncio.Future[None]) -> None:
        """Hold open what the application needs."""
        try:
            async with self.app.running():
                started.set_result(None)
                await self._over.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self._open[id(scope)] = scope
        try:
            await self._serve(scope, receive, send)
        finally:
            del self._open[id(scope)]
            self._end_if_idle()

    def replace(self) -> None:
        """No request comes any more; what has no end of its own is told to end."""
        self._replaced = True
        for scope in self._open.values():
            scope[STOPPING] = True
        self._end_if_idle()

    def end(self) -> None:
        """Let go of everything now."""
        self._over.set()

    def _end_if_idle(self) -> None:
        if self._replaced and not self._open:
            self._over.set()


def _nothing(*given: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where settings come from.

    ``load`` reads them, and raises ``ConfigError`` when they cannot be used. ``changed`` is called with those that hold
    from now on. ``spread`` lets others who serve on the same socket know that a client has asked for a reload.
    """

    load: Callable[[], Config]
    changed: Callable[[Config], None] = _nothing
    spread: Callable[[], None] = _nothing


class Reloadable:
    """The proxy as an ASGI application that can take new settings, if there is a ``source`` of them.

    Raises ``ConfigError`` as ``App`` does.
    """

    def __init__(self, config: Config, source: Source | None = None) -> None:
        self._source = source or Source(lambda: config)
        self._handler = self._asked if source else None
        self._current = _Generation(App(config, reload=self._handler), config)
        self._living: dict[_Generation, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._lifespan = Router(lifespan=self._life)

    @property
    def config(self) -> Config:
        """What holds for new requests."""
        return self._current.config

    @property
    def generations(self) -> int:
        """How many configurations are at work: one, and those of requests that began before it."""
        return len(self._living)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by what holds when it begins."""
        if scope["type"] == "http":
            await self._current.answer(scope, receive, send)
        else:
            await self._lifespan(scope, receive, send)

    async def reload(self) -> list[str]:
        """Read the settings, and follow them from now on. Returns the names of those that need a restart.

        Raises ``ConfigError`` when they cannot be used: then all stays as it was.
        """
        async with self._one_at_a_time:
            before = self._current
            loaded = await asyncio.to_thread(self._source.load)
            needing = [name for name in FIXED if getattr(loaded, name) != getattr(before.config, name)]
            config = replace(loaded, **{name: getattr(before.config, name) for name in FIXED})
            after = _Generation(App(config, before.app, self._handler), config)
            await self._begin(after)
            self._current = after
            before.replace()
        self._source.changed(config)
        logger.info("the settings were read again")
        if needing:
            logger.warning("not before a restart: %s", ", ".join(needing))
        return needing

    async def try_to_reload(self) -> None:
        """Reload, and say in the log what came of it."""
        try:
            await self.reload()
        except ConfigError as error:
            logger.error("the settings are as they were: %s", error.message)
        except Exception:
            logger.exception("the settings are as they were")

    async def _asked(self, exchange: Exchange, log: RequestLog) -> None:
        """``POST /-/reload``."""
        log.surface = "reload"
        if log.client is None or log.client not in self.config.may_reload:
            raise ClientError(
                "This wants a key whose owner is named in `may_reload`. SIGHUP does it in any case.",
                status=403,
                type="permission_error",
                code="reload_not_allowed",
            )
        try:
            needing = await self.reload()
        except ConfigError as error:
            message = f"The settings are as they were: {error.message}"
            raise ClientError(message, code="config_error") from None
        self._source.spread()
        await exchange.respond(200, [JSON], jsonio.dumps({"status": "reloaded", "needs_restart": needing}))

    @contextlib.asynccontextmanager
    async def _life(self, app: object) -> AsyncIterator[None]:
        await self._begin(self._current)
        noting = asyncio.create_task(self._note_loads()) if counts_together() else None
        try:
            yield
        finally:
            if noting is not None:
                noting.cancel()
            for generation in self._living:
                generation.end()
            await asyncio.gather(*self._living.values())

    async def _note_loads(self) -> None:
        """Let the other workers tell too how busy this one is."""
        while True:
            self._current.app.note_loads()
            await asyncio.sleep(NOTE_EVERY)

    async def _begin(self, generation: _Generation) -> None:
        """Return once the application can serve. It has a task of its own, in which all that it opens is closed too."""
        started = asyncio.get_running_loop().create_future()
        task = self._living[generation] = asyncio.create_task(generation.live(started))
        task.add_done_callback(lambda task: self._living.pop(generation))
        await started

"""The inspector's paths: the page, the list of exchanges as it changes, one exchange, and a text to try.

The page shows what anybody made a model or a client say, so it may load nothing, run nothing and send nothing but what
is its own. The exchanges are for those who may use the proxy, and for no web page but this one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import resources
from typing import TypeAlias

from proxy.access import Hosts, is_loopback
from proxy.asgi import STOPPING, Exchange
from proxy.config import Config
from proxy.core.errors import ClientError
from proxy.core.grammar import AUTO, grammar
from proxy.core.model import Json, Tool
from proxy.inspector.marks import Reading
from proxy.inspector.ring import Entry, Ring
from proxy.inspector.view import detail, exchange_fixture, summary, tried
from proxy.telemetry import RequestLog
from proxy.wire import jsonio

INSPECTOR = "inspector"
"""The surface of the page's own requests."""

SECRET = frozenset({b"authorization", b"cookie", b"proxy-authorization", b"x-api-key"})
"""Headers of clients, no word of which is kept, wherever it turns up."""

_WORDS = re.compile(r"[\s;,=]+")

SET_OFF = 'The inspector is off, as its setting says: `inspector = "off"`.'
WITHOUT_KEYS = (
    "The inspector is off: it shows what everybody asks, and this proxy can be reached from elsewhere without a key. "
    'Set client keys, or `inspector = "on"`.'
)
WITH_WORKERS = "The inspector is off: it needs one worker, which sees everything. Leave out `workers`."

MOST_FEEDS = 16
"""Pages that are told of changes at a time."""

MOST_TRIED = 64 * 1024
"""Characters of a text to try: the reader is fast, but reads it beside everyone's requests."""

MOST_BODY = 1024 * 1024
SILENCE = 15.0
"""Seconds after which a feed without news gets a comment."""

BEAT = 1.0
"""Seconds after which a feed looks whether the server is being stopped."""

PAUSE = 0.2
"""Seconds between two pieces of news."""

HEADERS = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
)

TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}

Handler: TypeAlias = Callable[[Exchange, RequestLog], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Path:
    """``to_all``: it tells nothing of anybody, so that no key is wanted."""

    path: str
    methods: tuple[str, ...]
    handler: Handler
    to_all: bool = False


class Inspector:
    """Keeps the last exchanges and shows them. ``on`` is False where it is off: then nothing is kept.

    ``before`` is the inspector whose place it takes: what that kept is shown on.
    """

    def __init__(self, config: Config, before: Inspector | None = None) -> None:
        self.on = _is_on(config)
        self._why_off = WITH_WORKERS if config.workers > 1 else WITHOUT_KEYS
        if config.inspector == "off":
            self._why_off = SET_OFF
        self._limits = config.inspector_keep, config.inspector_bytes
        kept = before is not None and before.on and self.on and before._limits == self._limits
        self._ring: Ring = before._ring if before is not None and kept else Ring(*self._limits)
        self._see_all = frozenset(config.inspector_sees_all)
        self._hosts = None if config.client_keys else Hosts(config.allowed_hosts)
        self._feeds = 0

    def begin(self, exchange: Exchange, log: RequestLog) -> Entry | None:
        """An exchange of a surface begins. None where nothing is kept."""
        if not self.on:
            return None
        headers = exchange.scope["headers"]
        shown = [value.decode("latin-1") for name, value in headers if name in SECRET]
        secrets = [word for value in shown for word in _WORDS.split(value)]
        entry = self._ring.begin(log, exchange.method, exchange.scope["path"], headers, secrets)
        exchange.tape = log.tape
        return entry

    def end(self, entry: Entry) -> None:
        """It is over."""
        self._ring.end(entry)

    def paths(self) -> Iterator[Path]:
        """What is served."""
        reading, page = ("GET", "HEAD"), "/inspector"
        yield Path(page, reading, self._file, to_all=True)
        yield Path(f"{page}/feed", ("GET",), self._feed)
        yield Path(f"{page}/parse", ("POST",), self._parse)
        yield Path(f"{page}/exchanges/{{number:int}}", reading, self._exchange)
        yield Path(f"{page}/exchanges/{{number:int}}/fixture/{{turn:int}}", reading, self._fixture)
        yield Path(f"{page}/{{name}}", reading, self._file, to_all=True)

    async def _file(self, exchange: Exchange, log: RequestLog) -> None:
        self._admit(exchange, log)
        name = exchange.scope.get("path_params", {}).get("name", "index.html")
        if name not in self._files:
            raise ClientError(f"There is nothing at {exchange.scope['path']}.", status=404)
        kind = ("content-type", TYPES[name.rpartition(".")[2]])
        await exchange.respond(200, [kind, *HEADERS], self._files[name])

    @cached_property
    def _files(self) -> dict[str, bytes]:
        """The page, and what it loads."""
        found = resources.files("proxy.inspector").joinpath("page").iterdir()
        return {file.name: file.read_bytes() for file in found if file.name.rpartition(".")[2] in TYPES}

    async def _feed(self, exchange: Exchange, log: RequestLog) -> None:
        self._admit(exchange, log)
        if self._feeds >= MOST_FEEDS:
            raise ClientError(f"{MOST_FEEDS} pages are open. Close one of them.", status=429, code="too_many_feeds")
        self._feeds += 1
        try:
            async with exchange.watch():
                kind = ("content-type", "text/event-stream; charset=utf-8")
                await exchange.start(200, [kind, *HEADERS, ("x-accel-buffering", "no")])
                await self._tell(exchange, log)
        finally:
            self._feeds -= 1

    async def _tell(self, exchange: Exchange, log: RequestLog) -> None:
        """Send what there is, then what changes, until the server is being stopped."""
        clock = asyncio.get_running_loop().time
        told = -1
        while not exchange.scope.get(STOPPING):
            revision = self._ring.revision
            if revision > told:
                lines = [summary(entry) for entry in self._ring.since(told) if self._may_see(entry, log)]
                kind = "all" if told < 0 else "some"
                told = revision
                await exchange.write(b"event: %s\ndata: %s\n\n" % (kind.encode(), jsonio.dumps(lines)))
                await asyncio.sleep(PAUSE)
            elif clock() - exchange.last_write > SILENCE:
                await exchange.write(b": \n\n")
            await self._ring.changed(told, BEAT)
        await exchange.end()

    async def _exchange(self, exchange: Exchange, log: RequestLog) -> None:
        entry = self._entry(exchange, log)
        host = exchange.header("host") or "127.0.0.1"
        url = f"{exchange.scope.get('scheme', 'http')}://{host}"
        async with exchange.watch():
            shown = await asyncio.to_thread(detail, entry, url)
            await _json(exchange, jsonio.dumps(shown))

    async def _fixture(self, exchange: Exchange, log: RequestLog) -> None:
        entry = self._entry(exchange, log)
        async with exchange.watch():
            made = await asyncio.to_thread(exchange_fixture, entry, exchange.scope["path_params"]["turn"])
            if made is None:
                raise ClientError("What the model wrote then is no longer kept.", status=404)
            await _json(exchange, jsonio.dumps(made))

    async def _parse(self, exchange: Exchange, log: RequestLog) -> None:
        self._admit(exchange, log)
        work = partial(_tried, await exchange.body(MOST_BODY))
        async with exchange.watch():
            await _json(exchange, await asyncio.to_thread(work))

    def _entry(self, exchange: Exchange, log: RequestLog) -> Entry:
        self._admit(exchange, log)
        entry = self._ring.get(exchange.scope["path_params"]["number"])
        if entry is None or not self._may_see(entry, log):
            raise ClientError("There is no such exchange, or no more.", status=404)
        return entry

    def _may_see(self, entry: Entry, log: RequestLog) -> bool:
        """Whether the owner of a key may see an exchange: everybody sees their own."""
        return log.client is None or entry.log.client == log.client or log.client in self._see_all

    def _admit(self, exchange: Exchange, log: RequestLog) -> None:
        """Raise ``ClientError`` for other pages, whatever names they come by, and where the inspector is off."""
        log.surface = INSPECTOR
        if not self.on:
            raise ClientError(self._why_off, status=404, code="inspector_off")
        if self._hosts is not None:
            self._hosts.check(exchange.scope["headers"])
        origin, host = exchange.header("origin"), exchange.header("host")
        foreign = origin is not None and origin.partition("://")[2] != host
        site = exchange.header("sec-fetch-site")
        if foreign or (site in ("cross-site", "same-site") and exchange.header("sec-fetch-mode") != "navigate"):
            raise ClientError("Only its own page may ask the inspector.", status=403, code="foreign_page")


def _is_on(config: Config) -> bool:
    """``auto``: where nobody but this machine, or nobody without a key, can see what others say."""
    if config.workers > 1:  # none of them knows what the others have seen
        return False
    if config.inspector == "auto":
        return is_loopback(config.host) or bool(config.client_keys)
    return config.inspector == "on"


def _tried(body: bytes) -> bytes:
    """The answer to a text to try. Raises ``ClientError``."""
    try:
        given = jsonio.loads(body)
    except ValueError as error:
        raise ClientError(f"This is not JSON: {error}.") from None
    match given:
        case {"text": str(text)}:
            pass
        case _:
            raise ClientError("Give an object with a `text`.")
    if len(text) > MOST_TRIED:
        raise ClientError(f"The text has {len(text):,} characters; {MOST_TRIED:,} can be tried.", status=413)
    dialect, finish = given.get("dialect") or AUTO, given.get("finish_reason") or "stop"
    model = given.get("model")
    if not isinstance(dialect, str) or finish not in ("stop", "length", "content_filter"):
        raise ClientError("`dialect` and `finish_reason` are names: auto, stop.")
    try:
        grammar(dialect)
    except ValueError as error:
        raise ClientError(f"{error}.", param="dialect") from None
    reading = Reading(
        _tools(given.get("tools") or []),
        dialect,
        model if isinstance(model, str) and model else None,
        given.get("starts_in_reasoning") is True,
    )
    return jsonio.dumps(tried(text, reading, finish))


def _tools(given: Json) -> tuple[Tool, ...]:
    """The tools in a list, or in a request with one, in any vendor's shape."""
    if isinstance(given, dict):
        given = given.get("tools", [given])
    try:
        return tuple(Tool.of(tool) for tool in given)
    except (ValueError, TypeError, AttributeError):
        raise ClientError("Tools are a list of objects with a name, as a request has them.", param="tools") from None


async def _json(exchange: Exchange, body: bytes) -> None:
    await exchange.respond(200, [("content-type", "application/json"), *HEADERS], body)

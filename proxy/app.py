"""The routes, and the one place where errors become answers. Plain ASGI: little is done for a request or a token."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing
from time import perf_counter
from typing import TypeAlias, TypeVar
from urllib.parse import unquote

from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from proxy.apart import apart
from proxy.asgi import CLIENT, ClientGoneError, Exchange
from proxy.backends.capability import Capabilities
from proxy.backends.routing import Routing
from proxy.config import Config
from proxy.core.collect import collect
from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
from proxy.gate import Gate
from proxy.inspector.routes import INSPECTOR, Inspector
from proxy.limits import Turns, check_counts
from proxy.metrics import Metrics
from proxy.relay import Ask, ByteReply, Routes
from proxy.relay.models import models_body
from proxy.surfaces.base import MOST_NAMED, Shape, Surface
from proxy.surfaces.chat import Chat
from proxy.surfaces.memory import Memory
from proxy.surfaces.messages import Messages
from proxy.surfaces.responses import Responses
from proxy.telemetry import RequestLog, logger, write_content
from proxy.tracing import Traces
from proxy.transport.upstream import Upstream
from proxy.voice import JSON, Voice, fail, keep_alive, send_bytes, send_events, warnings
from proxy.wire import jsonio
from proxy.wire.anthropic_messages import encode_model, encode_models

CLIENT_GONE = 499
"""What the log calls the status of an answer that nobody waited for (nginx's word)."""

FORWARDED_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Not CONNECT, and not TRACE: a server that knows it would tell the client the backend's key."""

EXPOSED = (
    *("x-request-id", "retry-after", "x-should-retry"),
    *("x-toolgraft-warning", "x-toolgraft-dropped-tools", "x-toolgraft-ignored"),
    *("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
)
"""Headers of answers that scripts of web pages may read."""

ROOTLESS = ("/chat/completions", "/messages", "/messages/count_tokens", "/models", "/responses")
"""Paths that are known also without ``/v1`` before them."""

HEALTH, METRICS = "health", "metrics"
QUIET = frozenset({HEALTH, INSPECTOR, METRICS})
"""The surfaces whose requests are not logged: a supervisor makes one every few seconds."""

_ROOT = re.compile(r"(?:/+v1(?=/|$))+(?:/+(?=/))?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")

Handler: TypeAlias = Callable[[Exchange, RequestLog], Awaitable[None]]
Given = TypeVar("Given", bound=Surface)


class Endpoint:
    """A handler as an ASGI application, for the ``methods`` that it knows (none given: for any).

    Errors come in ``shape``, else in that of the client's own vendor. ``to_all``: no key is wanted. ``counted``: it is
    one of the requests of which each client may make so many.
    """

    def __init__(
        self,
        handler: Handler,
        methods: Collection[str] = (),
        shape: Shape | None = None,
        *,
        to_all: bool = False,
        counted: bool = True,
    ) -> None:
        self._handler = handler
        self._methods = methods
        self._shape = shape
        self._to_all = to_all
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the handler on the exchange that the application made."""
        exchange: Exchange = scope["exchange"]
        voice: Voice = scope["voice"]
        voice.shape = self._shape or voice.shape
        if not self._to_all:
            gate: Gate = scope["gate"]
            gate.admit(exchange, scope["log"], counted=self._counted)
        if self._methods and exchange.method not in self._methods:
            allowed = ", ".join(self._methods)
            error = ClientError(f"{scope['path']} takes {allowed}, not {exchange.method}.", status=405)
            status, headers, body = voice.shape.encode_error(error)
            await exchange.respond(status, [*headers, ("allow", allowed)], body)
        else:
            await self._handler(exchange, scope["log"])


class App:
    """The proxy as an ASGI application. It opens nothing before its lifespan has begun.

    ``before`` is the application whose place it takes: what that counted, keeps, and has at work stays known.
    ``reload`` answers those who ask for new settings. Raises ``ConfigError`` when ``config`` names a backend that
    cannot be one, or that no model leads to.
    """

    def __init__(self, config: Config, before: App | None = None, reload: Handler | None = None) -> None:
        self._config = config
        self._routing = Routing(config.backends)
        self._gate: Gate = Gate.of(config, None if before is None else before._gate)
        self._metrics: Metrics = Metrics() if before is None else before._metrics
        self._metrics.expect(name for route in self._routing.backends for name in self._routing.names(route.backend))
        self._inspector: Inspector = Inspector(config, None if before is None else before._inspector)
        self._memory: Memory = Memory() if before is None else before._memory
        self._turns: Turns = Turns() if before is None else before._turns
        self._traces = Traces() if config.traces else None
        self._relay: Routes
        reading = ("GET", "HEAD")
        routes = [
            self._generation("/v1/chat/completions", Chat, Chat.shape),
            self._generation("/v1/messages", Messages, Messages.shape),
            Route("/v1/responses", Endpoint(self._respond, ("POST",), Responses.shape)),
            Route("/v1/messages/count_tokens", Endpoint(self._count_tokens, ("POST",), Messages.shape)),
            Route("/v1/models", Endpoint(self._models, reading)),
            Route("/v1/models/{id:path}", Endpoint(self._model, reading)),
            Route("/v1/{path:path}", Endpoint(self._forward, FORWARDED_METHODS)),
            *(
                Route(each.path, Endpoint(each.handler, each.methods, to_all=each.to_all, counted=False))
                for each in self._inspector.paths()
            ),
            *([Route("/-/reload", Endpoint(reload, ("POST",)))] if reload else []),
            Route("/metrics", Endpoint(self._show_metrics, reading)),
            Route("/health", Endpoint(self._health, reading, to_all=True)),
            Route("/ready", Endpoint(self._ready, reading, to_all=True)),
        ]
        self._router = Router(
            routes,
            redirect_slashes=False,
            default=Endpoint(_unknown),
            lifespan=lambda app: self.running(),
        )
        self._fixed = {route.path: route.app for route in routes if not route.param_convertors}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever goes wrong, the client gets an error object."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, request_id(scope), self._config.body_timeout)
        exchange.kept = bytearray() if self._config.log_content else None
        log = RequestLog(exchange.request_id, surface="other")
        voice = Voice(Messages.shape if _is_anthropics(exchange) else Chat.shape)
        scope.update(path=canonical(scope["path"]), exchange=exchange, log=log, voice=voice, gate=self._gate)
        span = self._traces.begin(exchange.headers, log) if self._traces else None
        self._metrics.begin()
        try:
            serve = self._fixed.get(scope["path"], self._router)  # most are for a path that holds no variable
            await serve(scope, receive, send)
        except ToolgraftError as error:
            await fail(exchange, voice, log, error)
        except ClientGoneError:
            log.status, log.error, log.fault = CLIENT_GONE, "client_gone", "client"
        except asyncio.CancelledError:  # the server's doing, after it has waited long enough for this answer to end
            await fail(exchange, voice, log, ToolgraftError("The proxy is being stopped.", status=503, code="stopping"))
        except Exception:
            logger.exception("unexpected error in the request %s", log.id)
            await fail(
                exchange, voice, log, ToolgraftError(f"The proxy failed. Its log has the reason, under {log.id}.")
            )
        log.status = log.status or exchange.status
        log.ended = perf_counter()
        self._metrics.end(log)
        if "entry" in scope:
            self._inspector.end(scope["entry"])
        if log.surface not in QUIET:
            log.write()
            if self._traces and span:
                self._traces.end(span, log)
            if exchange.kept is not None:
                write_content(log.id, exchange.asked, bytes(exchange.kept))
        for name in ("exchange", "voice", CLIENT):  # as they hold the scope, they would have to be found to be garbage
            scope.pop(name, None)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The block in which requests can be answered."""
        config = self._config
        async with (
            Upstream(
                connect_timeout=config.connect_timeout,
                first_byte_timeout=config.first_byte_timeout,
                idle_timeout=config.idle_timeout,
                total_timeout=config.total_timeout,
            ) as upstream,
            aclosing(Capabilities(upstream)) as capabilities,
        ):
            self._relay = Routes(self._routing, upstream, capabilities, self._turns)
            yield
        if self._traces:
            await asyncio.to_thread(self._traces.close)

    def note_loads(self) -> None:
        """Note how busy the backends are now, for other workers to tell."""
        self._metrics.note(self._relay.loads())

    def _generation(self, path: str, surface: Callable[[bytes], Surface], shape: Shape) -> Route:
        """The route of a surface."""
        return Route(path, Endpoint(functools.partial(self._generate, surface), ("POST",), shape))

    async def _asked(self, surface: Callable[[bytes], Given], exchange: Exchange, log: RequestLog) -> tuple[Given, Ask]:
        """What a client asks for. Raises ``ClientError``."""
        body = await exchange.body(self._config.max_body)
        log.received = perf_counter()
        if exchange.kept is not None:
            exchange.asked = body
        if log.tape is not None:
            log.tape.ask(body)
        asked = await apart(len(body), functools.partial(surface, body))
        log.model, log.stream = asked.model, asked.stream
        check_counts(asked.raw, messages=self._config.max_messages, tools=self._config.max_tools)
        return asked, Ask(asked.model, asked.stream, lambda: exchange.headers, asked.body, asked.request, len(body))

    async def _generate(self, surface: Callable[[bytes], Surface], exchange: Exchange, log: RequestLog) -> None:
        voice: Voice = exchange.scope["voice"]
        log.surface = voice.shape.name
        entry = self._inspector.begin(exchange, log)
        if entry is not None:
            exchange.scope["entry"] = entry
        asked, ask = await self._asked(surface, exchange, log)
        tick = functools.partial(keep_alive, exchange, voice.shape.keep_alive) if asked.stream else None
        async with exchange.watch(tick, self._config.keep_alive):
            answer = await self._relay.answer(ask, log)
            log.first = perf_counter()
            if isinstance(answer, ByteReply):
                await send_bytes(exchange, answer)
                return
            async with aclosing(answer.batches) as batches:
                log.dropped_tools = await apart(ask.size, lambda: ",".join(asked.dropped)[:MOST_NAMED])
                if asked.stream:
                    voice.encoder = await apart(ask.size, asked.encoder)
                    await send_events(exchange, asked, voice.encoder, answer, log)
                else:
                    reply = collect([event async for batch in batches for event in batch])
                    await exchange.respond(200, [JSON, *asked.headers(), *warnings(log)], asked.encode(reply))

    async def _respond(self, exchange: Exchange, log: RequestLog) -> None:
        surface = functools.partial(Responses, memory=self._memory, client=log.client)
        await self._generate(surface, exchange, log)

    async def _count_tokens(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = "count_tokens"
        asked, ask = await self._asked(Messages, exchange, log)
        async with exchange.watch():
            count = await self._relay.count(ask, log)
            estimated = [("x-toolgraft-estimated", "true")] if count.estimated else []
            told = jsonio.dumps({"input_tokens": count.tokens})
            await exchange.respond(200, [JSON, *asked.headers(), *estimated], told)

    async def _models(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = "models"
        tell = encode_models if _is_anthropics(exchange) else models_body
        async with exchange.watch():
            models = await self._relay.models(exchange.headers)
            await exchange.respond(200, [JSON], tell(models))

    async def _model(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = "models"
        tell = encode_model if _is_anthropics(exchange) else jsonio.dumps
        name = exchange.scope["path_params"]["id"]
        async with exchange.watch():
            for model in await self._relay.models(exchange.headers):
                if model["id"] == name:
                    await exchange.respond(200, [JSON], tell(model))
                    return
        raise ClientError(f"There is no model {name!r}.", status=404, code="model_not_found", param="model")

    async def _forward(self, exchange: Exchange, log: RequestLog) -> None:
        path = _path_to_forward(exchange)
        declared = exchange.header("content-length")
        length = int(declared) if declared is not None and declared.isdecimal() else None
        has_body = length or exchange.header("transfer-encoding") is not None
        body = exchange.pieces(self._config.max_body) if has_body else b""
        try:
            async with exchange.watch():
                reply = await self._relay.forward(exchange.method, path, exchange.headers, body, length, log)
                await send_bytes(exchange, reply)
        except UpstreamError:
            if exchange.refusal is not None:  # the backend was not to blame
                raise exchange.refusal from None
            raise

    async def _show_metrics(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = METRICS
        content_type, page = self._metrics.page(exchange.header("accept") or "", self._relay.loads())
        await exchange.respond(200, [("content-type", content_type)], page)

    async def _health(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = HEALTH
        await exchange.respond(200, [JSON], b'{"status":"ok"}')

    async def _ready(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = HEALTH
        async with exchange.watch():
            if await self._relay.ready():
                await exchange.respond(200, [JSON], b'{"status":"ready"}')
                return
        who = "The backend"
        if self._gate.trusts(exchange, log):
            who += " at " + " and ".join(each.api_root for route in self._routing.backends for each in route.replicas)
        raise ToolgraftError(f"{who} does not answer yet.", status=503, code="backend_not_ready")


def with_cors(app: ASGIApp, config: Config) -> ASGIApp:
    """``app``, open to the scripts of the web pages that ``config`` names."""
    if not config.cors_origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=config.cors_origins,
        allow_methods=("*",),
        allow_headers=("*",),  # those that are asked for: SDKs have new ones with each release
        allow_private_network=True,  # a page of the network may ask a server on the machine
        expose_headers=EXPOSED,
    )


def request_id(scope: Scope) -> str:
    """The client's ``x-request-id`` if it is plain, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(given):
                return given
    return "req_" + os.urandom(8).hex()


def canonical(path: str) -> str:
    """The path that a client means: a base URL may have been given with ``/v1`` twice, or without, or with a slash."""
    path = _one_root(path.rstrip("/")) or "/"
    return "/v1" + path if path in ROOTLESS or path.startswith("/models/") else path


def _one_root(path: str) -> str:
    """``path`` with ``/v1`` once and single slashes around it, as far as it begins with them; the rest as it is."""
    root = _ROOT.match(path)
    return f"/v1{path[root.end() :]}" if root else re.sub("^/+", "/", path)


def _path_to_forward(exchange: Exchange) -> str:
    """What follows the API root, percent-encoded as the client sent it, query included. Raises ``ClientError``.

    A path that climbs (``..``) would reach what the backend serves outside of its API. Servers differ in how often they
    decode, and some take what follows a ``;`` for no part of the name.
    """
    path: str = exchange.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    path = _one_root(path)
    steps = re.split(r"[/\\]", unquote(exchange.scope["path"]))
    if not path.startswith("/v1/") or any(step.partition(";")[0] in (".", "..") for step in steps):
        raise _no_such_path(exchange)
    query = exchange.scope["query_string"].decode("latin-1")
    return path[len("/v1") :] + (f"?{query}" if query else "")


def _is_anthropics(exchange: Exchange) -> bool:
    """Whether the client is one of Anthropic's: all of them name the version of the API that they speak."""
    return exchange.header("anthropic-version") is not None


async def _unknown(exchange: Exchange, log: RequestLog) -> None:
    raise _no_such_path(exchange)


def _no_such_path(exchange: Exchange) -> ClientError:
    return ClientError(f"There is nothing at {exchange.scope['path']}. The API is under /v1.", status=404)

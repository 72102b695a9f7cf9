"""The routes, and the one place where errors become answers. Plain ASGI: little is done for a request or a token."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias

from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from proxy.asgi import ClientGoneError, Exchange
from proxy.backends.capability import Capabilities
from proxy.backends.routing import Routing
from proxy.config import Config
from proxy.core.collect import collect
from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
from proxy.relay import Ask, ByteReply, EventReply, Routes
from proxy.relay.models import models_body
from proxy.surfaces.base import Encoder, Shape, Surface
from proxy.surfaces.chat import Chat
from proxy.surfaces.memory import Memory
from proxy.surfaces.messages import Messages
from proxy.surfaces.responses import Responses
from proxy.telemetry import RequestLog, logger
from proxy.transport.upstream import Upstream
from proxy.wire import jsonio
from proxy.wire.anthropic_messages import encode_model, encode_models

JSON = ("content-type", "application/json")
STREAM = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),  # nginx holds a stream back unless it is told not to
)
CLIENT_GONE = 499
"""What the log calls the status of an answer that nobody waited for (nginx's word)."""

FORWARDED_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""Not CONNECT, and not TRACE: a server that knows it would tell the client the backend's key."""

ROOTLESS = ("/chat/completions", "/messages", "/messages/count_tokens", "/models", "/responses")
"""Paths that are known also without ``/v1`` before them."""

HEALTH = "health"
"""The surface of requests that are not logged: a supervisor makes one every few seconds."""

_ROOT = re.compile(r"(?:/+v1(?=/|$))+(?:/+(?=/))?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")

Handler: TypeAlias = Callable[[Exchange, RequestLog], Awaitable[None]]


@dataclass(slots=True)
class Voice:
    """How the client of one request is told of a failure: in the surface's ``shape``, or by the stream's encoder."""

    shape: Shape
    encoder: Encoder | None = None

    def stream_error(self, error: ToolgraftError) -> bytes:
        """What ends a stream that has begun."""
        return self.shape.stream_error(error) if self.encoder is None else self.encoder.error(error)


class Endpoint:
    """A handler as an ASGI application, for the ``methods`` that it knows (none given: for any).

    Errors come in ``shape``, else in that of the client's own vendor.
    """

    def __init__(self, handler: Handler, methods: Collection[str] = (), shape: Shape | None = None) -> None:
        self._handler = handler
        self._methods = methods
        self._shape = shape

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the handler on the exchange that the application made."""
        exchange: Exchange = scope["exchange"]
        voice: Voice = scope["voice"]
        voice.shape = self._shape or voice.shape
        if self._methods and exchange.method not in self._methods:
            allowed = ", ".join(self._methods)
            error = ClientError(f"{scope['path']} takes {allowed}, not {exchange.method}.", status=405)
            status, headers, body = voice.shape.encode_error(error)
            await exchange.respond(status, [*headers, ("allow", allowed)], body)
        else:
            await self._handler(exchange, scope["log"])


class App:
    """The proxy as an ASGI application. It opens nothing before its lifespan has begun.

    Raises ``ConfigError`` when ``config`` names a backend that cannot be one, or that no model leads to.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._routing = Routing(config.backends)
        self._relay: Routes
        reading = ("GET", "HEAD")
        self._router = Router(
            [
                self._generation("/v1/chat/completions", Chat, Chat.shape),
                self._generation("/v1/messages", Messages, Messages.shape),
                self._generation("/v1/responses", functools.partial(Responses, memory=Memory()), Responses.shape),
                Route("/v1/messages/count_tokens", Endpoint(self._count_tokens, ("POST",), Messages.shape)),
                Route("/v1/models", Endpoint(self._models, reading)),
                Route("/v1/models/{id:path}", Endpoint(self._model, reading)),
                Route("/v1/{path:path}", Endpoint(self._forward, FORWARDED_METHODS)),
                Route("/health", Endpoint(self._health, reading)),
                Route("/ready", Endpoint(self._ready, reading)),
            ],
            redirect_slashes=False,
            default=Endpoint(_unknown),
            lifespan=self._lifespan,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever goes wrong, the client gets an error object."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send, request_id(scope))
        log = RequestLog(exchange.request_id, surface="other")
        voice = Voice(Messages.shape if _is_anthropics(exchange) else Chat.shape)
        scope.update(path=canonical(scope["path"]), exchange=exchange, log=log, voice=voice)
        try:
            await self._router(scope, receive, send)
        except ToolgraftError as error:
            await _fail(exchange, voice, log, error)
        except ClientGoneError:
            log.status, log.error = CLIENT_GONE, "client_gone"
        except asyncio.CancelledError:  # the server's doing, after it has waited long enough for this answer to end
            await _fail(
                exchange, voice, log, ToolgraftError("The proxy is being stopped.", status=503, code="stopping")
            )
        except Exception:
            logger.exception("unexpected error in the request %s", log.id)
            await _fail(
                exchange, voice, log, ToolgraftError(f"The proxy failed. Its log has the reason, under {log.id}.")
            )
        log.status = log.status or exchange.status
        if log.surface != HEALTH:
            log.write()

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        async with (
            Upstream(connect_timeout=self._config.connect_timeout) as upstream,
            aclosing(Capabilities(upstream)) as capabilities,
        ):
            self._relay = Routes(self._routing, upstream, capabilities)
            yield

    def _generation(self, path: str, surface: Callable[[bytes], Surface], shape: Shape) -> Route:
        """The route of a surface."""
        return Route(path, Endpoint(functools.partial(self._generate, surface), ("POST",), shape))

    async def _generate(self, surface: Callable[[bytes], Surface], exchange: Exchange, log: RequestLog) -> None:
        voice: Voice = exchange.scope["voice"]
        log.surface = voice.shape.name
        asked = surface(await exchange.body(self._config.max_body))
        log.stream = asked.stream
        ask = Ask(asked.model, asked.stream, exchange.headers, asked.body, asked.request)
        tick = functools.partial(_keep_alive, exchange, voice.shape.keep_alive) if asked.stream else None
        async with exchange.watch(tick, self._config.keep_alive):
            answer = await self._relay.answer(ask, log)
            if isinstance(answer, ByteReply):
                await _send_bytes(exchange, answer)
            elif asked.stream:
                voice.encoder = asked.encoder()
                await _send_events(exchange, asked, voice.encoder, answer, log)
            else:
                async with aclosing(answer.batches) as batches:
                    reply = collect([event async for batch in batches for event in batch])
                await exchange.respond(200, [JSON, *asked.headers(), *_warnings(log)], asked.encode(reply))

    async def _count_tokens(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = "count_tokens"
        asked = Messages(await exchange.body(self._config.max_body))
        ask = Ask(asked.model, asked.stream, exchange.headers, asked.body, asked.request)
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
                await _send_bytes(exchange, reply)
        except UpstreamError:
            if exchange.refusal is not None:  # the backend was not to blame
                raise exchange.refusal from None
            raise

    async def _health(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = HEALTH
        await exchange.respond(200, [JSON], b'{"status":"ok"}')

    async def _ready(self, exchange: Exchange, log: RequestLog) -> None:
        log.surface = HEALTH
        async with exchange.watch():
            if await self._relay.ready():
                await exchange.respond(200, [JSON], b'{"status":"ready"}')
                return
        where = " and ".join(replica.api_root for route in self._routing.backends for replica in route.replicas)
        raise ToolgraftError(f"The backend at {where} does not answer yet.", status=503, code="backend_not_ready")


def create_app(config: Config) -> App:
    """The proxy for ``config``. Raises ``ConfigError``."""
    return App(config)


def request_id(scope: Scope) -> str:
    """The client's ``x-request-id`` if it is plain, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(given):
                return given
    return "req_" + secrets.token_hex(8)


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

    A path that climbs (``..``) would reach what the backend serves outside of its API.
    """
    path: str = exchange.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    path = _one_root(path)
    if not path.startswith("/v1/") or any(part in (".", "..") for part in re.split(r"[/\\]", exchange.scope["path"])):
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


async def _send_bytes(exchange: Exchange, reply: ByteReply) -> None:
    if isinstance(reply.body, bytes):
        await exchange.respond(reply.status, reply.headers, reply.body)
        return
    async with aclosing(reply.body) as pieces:
        if exchange.status is None:
            await exchange.start(reply.status, _for_streams(reply.headers))
        async for piece in pieces:
            if piece:  # an empty one says only that the answer has begun
                await exchange.write(piece)
        await exchange.end()


def _for_streams(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """``headers``, with the ones against buffering when they announce a stream of events."""
    if not any(name == "content-type" and "event-stream" in value for name, value in headers):
        return list(headers)
    ours = STREAM[1:]
    return [pair for pair in headers if pair[0] not in dict(ours)] + list(ours)


async def _send_events(
    exchange: Exchange, asked: Surface, encoder: Encoder, reply: EventReply, log: RequestLog
) -> None:
    async with aclosing(reply.batches) as batches:
        if exchange.status is None:
            await exchange.start(200, [*STREAM, *asked.headers(), *_warnings(log)])
        data = encoder.start()
        async for batch in batches:
            data += encoder.encode(batch)
            if data:
                await exchange.write(data)
                data = b""
        await exchange.end(encoder.done())


def _warnings(log: RequestLog) -> list[tuple[str, str]]:
    """The header that says what is known by now to be wrong with the answer."""
    return [("x-toolgraft-warning", log.warning)] if log.warning else []


async def _keep_alive(exchange: Exchange, filler: bytes) -> None:
    """Fill a silence, so that nobody between here and the client takes it for the end."""
    if exchange.status is None:
        await exchange.start(200, STREAM)
    if exchange.between_events:
        await exchange.write(filler)


async def _fail(exchange: Exchange, voice: Voice, log: RequestLog, error: ToolgraftError) -> None:
    """Tell the client of ``error``: as the answer, or within the stream that has begun.

    Any other answer that has begun is left incomplete, and the server then breaks the connection: its end would say
    that all is well.
    """
    log.error = error.code or error.type
    if exchange.status is None:
        await exchange.respond(*voice.shape.encode_error(error))
    elif exchange.is_event_stream and not exchange.ended:
        await exchange.end((b"" if exchange.between_events else b"\n\n") + voice.stream_error(error))

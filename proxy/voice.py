"""How a client is told: answers and errors in its surface's shape, whole or as a stream that has begun."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from proxy.asgi import Exchange
from proxy.core.errors import ClientError, ToolgraftError, UpstreamError
from proxy.relay import ByteReply, EventReply
from proxy.surfaces.base import Encoder, Shape, Surface
from proxy.telemetry import RequestLog, logger
from proxy.wire.openai_errors import error_body
from proxy.wire.sse import EventCutter

JSON = ("content-type", "application/json")
STREAM = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),  # nginx holds a stream back unless it is told not to
)

_UNTOLD = error_body(ToolgraftError("The proxy failed, and failed to say why. Its log has the reason."))


@dataclass(slots=True)
class Voice:
    """How the client of one request is told of a failure: in the surface's ``shape``, or by the stream's encoder."""

    shape: Shape
    encoder: Encoder | None = None

    def stream_error(self, error: ToolgraftError) -> bytes:
        """What ends a stream that has begun."""
        return self.shape.stream_error(error) if self.encoder is None else self.encoder.error(error)


async def send_bytes(exchange: Exchange, reply: ByteReply) -> None:
    """Send a backend's answer as it came. Of events only whole ones go out: an error can follow them."""
    if isinstance(reply.body, bytes):
        await exchange.respond(reply.status, reply.headers, reply.body)
        return
    async with aclosing(reply.body) as pieces:
        if exchange.status is None:
            await exchange.start(reply.status, _for_streams(reply.headers))
        cutter = EventCutter() if exchange.is_event_stream else None
        async for piece in pieces:
            whole = cutter.feed(piece) if cutter else piece
            if whole:  # an empty piece says only that the answer has begun
                await exchange.write(whole)
        await exchange.end(cutter.close() if cutter else b"")


async def send_events(exchange: Exchange, asked: Surface, encoder: Encoder, reply: EventReply, log: RequestLog) -> None:
    """Send an answer as a stream."""
    async with aclosing(reply.batches) as batches:
        if exchange.status is None:
            await exchange.start(200, [*STREAM, *asked.headers(), *warnings(log)])
        data = encoder.start()
        async for batch in batches:
            data += encoder.encode(batch)
            if data:
                await exchange.write(data)
                data = b""
        await exchange.end(encoder.done())


def warnings(log: RequestLog) -> list[tuple[str, str]]:
    """The header that says what is known by now to be wrong with the answer."""
    return [("x-toolgraft-warning", log.warning)] if log.warning else []


async def keep_alive(exchange: Exchange, filler: bytes) -> None:
    """Fill a silence, so that nobody between here and the client takes it for the end."""
    if exchange.status is None:
        await exchange.start(200, STREAM)
    if exchange.between_events:
        await exchange.write(filler)


async def fail(exchange: Exchange, voice: Voice, log: RequestLog, error: ToolgraftError) -> None:
    """Tell the client of ``error``: as the answer, or within the stream that has begun.

    Any other answer that has begun is left incomplete, and the server then breaks the connection: its end would say
    that all is well.
    """
    log.error = error.code or error.type
    match error:
        case ClientError():
            log.fault = "client"
        case UpstreamError():
            log.fault = "backend"
        case _:
            log.fault = "proxy"
    try:
        await _tell(exchange, voice, error)
    except Exception:
        logger.exception("the error of the request %s cannot be told", log.id)
        if exchange.status is None:
            await exchange.respond(500, [JSON], _UNTOLD)


async def _tell(exchange: Exchange, voice: Voice, error: ToolgraftError) -> None:
    if exchange.status is None:
        await exchange.respond(*voice.shape.encode_error(error))
    elif exchange.is_event_stream and not exchange.ended:
        await exchange.end((b"" if exchange.between_events else b"\n\n") + voice.stream_error(error))


def _for_streams(headers: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """``headers``, with the ones against buffering when they announce a stream of events."""
    if not any(name == "content-type" and "event-stream" in value for name, value in headers):
        return list(headers)
    ours = STREAM[1:]
    return [pair for pair in headers if pair[0] not in dict(ours)] + list(ours)

"""A backend's reply, whole or streamed, read into events for the client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Sequence
from itertools import groupby
from time import perf_counter

from proxy.core.dispatch import Reader
from proxy.core.errors import UpstreamError
from proxy.core.events import Event, Finish, Problem, ReasoningDelta, TextDelta, ToolCallEnd, Usage
from proxy.core.tokens import tokens_of
from proxy.relay.context import ContextCheck
from proxy.telemetry import CONTEXT_CUT, RequestLog, logger
from proxy.transport.upstream import UpstreamReply
from proxy.wire.sse import SseDecoder
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply

BROKE_OFF = "The backend's stream ended before its reply was complete. Its own log may say why."

PATIENCE = 5.0
"""Seconds that a backend which has given its finish reason has for the rest: the tokens' count, and ``[DONE]``.

Some servers leave the connection open and say no more; the reply is whole then, and the client waits for its end.
"""

LINGER = 0.05
"""Seconds to wait, after a stream's last event, for the end of its body: then the connection can be used again."""


def is_event_stream(reply: UpstreamReply, asked: bool) -> bool:
    """Whether the body of ``reply`` is a stream of events. What it says decides, else what was ``asked`` for."""
    kind = (reply.header("content-type") or "").lower()
    return "event-stream" in kind or (asked and "json" not in kind and "html" not in kind)


def read_within(reply: UpstreamReply, seconds: float | None) -> Awaitable[bytes]:
    """The next bytes of ``reply``, none at its end or when so many ``seconds`` (None: any) have passed in silence."""
    return reply.receive() if seconds is None else _read_within(reply, seconds)


async def _read_within(reply: UpstreamReply, seconds: float) -> bytes:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await reply.receive()
    return b""


class Pump:
    """Reads one reply through ``reader`` and notes in ``log`` what it was.

    ``streamed`` says that the reply is a stream of events; ``prompt_size`` is how many characters the prompt has, for
    an estimate where the backend does not count; ``taken`` are the ids of earlier calls of the conversation;
    ``context`` looks at what the backend counted.
    """

    def __init__(
        self,
        reply: UpstreamReply,
        reader: Reader,
        log: RequestLog,
        *,
        streamed: bool,
        prompt_size: int = 0,
        taken: Iterable[str] = (),
        context: ContextCheck | None = None,
    ) -> None:
        self._reply = reply
        self._reader = reader
        self._log = log
        self.streamed = streamed
        self._prompt_size = prompt_size
        self._reply_size = 0
        self._counted = False
        self._taken = taken
        self._context = context

    def batches(self) -> AsyncGenerator[list[Event], None]:
        """The client's events, as many at a time as the backend's came; a batch may be empty.

        The first batch comes with the backend's first event, ``Finish`` and ``Usage`` with the last. Raises
        ``UpstreamError`` when the backend reports an error or breaks off; what text was held back has then come, and
        of a call only what is complete. Closes the reply in any case, at once when nothing more of it counts.
        """
        return self._stream() if self.streamed else self._whole()

    async def whole(self) -> list[Event]:
        """All the client's events of a reply that is not streamed. Raises as ``batches`` does."""
        async with self._reply:
            body = await self._reply.read()
        self._log.answered = perf_counter()
        return self._read(decode_reply(body, taken=self._taken)) + self._end()

    async def _whole(self) -> AsyncGenerator[list[Event], None]:
        yield await self.whole()

    async def _stream(self) -> AsyncGenerator[list[Event], None]:
        async with self._reply:
            decoder = ChunkDecoder(taken=self._taken)
            sse = SseDecoder(shortcut=decoder.shortcut)
            rest: list[Event] = []
            failure: UpstreamError | None = None
            try:
                while data := await read_within(self._reply, PATIENCE if decoder.finished else None):
                    frames = sse.feed(data)
                    events, failure = decoder.read(frames)
                    batch = self._read(events)
                    done = self._reader.done
                    if done:
                        await self._reply.aclose()
                    if done or failure or decoder.saw_done:
                        rest = batch
                        break
                    if frames:
                        yield batch
                else:
                    events, failure = decoder.read(sse.close())
                    rest = self._read(events)
                if failure and not self._reader.done:
                    raise failure
                rest += self._read(decoder.close())
                if not (decoder.finished or decoder.saw_done or self._reader.done):
                    raise UpstreamError(BROKE_OFF, code="backend_broke_off")
            except UpstreamError:
                if not decoder.finished:
                    held = self._note([event for event in self._reader.close("error") if not isinstance(event, Finish)])
                    if rest or not all(isinstance(event, Problem) for event in held):  # else nothing came of the reply
                        yield rest + held
                    raise
                rest += self._read(decoder.close())
            self._log.answered = perf_counter()
            yield rest + self._end()
            with contextlib.suppress(TimeoutError, UpstreamError):
                async with asyncio.timeout(LINGER):
                    await self._reply.receive()

    def _read(self, events: Sequence[Event]) -> list[Event]:
        """The client's events for the backend's."""
        out: list[Event] = []
        for event in events if len(events) < 2 else _joined(events):
            if type(event) is TextDelta or type(event) is ReasoningDelta:
                self._reply_size += len(event.text)
            out += self._reader.feed(event)
        return self._note(out)

    def _end(self) -> list[Event]:
        """A finish, unless the backend gave one, and an estimate of the tokens, unless it counted them."""
        events = self._reader.close()
        if not self._counted:
            events.append(Usage(tokens_of(self._prompt_size), tokens_of(self._reply_size)))
            self._log.estimated = True
        return self._note(events)

    def _note(self, events: list[Event]) -> list[Event]:
        for event in events:
            if type(event) is ToolCallEnd:
                self._log.calls += 1
            elif type(event) is Problem:
                self._log.found(event)
                if event.kind == "late_reasoning":
                    logger.warning("request %s: %s", self._log.id, event.message)
            elif type(event) is Usage:
                self._counted = True
                self._log.prompt_tokens, self._log.completion_tokens = event.prompt_tokens, event.completion_tokens
                self._check(event)
        return events

    def _check(self, usage: Usage) -> None:
        finding = self._context.finding(usage) if self._context else None
        if finding is not None:
            self._log.warning = CONTEXT_CUT
            logger.warning("request %s: %s", self._log.id, finding)


def _joined(events: Iterable[Event]) -> Iterator[Event]:
    """``events``, where neighbouring pieces of text are one: what came in one read is read, and sent on, at once."""
    for kind, group in groupby(events, type):
        if kind is TextDelta:
            yield TextDelta("".join([event.text for event in group if isinstance(event, TextDelta)]))
        elif kind is ReasoningDelta:
            yield ReasoningDelta("".join([event.text for event in group if isinstance(event, ReasoningDelta)]))
        else:
            yield from group

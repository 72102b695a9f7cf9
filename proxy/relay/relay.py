"""From a client's request to a backend's answer: choose the mode, open the upstream, see that the answer has begun.

The backend is asked for a stream exactly when the client asks for one. A whole reply is a smaller job for both sides
and has its tokens counted by every server (some ignore ``stream_options``); what a stream would save, generation that
no longer counts, is rare. Whatever kind of body the backend then sends is read by what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from functools import partial
from time import perf_counter

from msgspec.structs import replace

from proxy.apart import apart
from proxy.backends.capability import Capabilities
from proxy.backends.constrain import Fields, constrain, may_be_refusal, thinking_off
from proxy.backends.probes import Facts
from proxy.backends.registry import Backend
from proxy.core.dispatch import Dispatcher, NativeDispatcher, XmlDispatcher, goes_untouched, reads_several
from proxy.core.errors import ClientError, UpstreamError
from proxy.core.grammar import AUTO, families
from proxy.core.history import HistoryOptions
from proxy.core.model import NOTHING, Request
from proxy.core.readers import NativeReader
from proxy.core.rescue import Rescue, RescueReader
from proxy.relay.answers import Ask, Begun, ByteReply, EventReply, Headers, Item
from proxy.relay.context import ContextCheck
from proxy.relay.count import Count, count_tokens
from proxy.relay.models import Model, read_models, with_first
from proxy.relay.native import pass_stream, pass_whole, with_model
from proxy.relay.pump import Pump, is_event_stream
from proxy.relay.reask import best_of, with_reasks
from proxy.relay.rescue import rescue_stream, rescue_whole
from proxy.tape import HIDDEN, Settings, Turn
from proxy.telemetry import RequestLog
from proxy.transport.failures import UNREACHABLE
from proxy.transport.headers import client_key, forwarded, returned
from proxy.transport.upstream import Upstream, UpstreamReply
from proxy.wire import jsonio
from proxy.wire.upstream_chat import encode_request
from proxy.wire.upstream_errors import upstream_error

MAX_ERROR_BODY = 1024 * 1024
"""Bytes of a backend's error response that are read."""

READY_WITHIN = 5.0
"""Seconds that a backend may take to say anything before it counts as not ready."""


class Relay:
    """Sends requests to the backend and hands back what it says."""

    def __init__(self, backend: Backend, upstream: Upstream, capabilities: Capabilities) -> None:
        self._backend = backend
        self._upstream = upstream
        self._capabilities = capabilities

    async def answer(self, ask: Ask, log: RequestLog) -> ByteReply | EventReply:
        """The answer, once it has begun: an error up to then is raised, ``ClientError`` or ``UpstreamError``.

        In ``auto``, a backend that refuses tools is asked again without them; the client never hears of it.
        """
        try:
            return await self._answer(ask, log)
        except UpstreamError as error:
            self._hide_key(error)
            raise

    async def _answer(self, ask: Ask, log: RequestLog) -> ByteReply | EventReply:
        backend = self._backend
        model = backend.config.model or ask.model
        log.model, log.backend = model, backend.api_root
        if backend.config.dispatcher == "native":
            return await self._native(ask, log)
        facts = await self._capabilities.resolve(backend, model, self._credentials(ask.headers))
        if backend.config.dispatcher == "auto" and facts.native:
            try:
                rescue = await apart(ask.size, partial(self._rescue, ask, facts))
                return await self._native(ask, log, rescue)
            except UpstreamError as error:
                if not self._capabilities.learn_from_error(backend, model, error.message):
                    raise
        return await self._xml(ask, facts, log)

    async def count(self, ask: Ask, log: RequestLog) -> Count:
        """How many tokens the request would have. Raises ``ClientError``, and ``UpstreamError`` as probing does."""
        backend = self._backend
        model = backend.config.model or ask.model
        log.model, log.backend = model, backend.api_root
        request = await apart(ask.size, ask.decode)
        facts = await self._capabilities.resolve(backend, model, self._credentials(ask.headers))
        native = facts.native if backend.config.dispatcher == "auto" else backend.config.dispatcher == "native"
        dispatcher: Dispatcher = NativeDispatcher() if native else self._dispatcher(facts, request)
        log.mode = dispatcher.mode
        prepared = await apart(ask.size, partial(dispatcher.prepare, request))

        async def post(path: str, body: bytes) -> bytes:
            fields = self._credentials(ask.headers)
            return await (await self._open("POST", backend.server_root + path, fields, body)).read()

        return await count_tokens(post, facts.kind, prepared, model)

    async def forward(
        self,
        method: str,
        path: str,
        headers: Headers,
        body: bytes | AsyncIterator[bytes],
        length: int | None,
        log: RequestLog,
    ) -> ByteReply:
        """The answer to a request that is none of ours. ``path`` is below the API root and may have a query.

        A body that comes in pieces has ``length`` bytes, None if that is not known.
        It comes back as it is, except that an error that is not JSON, or is about the key, becomes an
        ``UpstreamError``, and that no error repeats the key.
        """
        log.mode, log.backend = "bytes", self._backend.api_root
        log.asked = perf_counter()
        url = self._backend.api_root + path
        fields = [*_onward(headers, log), *self._credentials(lambda: headers)]
        reply = await self._upstream.open(method, url, headers=fields, body=body, length=length)
        if reply.status in (401, 403) or (reply.status >= 400 and "json" not in (reply.header("content-type") or "")):
            raise await self._error(reply, url)
        pieces = _pieces(reply) if reply.status < 400 else self._without_key(reply)
        return ByteReply(reply.status, returned(reply.headers), await Begun.wait(pieces))

    async def models(self, headers: Headers) -> list[Model]:
        """The models that can be asked for, the configured one first. Raises ``UpstreamError``."""
        url = self._backend.api_root + "/models"
        found: list[Model] = []
        try:
            reply = await self._open("GET", url, self._credentials(lambda: headers))
            found = read_models(await reply.read())
            await self._capabilities.recheck(self._backend, found, self._credentials(lambda: headers))
        except UpstreamError as error:
            if self._backend.config.model is None or error.status != 404:
                raise
        return with_first(found, self._backend.config.model)

    async def ready(self) -> bool:
        """Whether the backend answers, and not with a failure of its own. A refused key is an answer."""
        try:
            async with asyncio.timeout(READY_WITHIN):
                await self.models(())
        except UpstreamError as error:
            return error.answered is not None and error.answered < 500
        except TimeoutError:
            return False
        return True

    async def _native(self, ask: Ask, log: RequestLog, rescue: Rescue | None = None) -> ByteReply | EventReply:
        """The client's own bytes there and the backend's back. A body of the wrong kind is read and told as asked.

        A request that is in another format than the backend's is written in that, and the answer read. ``rescue`` looks
        for calls in the text of the answer.
        """
        log.mode = "native"
        if ask.body is None:
            return await self._translated(ask, log, rescue)
        model, body = self._backend.config.model, ask.body
        if model is not None and model != ask.model:
            body = await apart(ask.size, partial(with_model, body, model))
        fields = [*_onward(ask.headers(), log), *self._credentials(ask.headers), ("x-request-id", log.id)]
        reply = await self._generation(fields, body, log)
        streamed = is_event_stream(reply, ask.stream)
        if streamed != ask.stream:
            reader = NativeReader() if rescue is None else RescueReader(rescue)
            pump = Pump(reply, reader, log, streamed=streamed, prompt_size=len(body))
            return EventReply(await self._begun(pump.batches()))
        headers = returned(reply.headers)
        if not streamed:
            whole = await pass_whole(reply, log)
            return ByteReply(reply.status, headers, whole if rescue is None else rescue_whole(whole, rescue, log))
        if rescue is None:
            return ByteReply(reply.status, headers, await self._begun(pass_stream(reply, log, single=_single(body))))
        return ByteReply(reply.status, headers, await self._begun(rescue_stream(reply, rescue, log)))

    async def _translated(self, ask: Ask, log: RequestLog, rescue: Rescue | None) -> EventReply:
        """The request in the backend's format, tools and all, and its answer as events."""
        request = await apart(ask.size, lambda: NativeDispatcher().prepare(ask.decode()))
        model = self._backend.config.model or request.model
        body = await apart(ask.size, lambda: encode_request(request, model=model, stream=request.stream))
        reply = await self._generation(self._fields(ask, log), body, log)
        pump = Pump(
            reply,
            NativeDispatcher().reader(request) if rescue is None else RescueReader(rescue),
            log,
            streamed=is_event_stream(reply, request.stream),
            prompt_size=len(body),
            taken=_taken(request),
        )
        return EventReply(await self._begun(pump.batches()))

    async def _xml(self, ask: Ask, facts: Facts, log: RequestLog) -> ByteReply | EventReply:
        """Tools as text, calls read out of text; without tools, reasoning told from text."""
        request = await apart(ask.size, ask.decode)
        if goes_untouched(request):
            return await self._native(ask, log)
        log.mode = "xml"
        backend = self._backend
        model = backend.config.model or request.model
        dispatcher = self._dispatcher(facts, request)
        log.dialect = _dialect(dispatcher, model)
        if log.tape is not None:
            log.tape.settings = Settings(
                dispatcher.dialect, dispatcher.model or model, dispatcher.starts_in_reasoning, reads_several(request)
            )
        prepared = await apart(ask.size, partial(dispatcher.prepare, request))

        async def begin(constraint: Fields) -> EventReply:
            async def send(turn: Request, entry: RequestLog) -> Pump:
                more = {**facts.fields, **constraint}
                sent = replace(turn, extra={**turn.extra, **more}) if more else turn
                body = await apart(ask.size, lambda: encode_request(sent, model=model, stream=request.stream))
                reply = await self._generation(self._fields(ask, log), body, log)
                return Pump(
                    reply,
                    dispatcher.reader(request),
                    entry,
                    streamed=is_event_stream(reply, request.stream),
                    prompt_size=len(body),
                    taken=_taken(request),
                    context=ContextCheck(turn.messages, facts.kind),
                )

            first = await send(prepared, log)
            times = backend.config.reask if request.offered else 0
            if not (request.stream or first.streamed):
                events = await first.whole()
                best = await best_of(events, send, prepared=prepared, request=request, times=times, log=log)
                return EventReply(Begun(best))
            batches = with_reasks(first, send, prepared=prepared, request=request, times=times, log=log)
            return EventReply(await self._begun(batches))

        when = backend.config.constrain if self._capabilities.takes_constraint(backend, model) else "off"
        in_reasoning = dispatcher.starts_in_reasoning
        constraint = await constrain(facts.kind, request, when, starts_in_reasoning=in_reasoning, size=ask.size)
        try:
            return await begin(constraint)
        except UpstreamError as error:
            if not constraint or not may_be_refusal(error):
                raise
            refusal = error.message
        reply = await begin(NOTHING)
        self._capabilities.refuse_constraint(backend, model, refusal)
        return reply

    def _dispatcher(self, facts: Facts, request: Request) -> XmlDispatcher:
        backend = self._backend
        told = backend.config.starts_in_reasoning
        in_reasoning = facts.starts_in_reasoning and not thinking_off(request) if told is None else told
        return XmlDispatcher(
            HistoryOptions(system_role=backend.config.system_role, prefill=facts.prefill, vision=facts.vision),
            starts_in_reasoning=in_reasoning,
            prompt=backend.prompt(backend.config.model or request.model),
            dialect=backend.config.dialect,
            model=facts.file or backend.config.model,
        )

    def _rescue(self, ask: Ask, facts: Facts) -> Rescue | None:
        """What looks for calls in the text of a native answer: where tools are offered, and one answer is asked for.

        In bytes that are passed on a call is only told in the shape that is usual by now: not of ``functions``, and not
        of free-text tools. A request that cannot be read is the backend's to judge.
        """
        if ask.body is not None and (b'"tools"' not in ask.body or b'"functions"' in ask.body):
            return None
        try:
            request = ask.decode()
        except ClientError:
            return None
        several = request.extra.get("n") not in (None, 1)
        free_text = ask.body is not None and any(tool.custom for tool in request.tools)
        if not request.offered or several or free_text:
            return None
        config = self._backend.config
        return Rescue(
            request.offered, dialect=config.dialect, model=facts.file or config.model, parallel=request.parallel
        )

    async def _begun(self, source: AsyncGenerator[Item, None]) -> Begun[Item]:
        return await Begun.wait(source, self._hide_key)

    def _hide_key(self, error: UpstreamError) -> None:
        """Some backends repeat the key that they were given."""
        if self._backend.config.key:
            error.message = error.message.replace(self._backend.config.key, HIDDEN.decode())

    async def _without_key(self, reply: UpstreamReply) -> AsyncGenerator[bytes, None]:
        key = self._backend.config.key
        body = await reply.read()
        yield body.replace(key.encode(), HIDDEN) if key else body

    async def _generation(self, headers: Headers, body: bytes, log: RequestLog) -> UpstreamReply:
        """The reply to a chat request. Raises as ``_open`` does."""
        log.asked = log.asked or perf_counter()
        tape = log.tape
        if tape is None:
            return await self._open("POST", self._backend.chat_url, headers, body)
        tape.conceal(value.rpartition(" ")[2] for name, value in headers if name == "authorization")
        turn = tape.turn(self._backend.chat_url, body)
        try:
            return await self._open("POST", self._backend.chat_url, headers, body, turn)
        except UpstreamError as error:
            tape.fail(turn, error)
            raise

    async def _open(
        self, method: str, url: str, headers: Headers, body: bytes = b"", turn: Turn | None = None
    ) -> UpstreamReply:
        """A reply with a 2xx status. Raises ``UpstreamError`` with the backend's own words for any other.

        ``turn`` keeps what comes.
        """
        try:
            reply = await self._upstream.open(method, url, headers=headers, body=body)
        except UpstreamError as error:
            if error.code == UNREACHABLE:
                self._capabilities.forget(self._backend)  # what comes back may be another server
            raise
        if turn is not None:
            turn.status, reply.listener = reply.status, turn.came.add
        if not 200 <= reply.status < 300:
            raise await self._error(reply, url)
        return reply

    async def _error(self, reply: UpstreamReply, url: str) -> UpstreamError:
        error = upstream_error(reply.status, reply.headers, await reply.read(MAX_ERROR_BODY), url)
        self._hide_key(error)
        return error

    def _fields(self, ask: Ask, log: RequestLog) -> list[tuple[str, str]]:
        """The headers of a request that is not the client's own."""
        accept = "text/event-stream" if ask.stream else "application/json"
        return [("accept", accept), *self._credentials(ask.headers), ("x-request-id", log.id), *log.trace]

    def _credentials(self, headers: Callable[[], Headers]) -> list[tuple[str, str]]:
        """What the backend is told of who asks: its own key, else the client's if that is wanted."""
        config = self._backend.config
        if config.key:
            return [("authorization", f"Bearer {config.key}")]
        key = client_key(headers()) if config.forward_client_key else None
        return [("authorization", key)] if key else []


async def _pieces(reply: UpstreamReply) -> AsyncGenerator[bytes, None]:
    async with reply:
        async for piece in reply:
            yield piece


def _onward(headers: Headers, log: RequestLog) -> list[tuple[str, str]]:
    """The client's headers that go on; those that name its trace are replaced where the proxy has a part in it."""
    replaced = {name for name, _ in log.trace}
    return [field for field in forwarded(headers) if field[0] not in replaced] + list(log.trace)


def _single(body: bytes) -> bool:
    """Whether a request, in the format of Chat Completions, asks for one choice."""
    if b'"n"' not in body:
        return True
    try:
        asked = jsonio.loads(body)
    except ValueError:
        return False
    return isinstance(asked, dict) and asked.get("n") in (None, 1)


def _taken(request: Request) -> list[str]:
    """The ids of the conversation's earlier calls, which no new one may have."""
    return [call.id for message in request.messages for call in message.calls]


def _dialect(dispatcher: XmlDispatcher, model: str | None) -> str:
    """How calls are read, in a word for the log: as one dialect, or as all and first as those of the model's family."""
    if dispatcher.dialect != AUTO:
        return dispatcher.dialect
    return "+".join([AUTO, *sorted(families(dispatcher.model or model or ""))])

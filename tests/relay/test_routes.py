"""Which replica gets a request, what is tried again and what is not; what a client sees is in e2e."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Any

import pytest

from proxy.backends.capability import Capabilities
from proxy.backends.routing import Routing
from proxy.config import BackendConfig
from proxy.core.errors import ClientError, UpstreamError
from proxy.relay import Ask, ByteReply, EventReply, Routes
from proxy.relay import routes as module
from proxy.relay.peek import Passing
from proxy.surfaces.chat import Chat
from proxy.telemetry import RequestLog
from proxy.transport.upstream import Upstream
from tests.support import backend as scripted
from tests.support.proxy import free_port


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as connections:
        yield connections


def routes(upstream: Upstream, *configs: BackendConfig, clock: Callable[[], float] = monotonic) -> Routes:
    return Routes(Routing(configs), upstream, Capabilities(upstream), clock=clock)


def replicated(*urls: str, **options: Any) -> BackendConfig:
    first, *rest = urls
    return BackendConfig(first, **{"dispatcher": "native", "name": "b", **options}, replicas=tuple(rest))


def ask(**fields: Any) -> Ask:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()
    chat = Chat(body)
    return Ask(chat.model, chat.stream, list, body, chat.request)


def entry() -> RequestLog:
    return RequestLog("r1", "chat")


def dead() -> str:
    return f"http://127.0.0.1:{free_port()}"


async def close(answer: ByteReply | EventReply) -> None:
    rest = answer.batches if isinstance(answer, EventReply) else answer.body
    if not isinstance(rest, bytes):
        await rest.aclose()


@pytest.mark.parametrize("dispatcher", ["native", "xml", "auto"])
async def test_a_replica_that_is_gone_is_followed_by_the_next(
    upstream: Upstream, dispatcher: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with scripted.Backend() as second:
        fleet = routes(upstream, replicated(dead(), second.url, dispatcher=dispatcher))
        log = entry()
        await close(await fleet.answer(ask(), log))
        assert log.backend == second.url + "/v1"
        assert len(second.chats) == 1
        assert "cannot be reached" in caplog.text
        assert "did not take it, the next one of b is asked" in caplog.text
        caplog.clear()
        await close(await fleet.answer(ask(), entry()))
        assert caplog.text == ""  # the first is passed over for a while


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_replica_that_is_not_ready_is_followed_by_the_next(upstream: Upstream, status: int) -> None:
    with scripted.Backend() as first, scripted.Backend() as second:
        first.script(scripted.error(status, "Loading model"))
        fleet = routes(upstream, replicated(first.url, second.url))
        await close(await fleet.answer(ask(), entry()))
        assert (len(first.chats), len(second.chats)) == (1, 1)


async def hang_up(exchange: scripted.Exchange) -> None:
    exchange.reset()


@pytest.mark.parametrize(
    "reply",
    [
        scripted.error(500, "CUDA error"),
        scripted.error(400, "no"),
        scripted.error(429, "slow down"),
        scripted.sse('data: {"error": {"message": "busy", "code": 503}}\n\n'),
        hang_up,
    ],
)
async def test_what_may_have_been_worked_on_is_not_sent_again(upstream: Upstream, reply: scripted.Reply) -> None:
    with scripted.Backend() as first, scripted.Backend() as second:
        first.script(reply)
        with pytest.raises(UpstreamError):
            await routes(upstream, replicated(first.url, second.url)).answer(ask(stream=True), entry())
        assert second.chats == []


async def test_when_none_takes_it_the_last_one_s_words_are_told(upstream: Upstream) -> None:
    with scripted.Backend() as second:
        second.script(scripted.error(503, "Loading model"))
        with pytest.raises(UpstreamError, match="Loading model") as caught:
            await routes(upstream, replicated(dead(), second.url)).answer(ask(), entry())
        assert caught.value.status == 503


async def test_a_request_counts_until_its_answer_is_closed(upstream: Upstream) -> None:
    with scripted.Backend() as first, scripted.Backend() as second:
        for backend in (first, second):
            backend.script(scripted.sse(scripted.chunk({"content": "a"}), end="hang"))
        fleet = routes(upstream, replicated(first.url, second.url))
        answers = [await fleet.answer(ask(stream=True), entry()) for _ in range(4)]
        assert (len(first.chats), len(second.chats)) == (2, 2)
        for answer in answers[::2]:
            await close(answer)
        answers += [await fleet.answer(ask(stream=True), entry()) for _ in range(2)]
        assert (len(first.chats), len(second.chats)) == (4, 2)
        for answer in answers:
            await close(answer)


async def test_a_request_that_is_given_up_while_the_backend_is_silent_no_longer_counts(upstream: Upstream) -> None:
    with scripted.Backend() as first, scripted.Backend() as second:
        first.script(scripted.silence, scripted.text("Hello."))
        fleet = routes(upstream, replicated(first.url, second.url))
        waiting = asyncio.create_task(fleet.answer(ask(), entry()))
        while not first.chats:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await close(await fleet.answer(ask(), entry()))
        assert (len(first.chats), len(second.chats)) == (2, 0)


async def body_of(reply: ByteReply) -> bytes:
    assert not isinstance(reply.body, bytes)
    data = b"".join([piece async for piece in reply.body])
    await reply.body.aclose()
    return data


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def test_another_path_goes_to_the_backend_of_its_model(upstream: Upstream) -> None:
    answers = {"/v1/embeddings": scripted.body({"object": "list"})}
    with scripted.Backend(dict(answers)) as first, scripted.Backend(dict(answers)) as second:
        fleet = routes(
            upstream,
            BackendConfig(first.url, models=("a*",), default=True),
            BackendConfig(second.url, models=("b*",), aliases={"embedder": "b-1"}),
        )
        for name in ("a1", "b2", "embedder", "c"):
            sent = json.dumps({"input": "x", "model": name}).encode()
            body = pieces(sent[:10], sent[10:])
            reply = await fleet.forward("POST", "/embeddings", [], body, len(sent), entry())
            assert await body_of(reply) == b'{"object": "list"}'
        assert [request.json["model"] for request in first.requests] == ["a1", "c"]
        assert [request.json["model"] for request in second.requests] == ["b2", "b-1"]
        await body_of(await fleet.forward("GET", "/files", [], b"", None, entry()))
        assert first.requests[-1].path == "/v1/files"


async def test_a_form_with_an_alias_keeps_its_length(upstream: Upstream) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nears\r\n' + b"--x\r\n\r\n" + b"\0" * 9_000
    headers = [("content-type", "multipart/form-data; boundary=x")]
    with scripted.Backend({"/v1/audio/transcriptions": scripted.body({"text": "hi"})}) as backend:
        fleet = routes(upstream, BackendConfig(backend.url, aliases={"ears": "whisper-large"}))
        body = pieces(form[:100], form[100:])
        await body_of(await fleet.forward("POST", "/audio/transcriptions", headers, body, len(form), entry()))
        assert backend.requests[-1].body == form.replace(b"ears", b"whisper-large")


async def test_an_only_backend_s_bodies_are_not_looked_into(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scripted.Backend({"/v1/embeddings": scripted.body({})}) as backend:
        sent = b'{"model": "m"}'
        fleet = routes(upstream, BackendConfig(backend.url))
        monkeypatch.setattr(Passing, "look", None)
        await body_of(await fleet.forward("POST", "/embeddings", [], pieces(sent), 14, entry()))
        assert backend.requests[-1].body == sent


async def test_a_body_goes_on_to_the_next_replica_if_nothing_of_it_was_sent(upstream: Upstream) -> None:
    with scripted.Backend({"/v1/embeddings": scripted.body({})}) as second:
        fleet = routes(upstream, replicated(dead(), second.url))
        await body_of(await fleet.forward("POST", "/embeddings", [], pieces(b"a", b"b"), 2, entry()))
        assert second.requests[-1].body == b"ab"


@pytest.mark.parametrize(
    "not_ready", [scripted.error(503, "Loading model"), scripted.body(b"<html>", 503, "text/html")]
)
async def test_a_body_that_was_sent_is_repeated_only_when_it_was_held(
    upstream: Upstream, not_ready: scripted.Reply
) -> None:
    with scripted.Backend() as first, scripted.Backend() as second:
        first.routes["/v1/embeddings"] = not_ready
        second.routes["/v1/embeddings"] = scripted.body({})
        reply = await routes(upstream, replicated(first.url, second.url)).forward(
            "POST", "/embeddings", [], b"{}", 2, entry()
        )
        assert reply.status == 200
        await body_of(reply)
        fleet = routes(upstream, replicated(first.url, second.url))
        try:
            reply = await fleet.forward("POST", "/embeddings", [], pieces(b"{", b"}"), 2, entry())
            status = reply.status
            await body_of(reply)
        except UpstreamError as error:
            status = error.answered or 0
        assert status == 503
        assert len(second.requests) == 1


async def test_a_model_that_leads_nowhere_is_refused(upstream: Upstream) -> None:
    fleet = routes(upstream, BackendConfig(dead(), models=("a",)), BackendConfig(dead(), models=("b",)))
    with pytest.raises(ClientError, match="'m'"):
        await fleet.answer(ask(), entry())
    with pytest.raises(ClientError, match="names no model"):
        await fleet.forward("GET", "/files", [], b"", None, entry())


async def test_the_models_of_all_are_told_but_of_the_dead(
    upstream: Upstream, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LISTED_WITHIN", 2.0)  # what the two that answer may take on a busy machine
    with scripted.Backend() as first, scripted.Backend({"/v1/models": scripted.silence}) as slow:
        fleet = routes(
            upstream,
            BackendConfig(first.url, default=True),
            BackendConfig(dead(), name="gone", models=("a",)),
            BackendConfig(slow.url, name="slow", models=("b",)),
        )
        assert [model["id"] for model in await fleet.models([])] == ["scripted"]
        assert "backend gone: its models are left out" in caplog.text
        assert "backend slow: its models are left out: The backend slow did not tell" in caplog.text


async def test_when_all_are_dead_there_is_an_error(upstream: Upstream) -> None:
    fleet = routes(upstream, BackendConfig(dead(), default=True), BackendConfig(dead(), models=("a",)))
    with pytest.raises(UpstreamError, match="cannot be reached"):
        await fleet.models([])


async def test_it_is_ready_when_any_replica_is(upstream: Upstream) -> None:
    with scripted.Backend() as backend:
        fleet = routes(upstream, BackendConfig(dead(), default=True), replicated(dead(), backend.url, models=("a",)))
        assert await fleet.ready()
    assert not await routes(upstream, replicated(dead())).ready()


async def test_whether_it_is_ready_is_asked_once_a_second_for_all(upstream: Upstream) -> None:
    now = 0.0
    with scripted.Backend() as backend:
        fleet = routes(upstream, replicated(backend.url), clock=lambda: now)
        first = asyncio.create_task(fleet.ready())
        others = [asyncio.create_task(fleet.ready()) for _ in range(5)]
        await asyncio.sleep(0)
        first.cancel()  # one who no longer waits takes the answer from nobody
        assert await asyncio.gather(*others) == [True] * 5
        asked = len(backend.requests)
        assert asked <= 2
        now = 0.9
        assert await fleet.ready()
        assert len(backend.requests) == asked
    now = 1.0
    assert not await fleet.ready()

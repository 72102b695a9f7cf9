"""Facts are asked for once, kept for a while, corrected by errors and dropped when the server may be another."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable

import pytest

from proxy.backends import capability
from proxy.backends.capability import ANSWERED_WITHIN, KEPT_FOR, Capabilities
from proxy.backends.registry import Backend
from proxy.config import BackendConfig
from proxy.core.errors import UpstreamError
from proxy.core.model import Json

BACKEND = Backend.of(BackendConfig(url="http://h", key="s3cret"), "main")
OTHER = Backend.of(BackendConfig(url="http://other"), "other")


class Reply:
    def __init__(self, status: int, value: Json) -> None:
        self.status = status
        self._value = value
        self.closed = False

    async def read(self, limit: int = 0) -> bytes:
        return json.dumps(self._value).encode()

    async def aclose(self) -> None:
        self.closed = True


class Upstream:
    """An Ollama whose model can be changed; ``hold`` keeps its answers back, ``failure`` takes their place."""

    def __init__(self) -> None:
        self.capabilities: list[str] | None = ["tools"]
        self.hold: asyncio.Event | None = None
        self.failure: Exception | None = None
        self.asked: list[str] = []
        self.headers: list[list[tuple[str, str]]] = []
        self.replies: list[Reply] = []

    async def open(self, method: str, url: str, *, headers: Iterable[tuple[str, str]], body: bytes) -> Reply:
        if url.endswith("/api/show"):
            self.asked.append(json.loads(body)["model"])
            self.headers.append(list(headers))
            if self.hold is not None:
                await self.hold.wait()
            if self.failure is not None:
                raise self.failure
        known = url.endswith("/api/show") and self.capabilities is not None
        answer: Json = {"details": {}, "capabilities": self.capabilities} if known else {"error": "model 'm' not found"}
        reply = Reply(200 if known else 404, answer)
        self.replies.append(reply)
        return reply


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def capabilities(upstream: Upstream, clock: Clock) -> Capabilities:
    return Capabilities(upstream, clock=clock)


async def test_a_fact_is_asked_for_once_and_kept_for_ten_minutes(
    upstream: Upstream, clock: Clock, capabilities: Capabilities
) -> None:
    assert (await capabilities.resolve(BACKEND, "m")).native
    upstream.capabilities = []
    clock.now = KEPT_FOR - 1
    assert (await capabilities.resolve(BACKEND, "m")).native
    clock.now = KEPT_FOR
    assert not (await capabilities.resolve(BACKEND, "m")).native
    assert upstream.asked == ["m", "m"]
    assert all(reply.closed for reply in upstream.replies)


async def test_each_backend_and_model_has_facts_of_its_own(upstream: Upstream, capabilities: Capabilities) -> None:
    for backend, model in ((BACKEND, "a"), (BACKEND, "b"), (OTHER, "a"), (BACKEND, "a")):
        await capabilities.resolve(backend, model)
    assert upstream.asked == ["a", "b", "a"]
    assert list(capabilities.known()) == [("main", "a"), ("main", "b"), ("other", "a")]


async def test_the_questions_carry_the_backend_s_key_or_what_is_given(
    upstream: Upstream, capabilities: Capabilities
) -> None:
    await capabilities.resolve(BACKEND, "a")
    await capabilities.resolve(OTHER, "a")
    await capabilities.resolve(OTHER, "b", [("authorization", "Bearer theirs")])
    assert upstream.headers == [
        [("authorization", "Bearer s3cret")],
        [],
        [("authorization", "Bearer theirs")],
    ]


async def test_those_who_ask_at_once_wait_for_one_answer(upstream: Upstream, capabilities: Capabilities) -> None:
    upstream.hold = asyncio.Event()
    waiting = [asyncio.create_task(capabilities.resolve(BACKEND, "m")) for _ in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting[0].cancel()  # the one that asked goes away: the others still get the answer
    await asyncio.sleep(0)
    upstream.hold.set()
    assert [facts.native for facts in await asyncio.gather(*waiting[1:])] == [True] * 4
    assert waiting[0].cancelled()
    assert upstream.asked == ["m"]


async def test_a_question_is_given_up_when_nobody_waits_for_the_answer(
    upstream: Upstream, capabilities: Capabilities
) -> None:
    upstream.hold = asyncio.Event()
    waiting = [asyncio.create_task(capabilities.resolve(BACKEND, "m")) for _ in range(2)]
    while not upstream.asked:
        await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    upstream.hold.set()
    await asyncio.sleep(0)
    assert [reply.status for reply in upstream.replies] == [404]  # that of /props; the next was not waited for
    assert capabilities.known() == {}
    assert (await capabilities.resolve(BACKEND, "m")).native
    assert upstream.asked == ["m", "m"]


async def test_no_answer_is_not_kept(upstream: Upstream, capabilities: Capabilities) -> None:
    upstream.capabilities = None
    facts = await capabilities.resolve(BACKEND, "m")
    assert (facts.kind, facts.native) == ("ollama", False)
    assert capabilities.known() == {}
    upstream.capabilities = ["tools"]
    assert (await capabilities.resolve(BACKEND, "m")).native


async def test_a_backend_that_cannot_be_reached_is_taken_for_one_without_tools(
    upstream: Upstream, capabilities: Capabilities
) -> None:
    upstream.failure = UpstreamError("The backend cannot be reached.")
    facts = await capabilities.resolve(BACKEND, "m")
    assert (facts.kind, facts.native) == ("unknown", False)
    assert "cannot be reached" in facts.source
    upstream.failure = None
    assert (await capabilities.resolve(BACKEND, "m")).native


async def test_a_backend_that_is_silent_does_not_hold_up_the_request_for_long(upstream: Upstream, clock: Clock) -> None:
    assert ANSWERED_WITHIN == 5
    capabilities = Capabilities(upstream, clock=clock, answered_within=0.01)
    upstream.hold = asyncio.Event()
    facts = await capabilities.resolve(BACKEND, "m")
    assert (facts.kind, facts.native) == ("unknown", False)
    assert "0.01 s" in facts.source
    assert capabilities.known() == {}


async def test_what_was_known_stands_while_there_is_no_newer_answer(
    upstream: Upstream, clock: Clock, capabilities: Capabilities
) -> None:
    await capabilities.resolve(BACKEND, "m")
    clock.now = KEPT_FOR
    upstream.failure = UpstreamError("busy")
    assert (await capabilities.resolve(BACKEND, "m")).native
    upstream.failure, upstream.capabilities = None, []
    assert not (await capabilities.resolve(BACKEND, "m")).native


async def test_what_an_error_taught_holds_for_ten_minutes(
    upstream: Upstream, clock: Clock, capabilities: Capabilities
) -> None:
    await capabilities.resolve(BACKEND, "m")
    assert not capabilities.learn_from_error(BACKEND, "m", "The model is overloaded.")
    assert (await capabilities.resolve(BACKEND, "m")).native
    clock.now = 300.0
    assert capabilities.learn_from_error(BACKEND, "m", "registry.ollama.ai/library/m does not support tools")
    facts = await capabilities.resolve(BACKEND, "m")
    assert (facts.kind, facts.native) == ("ollama", False)
    assert "does not support tools" in facts.source
    assert not capabilities.known()["main", "m"].native
    assert (await capabilities.resolve(BACKEND, "n")).native
    clock.now = KEPT_FOR + 1  # asked again, but the lesson is younger
    assert not (await capabilities.resolve(BACKEND, "m")).native
    clock.now = KEPT_FOR + 300
    assert (await capabilities.resolve(BACKEND, "m")).native


async def test_what_is_forgotten_is_asked_for_again(upstream: Upstream, capabilities: Capabilities) -> None:
    for backend in (BACKEND, OTHER):
        await capabilities.resolve(backend, "m")
    capabilities.learn(BACKEND, "m", native=False, source="It was so.")
    capabilities.forget(BACKEND)
    assert list(capabilities.known()) == [("other", "m")]
    assert (await capabilities.resolve(BACKEND, "m")).native
    assert upstream.asked == ["m", "m", "m"]


async def test_an_answer_that_comes_after_its_question_was_forgotten_is_not_kept(
    upstream: Upstream, capabilities: Capabilities
) -> None:
    upstream.hold = asyncio.Event()
    early = asyncio.create_task(capabilities.resolve(BACKEND, "m"))
    while not upstream.asked:
        await asyncio.sleep(0)
    capabilities.forget(BACKEND)
    upstream.hold.set()
    assert (await early).native
    assert capabilities.known() == {}


async def test_not_every_name_that_a_client_thinks_of_is_remembered(
    upstream: Upstream, capabilities: Capabilities
) -> None:
    for number in range(1001):
        await capabilities.resolve(BACKEND, str(number))
    known = [model for _, model in capabilities.known()]
    assert (len(known), known[0], known[-1]) == (1000, "1", "1000")


async def test_closing_ends_the_questions_under_way(upstream: Upstream, capabilities: Capabilities) -> None:
    upstream.hold = asyncio.Event()
    waiting = asyncio.create_task(capabilities.resolve(BACKEND, "m"))
    while not upstream.asked:
        await asyncio.sleep(0)
    await capabilities.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_constraint_that_was_refused_is_not_sent_again_for_a_while(
    capabilities: Capabilities, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    assert capabilities.takes_constraint(BACKEND, "m")
    capabilities.refuse_constraint(BACKEND, "m", "Failed to parse grammar")
    assert "Failed to parse grammar" in caplog.text
    assert not capabilities.takes_constraint(BACKEND, "m")
    assert capabilities.takes_constraint(BACKEND, "another")
    assert capabilities.takes_constraint(OTHER, "m")
    clock.now = KEPT_FOR
    assert capabilities.takes_constraint(BACKEND, "m")


async def test_a_backend_that_is_gone_may_come_back_and_take_constraints(capabilities: Capabilities) -> None:
    capabilities.refuse_constraint(BACKEND, "m", "no")
    capabilities.forget(BACKEND)
    assert capabilities.takes_constraint(BACKEND, "m")


async def test_what_is_known_has_an_age(upstream: Upstream, clock: Clock, capabilities: Capabilities) -> None:
    assert capabilities.known_of(BACKEND, "m") is None
    await capabilities.resolve(BACKEND, "m")
    clock.now = 60.0
    known = capabilities.known_of(BACKEND, "m")
    assert known
    assert (known.facts.native, known.age) == (True, 60.0)
    capabilities.learn(BACKEND, "m", native=False, source="It was so.")
    clock.now = 70.0
    known = capabilities.known_of(BACKEND, "m")
    assert known
    assert (known.facts.native, known.facts.source, known.age) == (False, "It was so.", 10.0)
    assert capabilities.known_of(BACKEND, "n") is None
    assert capabilities.known_of(BACKEND, "n", any_name=True) == known
    assert capabilities.known_of(OTHER, "m", any_name=True) is None
    clock.now = KEPT_FOR
    assert capabilities.known_of(BACKEND, "m") is None


def models(*names: str, **more: Json) -> list[dict[str, Json]]:
    return [{"id": name, "created": time.time(), **more} for name in names]


async def test_a_backend_that_lists_other_models_is_asked_anew(
    upstream: Upstream, capabilities: Capabilities, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolgraft")
    for backend in (BACKEND, OTHER):
        await capabilities.resolve(backend, "m")
        await capabilities.recheck(backend, models("m", "n"), [])
    await capabilities.recheck(BACKEND, models("n", "m"), [])
    assert len(capabilities.known()) == 2
    await capabilities.recheck(BACKEND, models("m", "n", meta={"n_params": 1}), [])
    assert list(capabilities.known()) == [("other", "m")]
    assert "backend main lists other models" in caplog.text
    await capabilities.resolve(BACKEND, "m")
    await capabilities.recheck(BACKEND, models("m"), [])
    assert list(capabilities.known()) == [("other", "m")]


class LlamaCpp(Upstream):
    """A llama.cpp server whose template can be changed."""

    props: Json

    async def open(self, method: str, url: str, *, headers: Iterable[tuple[str, str]], body: bytes) -> Reply:
        self.asked.append(url)
        if self.failure is not None:
            raise self.failure
        if self.hold is not None:
            await self.hold.wait()
        return Reply(200 if "/props" in url else 404, self.props)


async def test_a_llama_cpp_with_another_template_is_asked_anew(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    server = LlamaCpp()
    server.props = {"build_info": "b1", "chat_template": "a", "chat_template_caps": {}}
    capabilities = Capabilities(server, clock=clock)
    assert not (await capabilities.resolve(BACKEND, "m")).native
    await capabilities.recheck(BACKEND, models("m"), [])
    assert server.asked[-1] == "http://h/props?model=m"
    assert list(capabilities.known()) == [("main", "m")]

    server.props = {**server.props, "chat_template": "b"}
    server.failure = UpstreamError("busy")
    await capabilities.recheck(BACKEND, models("m"), [])
    server.failure, server.hold = None, asyncio.Event()
    monkeypatch.setattr(capability, "_RECHECKED_WITHIN", 0.01)
    await capabilities.recheck(BACKEND, models("m"), [])
    assert list(capabilities.known()) == [("main", "m")]  # it did not say

    server.hold = None
    await capabilities.recheck(BACKEND, models("m"), [])
    assert capabilities.known() == {}

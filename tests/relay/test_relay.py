"""What the relay does with an upstream, a backend's capabilities and a request; what a client sees is in e2e."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.backends.capability import Capabilities
from proxy.backends.registry import Backend
from proxy.config import BackendConfig, DispatcherName
from proxy.core.errors import ClientError, UpstreamError
from proxy.core.events import ReasoningDelta, TextDelta, ToolCallStart
from proxy.core.model import Tool
from proxy.core.prompt import PromptOptions, render_protocol
from proxy.relay import Ask, ByteReply, EventReply, Relay
from proxy.surfaces.chat import Chat
from proxy.telemetry import RequestLog
from proxy.transport.upstream import Upstream
from tests.support import backend as scripted
from tests.support.proxy import free_port

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with Upstream() as connections:
        yield connections


def ask(**fields: Any) -> Ask:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()
    chat = Chat(body)
    return Ask(chat.model, chat.stream, list, body, chat.request)


def entry() -> RequestLog:
    return RequestLog("r1", "chat")


def relay_to(url: str, upstream: Upstream, dispatcher: DispatcherName = "xml", **options: Any) -> Relay:
    return Relay(Backend.of(BackendConfig(url, dispatcher, **options)), upstream, Capabilities(upstream))


async def test_the_log_says_where_a_request_went_and_how(upstream: Upstream) -> None:
    with scripted.Backend() as backend:
        log = entry()
        reply = await relay_to(backend.url, upstream, model="real").answer(ask(tools=[TOOL]), log)
        assert isinstance(reply, EventReply)
        await reply.batches.aclose()
        assert (log.model, log.backend, log.mode) == ("real", backend.url + "/v1", "xml")
        assert backend.chats[-1].json["model"] == "real"
        reply = await relay_to(backend.url, upstream, "native").answer(ask(), log)
        assert isinstance(reply, ByteReply)
        assert (log.model, log.mode) == ("m", "native")


async def test_an_answer_that_nobody_reads_is_closed(upstream: Upstream) -> None:
    with scripted.Backend() as backend:
        backend.script(scripted.sse(scripted.chunk({"content": "a"}), end="hang"))
        reply = await relay_to(backend.url, upstream).answer(ask(stream=True), entry())
        assert isinstance(reply, EventReply)
        await reply.batches.aclose()
        assert await asyncio.to_thread(backend.hung_up.wait, 2)


async def test_a_request_that_is_wrong_is_not_sent(upstream: Upstream) -> None:
    with scripted.Backend() as backend:
        with pytest.raises(ClientError):
            await relay_to(backend.url, upstream).answer(ask(messages=[]), entry())
        assert backend.chats == []


async def test_a_native_backend_judges_requests_itself(upstream: Upstream) -> None:
    with scripted.Backend() as backend:
        await relay_to(backend.url, upstream, "native").answer(ask(messages=[]), entry())
        assert backend.chats[-1].json["messages"] == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_native_backend_is_asked_in_its_own_format_by_other_surfaces(upstream: Upstream, stream: bool) -> None:
    with scripted.Backend() as backend:
        backend.script(scripted.text("hello"))
        theirs = replace(ask(tools=[TOOL], stream=stream), body=None)
        reply = await relay_to(backend.url, upstream, "native", model="real").answer(theirs, entry())
        assert isinstance(reply, EventReply)
        events = [event async for batch in reply.batches for event in batch]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "hello"
        sent = backend.chats[-1].json
        assert (sent["model"], sent["stream"], sent["tools"][0]["function"]["name"]) == ("real", stream, "f")


async def test_what_was_known_of_a_backend_is_forgotten_when_it_is_gone(upstream: Upstream) -> None:
    port = free_port()
    relay = relay_to(f"http://127.0.0.1:{port}", upstream, "auto")
    with scripted.Backend(port=port, probe_tokens=(10, 60)):
        assert isinstance(await relay.answer(ask(tools=[TOOL]), entry()), ByteReply)
    with pytest.raises(UpstreamError):
        await relay.answer(ask(tools=[TOOL]), entry())
    with scripted.Backend(port=port, probe_tokens=(10, 10)):
        assert isinstance(await relay.answer(ask(tools=[TOOL]), entry()), EventReply)


@pytest.mark.parametrize(("model", "called"), [("mistral-7b", True), ("qwen3", False)])
async def test_the_way_of_a_known_family_is_read_as_its_own(upstream: Upstream, model: str, called: bool) -> None:
    with scripted.Backend() as backend:
        backend.script(scripted.text("[TOOL_CALLS]other[ARGS]{}"))
        reply = await relay_to(backend.url, upstream, model=model, reask=0).answer(ask(tools=[TOOL]), entry())
        assert isinstance(reply, EventReply)
        events = [event async for batch in reply.batches for event in batch]
        assert any(isinstance(event, ToolCallStart) for event in events) is called


@pytest.mark.parametrize("ask_for", ["models", "ready"])
async def test_what_was_known_of_a_model_is_forgotten_when_there_is_another(upstream: Upstream, ask_for: str) -> None:
    def serves(model: str, *, tools: bool) -> dict[str, scripted.Reply]:
        caps = {"supports_tools": tools, "supports_tool_calls": tools}
        props = {"build_info": "b1", "model_path": model, "chat_template": "", "chat_template_caps": caps}
        return {"/props": scripted.body(props), "/v1/models": scripted.body({"data": [{"id": "same"}]})}

    async def look() -> None:
        await (relay.models([]) if ask_for == "models" else relay.ready())

    with scripted.Backend(routes=serves("a.gguf", tools=True)) as backend:
        relay = relay_to(backend.url, upstream, "auto")
        assert isinstance(await relay.answer(ask(tools=[TOOL]), entry()), ByteReply)
        await look()
        backend.routes.update(serves("b.gguf", tools=False))
        assert isinstance(await relay.answer(ask(tools=[TOOL]), entry()), ByteReply)  # nobody looked
        await look()
        assert isinstance(await relay.answer(ask(tools=[TOOL]), entry()), EventReply)


@pytest.mark.parametrize(
    ("answer", "is_ready"),
    [
        (scripted.body({"data": []}), True),
        (scripted.body(b"models?", 200, "text/plain"), True),
        (scripted.error(401, "no key"), True),
        (scripted.error(404, "no such path"), True),
        (scripted.error(503, "Loading model"), False),
        (scripted.body(b"<html>", 500, "text/html"), False),
    ],
)
async def test_it_is_ready_when_it_answers_whatever_it_says(
    upstream: Upstream, answer: scripted.Reply, is_ready: bool
) -> None:
    with scripted.Backend(routes={"/v1/models": answer}) as backend:
        assert await relay_to(backend.url, upstream).ready() is is_ready


@pytest.mark.parametrize("system_role", [True, False])
async def test_the_prompt_is_made_as_the_backend_needs_it(upstream: Upstream, system_role: bool) -> None:
    with scripted.Backend() as backend:
        reply = await relay_to(backend.url, upstream, system_role=system_role).answer(ask(tools=[TOOL]), entry())
        assert isinstance(reply, EventReply)
        await reply.batches.aclose()
        roles = [message["role"] for message in backend.chats[-1].json["messages"]]
        assert roles == (["system", "user"] if system_role else ["user"])


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (True, [ReasoningDelta("Hm."), TextDelta("Hi.")]),
        (None, [TextDelta("Hm."), TextDelta("Hi.")]),
    ],
)
async def test_where_replies_begin_can_be_configured(
    upstream: Upstream, caplog: pytest.LogCaptureFixture, told: bool | None, said: list[object]
) -> None:
    with scripted.Backend() as backend:
        backend.script(scripted.text("Hm.", "</think>", "Hi.", pause=0.05))
        relay = relay_to(backend.url, upstream, starts_in_reasoning=told)
        reply = await relay.answer(ask(tools=[TOOL], stream=True), entry())
        assert isinstance(reply, EventReply)
        events = [event async for batch in reply.batches for event in batch]
    assert [event for event in events if isinstance(event, TextDelta | ReasoningDelta)] == said
    assert ("--starts-in-reasoning" in caplog.text) is (told is None)


async def test_the_model_is_told_of_tools_as_the_backend_s_prompt_options_say(upstream: Upstream) -> None:
    prompt = PromptOptions(example=True, style="compact")
    with scripted.Backend() as backend:
        reply = await relay_to(backend.url, upstream, prompt=prompt).answer(ask(tools=[TOOL]), entry())
        assert isinstance(reply, EventReply)
        await reply.batches.aclose()
        told = backend.chats[-1].json["messages"][0]["content"]
    assert told == render_protocol([Tool.of(TOOL)], example=True, style="compact")


THINKS = {
    "/props": scripted.body({"build_info": "b1", "chat_template": "", "chat_template_caps": {}}),
    "/apply-template": scripted.body({"prompt": "<|im_start|>assistant\n<think>\n"}),
}
"""What a llama.cpp server says whose chat template opens the reasoning itself."""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, [ReasoningDelta("Hm."), TextDelta("Hello.")]),
        ({"chat_template_kwargs": {"enable_thinking": False}}, [TextDelta("Hm.Hello.")]),
    ],
)
async def test_a_reply_begins_in_reasoning_where_the_template_opened_it(
    upstream: Upstream, more: dict[str, Any], said: list[object]
) -> None:
    with scripted.Backend(routes=dict(THINKS)) as backend:
        backend.script(scripted.text("Hm.", *([] if more else ["</think>"]), "Hello."))
        reply = await relay_to(backend.url, upstream).answer(ask(tools=[TOOL], **more), entry())
        assert isinstance(reply, EventReply)
        events = [event async for batch in reply.batches for event in batch]
    assert [event for event in events if isinstance(event, TextDelta | ReasoningDelta)] == said


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("own", [False, True], ids=["bytes", "events"])
async def test_calls_that_a_native_backend_left_in_its_text_are_counted(
    upstream: Upstream, stream: bool, own: bool
) -> None:
    with scripted.Backend(probe_tokens=(10, 60)) as backend:
        backend.script(scripted.text('{"name": "f", ', '"arguments": {}}'))
        asked = ask(tools=[TOOL], stream=stream)
        log = entry()
        reply = await relay_to(backend.url, upstream, "auto").answer(replace(asked, body=None) if own else asked, log)
        if isinstance(reply, EventReply):
            assert [event.name async for batch in reply.batches for event in batch if isinstance(event, ToolCallStart)]
        elif not isinstance(reply.body, bytes):
            assert b"tool_calls" in b"".join([piece async for piece in reply.body])
        assert (log.mode, log.rescued, log.calls, log.problems) == ("native", 1, 1, {"rescued": 1})
        assert log.prompt_tokens == (11 if own or not stream else None)

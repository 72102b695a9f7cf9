"""A model that is asked again, as the client and the backend see it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.backend import DONE, Backend, Exchange, Reply, body, chunk, error, silence, sse, text
from tests.support.proxy import http_client, post, proxy_before

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]}
GOOD = '<tool_call>{"name": "f", "arguments": {"n": 1}}</tool_call>'
BAD = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


def arguments(raw: bytes) -> list[str]:
    """The arguments of the calls of an answer, whole or streamed."""
    if not raw.startswith(b"data: "):
        message = json.loads(raw)["choices"][0]["message"]
        return [call["function"]["arguments"] for call in message["tool_calls"]]
    assert raw.endswith(DONE.encode())
    calls: list[str] = []
    for event in raw.decode().split("\n\n")[:-2]:
        for choice in json.loads(event.removeprefix("data: "))["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                calls += [""] if "id" in call else []
                calls[call["index"]] += call["function"].get("arguments", "")
    return calls


def dribble(*pieces: str) -> Reply:
    """Streamed a character at a time."""
    return text(*"".join(pieces))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "bad", [BAD, BAD.replace('"f"', '"g"'), BAD.replace("}}</tool_call>", ""), BAD.replace("{}", "{[}")]
)
def test_a_bad_call_is_answered_to_the_model_and_the_client_sees_the_good_one(
    backend: Backend, stream: bool, bad: str
) -> None:
    backend.script(dribble(bad), dribble(GOOD))
    with proxy_before(backend) as url:
        answer = post(url + "/v1/chat/completions", json={**ASKED, "stream": stream})
    assert arguments(answer.content) == ['{"n": 1}']
    first, second = (chat.json for chat in backend.chats)
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert [message["role"] for message in second["messages"][len(first["messages"]) :]] == ["assistant", "user"]
    assert {key: second[key] for key in second if key != "messages"} == {
        key: first[key] for key in first if key != "messages"
    }


def test_what_a_call_has_to_be_forced_by_is_sent_again(backend: Backend) -> None:
    backend.routes["/props"] = body({"build_info": "b1", "chat_template": "", "chat_template_caps": {}})
    backend.script(text("No."), text(GOOD))
    with proxy_before(backend) as url:
        answer = post(url + "/v1/chat/completions", json={**ASKED, "tool_choice": "required"})
    assert arguments(answer.content) == ['{"n": 1}']
    first, second = (chat.json for chat in backend.chats)
    assert first["grammar"] == second["grammar"]


def test_it_can_be_switched_off(backend: Backend) -> None:
    backend.script(text(BAD), text(GOOD))
    with proxy_before(backend, reask=0) as url:
        answer = post(url + "/v1/chat/completions", json=ASKED)
    assert arguments(answer.content) == ["{}"]
    assert len(backend.chats) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "second",
    [
        error(500, "out of memory"),
        error(400, "the prompt is too long"),
        sse('data: {"error": {"message": "busy"}}\n\n'),
        sse(chunk({"content": GOOD}), end="reset"),
        sse("data: {not json}\n\n"),
        text(BAD),
    ],
)
def test_the_first_answer_stands_when_asking_again_does_not_help(backend: Backend, stream: bool, second: Reply) -> None:
    backend.script(text(BAD), second)
    with proxy_before(backend) as url:
        answer = post(url + "/v1/chat/completions", json={**ASKED, "stream": stream})
    assert answer.status_code == 200
    assert arguments(answer.content) == ["{}"]
    assert len(backend.chats) == 2


def test_the_client_of_a_stream_is_kept_while_the_model_is_asked_again(backend: Backend) -> None:
    async def late(exchange: Exchange) -> None:
        await asyncio.sleep(0.3)
        await text(GOOD)(exchange)

    backend.script(text(BAD), late)
    with proxy_before(backend, config={"keep_alive": 0.05}) as url:
        answer = post(url + "/v1/chat/completions", json={**ASKED, "stream": True})
    filler = b": keep-alive\n\n"
    said, kept, _ = answer.content.rpartition(filler)
    assert kept
    assert said.count(b"data: ") == 1
    assert b'"role":"assistant"' in said
    assert arguments(answer.content.replace(filler, b"")) == ['{"n": 1}']


@pytest.mark.parametrize("second", [silence, sse(chunk({"content": "<"}), end="hang")], ids=["silent", "midway"])
def test_a_client_that_leaves_while_the_model_is_asked_again_closes_the_backend(
    backend: Backend, second: Reply
) -> None:
    backend.script(text(BAD), second)
    with proxy_before(backend) as url, http_client() as client:
        with client.stream("POST", url + "/v1/chat/completions", json={**ASKED, "stream": True}) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            wait_until(lambda: len(backend.chats) == 2)
        assert backend.hung_up.wait(2)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")

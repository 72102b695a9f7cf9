"""Backends that call tools themselves: their bytes are the client's, and the client's theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.support.backend import DONE, Backend, Exchange, body, chunk, error, sse, text
from tests.support.proxy import post, proxy_before

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
BODY = b'{ "model":"m", "messages":[{"role":"user","content":"hi"}], "tools":[{"type":"odd"}], "x": 1.0e2,"stream":%s}'
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HEADERS = {"content-type": "application/json"}


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


def ask(url: str, content: bytes | dict[str, Any], **headers: str) -> httpx2.Response:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    fields = {**HEADERS, **headers}
    return post(url + "/v1/chat/completions", content=data, headers=fields)


def asked(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}


async def whole(exchange: Exchange) -> None:
    reply = b'{"choices" : [{"message": {"content":"<think>x</think><tool_call>"}}],\n "extra": 1.10}\n'
    more = (("x-note", "1"), ("access-control-allow-origin", "*"), ("set-cookie", "a=b"), ("x-request-id", "theirs"))
    await body(reply, 200, "application/json; charset=utf-8", *more)(exchange)


def test_a_request_and_its_whole_reply_pass_untouched(backend: Backend) -> None:
    backend.script(whole)
    with proxy_before(backend, "native") as url:
        answer = ask(url, BODY % b"false", cookie="a=b", authorization="Bearer sk-client")
    seen = backend.chats[-1]
    assert seen.body == BODY % b"false"
    assert seen.header("content-type") == "application/json"
    assert seen.header("cookie") is None
    assert seen.header("authorization") is None
    assert answer.content.startswith(b'{"choices" : [')
    assert answer.content.endswith(b'"extra": 1.10}\n')
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.headers["x-note"] == "1"
    assert answer.headers["x-request-id"] != "theirs"
    assert not {"access-control-allow-origin", "set-cookie"} & set(answer.headers)


@pytest.mark.parametrize("cut", [1, 17, 10_000])
def test_a_stream_passes_untouched(backend: Backend, cut: int) -> None:
    raw = b": hello\r\n\r\n" + (chunk({"tool_calls": [CALL, CALL]}) + chunk({}, "tool_calls") + DONE).encode()
    backend.script(sse(*(raw[at : at + cut] for at in range(0, len(raw), cut)), pause=0))
    with proxy_before(backend, "native") as url:
        answer = ask(url, BODY % b"true")
    assert answer.content == raw
    assert answer.headers["x-accel-buffering"] == "no"


def test_only_the_model_s_name_is_replaced_when_one_is_configured(backend: Backend) -> None:
    with proxy_before(backend, "native", model="real") as url:
        ask(url, BODY % b"false")
    assert backend.chats[-1].body == (BODY % b"false").replace(b'"model":"m"', b'"model":"real"')


def test_a_body_into_which_no_model_can_be_put_is_a_400(backend: Backend) -> None:
    with proxy_before(backend, "native", model="real") as url:
        answer = ask(url, b"\xef\xbb\xbf" + BODY % b"false")
    assert answer.status_code == 400
    assert backend.chats == []


def test_an_error_has_the_backend_s_words_and_the_api_s_shape(backend: Backend) -> None:
    backend.script(error(429, "slow down"), error(429, "slow down"))
    with proxy_before(backend, "native") as url:
        for stream in (b"false", b"true"):
            answer = ask(url, BODY % stream)
            assert answer.status_code == 429
            assert answer.json()["error"]["message"] == "slow down"


def test_a_stream_that_breaks_is_told_within_it(backend: Backend) -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.head(200, "text/event-stream", ("content-length", "10000"))
        await exchange.write(chunk({"content": "a"}).encode() + b'data: {"cho')
        exchange.ends_connection = True

    backend.script(half)
    with proxy_before(backend, "native") as url:
        answer = ask(url, BODY % b"true")
    *_, last = answer.content.decode().strip().split("\n\n")
    assert "broke off" in json.loads(last.removeprefix("data: "))["error"]["message"]


def test_a_backend_that_does_not_do_as_asked_is_read_and_told_as_asked(backend: Backend) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    backend.script(
        body({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}),
        sse(chunk({"tool_calls": [CALL]}), chunk({}, "tool_calls"), DONE),
    )
    with proxy_before(backend, "native") as url:
        streamed = ask(url, asked(tools=[TOOL], stream=True))
        gathered = ask(url, asked(tools=[TOOL]))
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.content.endswith(b"data: [DONE]\n\n")
    assert b'"finish_reason":"tool_calls"' in streamed.content
    (call,) = gathered.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": "{}"}


# ---- auto


def test_auto_finds_out_once_whether_tools_are_dropped(backend: Backend) -> None:
    backend.script(text('<tool_call>{"name": "f", "arguments": {}}</tool_call>'))
    with proxy_before(backend, "auto") as url:
        for _ in range(3):
            choice = ask(url, asked(tools=[TOOL])).json()["choices"][0]
            assert choice["finish_reason"] == "tool_calls"
    assert "tools" not in backend.chats[-1].json
    assert len(backend.chats) == 3
    assert len(backend.probes) == 2


def test_auto_leaves_a_backend_alone_that_calls_tools(backend: Backend) -> None:
    backend.probe_tokens = (10, 60)
    backend.script(whole)
    with proxy_before(backend, "auto") as url:
        answer = ask(url, BODY % b"false")
    assert backend.chats[-1].body == BODY % b"false"
    assert answer.content.endswith(b'"extra": 1.10}\n')


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "m does not support tools"),
        error(500, "tools param requires --jinja flag"),
        sse('data: {"error": {"message": "m does not support tools"}}\n\n'),
    ],
)
def test_a_refusal_of_tools_is_never_shown_and_remembered(backend: Backend, stream: bool, refusal: Any) -> None:
    backend.probe_tokens = (10, 60)
    backend.script(refusal, text('<tool_call>{"name": "f", "arguments": {}}</tool_call>'))
    with proxy_before(backend, "auto") as url:
        for _ in range(2):
            answer = ask(url, asked(tools=[TOOL], stream=stream))
            assert answer.status_code == 200
            assert b'"finish_reason":"tool_calls"' in answer.content
    assert ["tools" in chat.json for chat in backend.chats] == [True, False, False]


def test_any_other_refusal_is_shown(backend: Backend) -> None:
    backend.probe_tokens = (10, 60)
    backend.script(error(400, "the moon is full"))
    with proxy_before(backend, "auto") as url:
        answer = ask(url, asked(tools=[TOOL]))
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "the moon is full")
    assert len(backend.chats) == 1


def test_reasoning_is_told_from_text_though_no_tools_are_in_play(backend: Backend) -> None:
    backend.script(text("<think>Hm.</think>Hello."))
    with proxy_before(backend, "auto") as url:
        message = ask(url, asked()).json()["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Hello.", "Hm.")


# ---- what text cannot hold


@pytest.mark.parametrize("more", [{"n": 2}, {"logprobs": True, "top_logprobs": 2}])
def test_a_request_without_tools_for_more_than_text_passes_untouched(backend: Backend, more: dict[str, Any]) -> None:
    backend.script(whole)
    with proxy_before(backend, "xml") as url:
        answer = ask(url, asked(**more))
    assert backend.chats[-1].json == asked(**more)
    assert answer.content.endswith(b'"extra": 1.10}\n')


def test_several_replies_with_tools_are_refused(backend: Backend) -> None:
    with proxy_before(backend, "xml") as url:
        answer = ask(url, asked(n=2, tools=[TOOL]))
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "n"


def test_a_hosted_tool_is_left_out_and_named(backend: Backend) -> None:
    with proxy_before(backend, "xml") as url:
        for stream in (False, True):
            answer = ask(url, asked(tools=[TOOL, {"type": "web_search"}], stream=stream))
            assert answer.headers["x-toolgraft-dropped-tools"] == "web_search"


# ---- forcing a call


def test_a_required_call_is_forced_where_the_backend_can_be(backend: Backend) -> None:
    backend.routes["/props"] = body({"build_info": "b1", "chat_template": "", "chat_template_caps": {}})
    backend.script(text('<tool_call>{"name": "f", "arguments": {}}</tool_call>'))
    with proxy_before(backend, "xml") as url:
        ask(url, asked(tools=[TOOL], tool_choice="required"))
        assert "root" in backend.chats[-1].json["grammar"]
        ask(url, asked(tools=[TOOL], grammar="root ::= evil"))
        assert "grammar" not in backend.chats[-1].json


# ---- keys


@pytest.fixture
def refusing(backend: Backend) -> Backend:
    backend.script(error(401, "Incorrect API key provided: sk-backend."))
    return backend


@pytest.mark.parametrize("mode", ["xml", "native"])
def test_the_client_s_key_goes_nowhere_unless_wanted(backend: Backend, mode: str) -> None:
    keys: tuple[dict[str, str], ...] = (
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer null"},
        {"x-api-key": "k"},
    )
    with proxy_before(backend, mode) as url:
        for headers in (*keys, {"authorization": "Bearer sk-client"}):
            assert ask(url, asked(tools=[TOOL]), **headers).status_code == 200
            assert backend.chats[-1].header("authorization") is None
            assert backend.chats[-1].header("x-api-key") is None
    with proxy_before(backend, mode, forward_client_key=True) as url:
        ask(url, asked(tools=[TOOL]), authorization="Bearer sk-client")
        assert backend.chats[-1].header("authorization") == "Bearer sk-client"
        ask(url, asked(tools=[TOOL]), authorization="Bearer null")
        assert backend.chats[-1].header("authorization") is None


@pytest.mark.parametrize("mode", ["xml", "native"])
def test_the_backend_s_own_key_goes_to_the_backend_and_to_nobody_else(refusing: Backend, mode: str) -> None:
    with proxy_before(refusing, mode, key="sk-backend", forward_client_key=True) as url:
        answer = ask(url, asked(tools=[TOOL]), authorization="Bearer sk-client")
    assert refusing.chats[-1].header("authorization") == "Bearer sk-backend"
    assert answer.status_code == 401
    message = answer.json()["error"]["message"]
    assert "sk-backend" not in message
    assert "--backend-key-env" in message
    assert "--forward-client-key" in message


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        (
            "/v1/messages",
            {
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "old"}]},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{bad"}]},
                    {"role": "user", "content": "And now?"},
                ],
            },
        ),
        (
            "/v1/responses",
            {
                "input": [
                    None,
                    {"type": "function_call_output", "call_id": "gone", "output": "old"},
                    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{bad"},
                    {"role": "user", "content": "And now?"},
                ]
            },
        ),
    ],
)
def test_a_strict_backend_is_handed_a_past_that_it_takes(backend: Backend, path: str, request_: dict[str, Any]) -> None:
    backend.script(text("Now."))
    with proxy_before(backend, "native") as url:
        assert post(url + path, json=request_).status_code == 200
    old, call, result, user = backend.chats[-1].json["messages"]
    assert (old["role"], user["content"]) == ("user", "And now?")
    assert old["content"].endswith("\nold")
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"unreadable_arguments": "{bad"}
    assert (result["role"], result["tool_call_id"]) == ("tool", "a")

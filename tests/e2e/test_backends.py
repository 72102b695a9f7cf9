"""Several backends and replicas behind one proxy, over HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from proxy.config import BackendConfig
from tests.support.backend import Backend, Exchange, body, error, sse, text
from tests.support.proxy import free_port, get, http_client, post, proxy_before, proxy_before_all

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'


def chat(url: str, model: str | None, **fields: Any) -> Any:
    asked = {"messages": [{"role": "user", "content": "hi"}], **fields}
    return post(f"{url}/v1/chat/completions", json=asked if model is None else {"model": model, **asked})


def says(name: str) -> Backend:
    """A backend that answers with its name, and serves a model that is called like it."""
    backend = Backend(routes={"/v1/models": body({"object": "list", "data": [{"id": name, "object": "model"}]})})
    backend.script(text(name))
    return backend


@contextmanager
def two(**options: Any) -> Iterator[tuple[str, Backend, Backend]]:
    with says("ant") as ant, says("bee") as bee:
        configs = (
            BackendConfig(ant.url, dispatcher="native", name="a", models=("ant*",), key="sk-ant", default=True),
            BackendConfig(
                bee.url,
                name="b",
                dispatcher="xml",
                models=("bee*",),
                aliases={"quick": "bee-1"},
                forward_client_key=True,
            ),
        )
        with proxy_before_all(*configs, **options) as url:
            yield url, ant, bee


def test_each_model_is_answered_by_its_backend_in_its_way() -> None:
    with two() as (url, ant, bee):
        bee.script(text(CALL))
        for model in ("ant-2", "bee-2", "quick", "unheard-of", None):
            answer = chat(url, model, tools=[TOOL]).json()["choices"][0]["message"]
            calls = [call["function"]["name"] for call in answer.get("tool_calls") or ()]
            assert calls == (["f"] if model in ("bee-2", "quick") else [])
        assert [request.json.get("model") for request in ant.chats] == ["ant-2", "unheard-of", None]
        assert all("tools" in request.json for request in ant.chats)
        assert [request.json["model"] for request in bee.chats] == ["bee-2", "bee-1"]
        assert not any("tools" in request.json for request in bee.chats)


def test_each_backend_gets_the_key_that_is_meant_for_it() -> None:
    with two() as (url, ant, bee), http_client(url) as client:
        headers = {"authorization": "Bearer sk-client"}
        for model in ("ant", "bee"):
            asked = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            assert client.post("/v1/chat/completions", json=asked, headers=headers).status_code == 200
            client.post("/v1/embeddings", json={"model": model}, headers=headers)
        client.get("/v1/models", headers=headers)
        assert {request.header("authorization") for request in ant.requests} == {"Bearer sk-ant"}
        assert {request.header("authorization") for request in bee.requests} == {"Bearer sk-client"}


def test_an_alias_goes_to_a_native_backend_with_nothing_else_changed() -> None:
    with says("ant") as ant:
        config = BackendConfig(ant.url, dispatcher="native", aliases={"gpt-4o": "ant"})
        with proxy_before_all(config) as url, http_client(url) as client:
            sent = b'{"model" : "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "seed": 1e0}'
            client.post("/v1/chat/completions", content=sent)
            assert ant.chats[-1].body == sent.replace(b"gpt-4o", b"ant")


def test_a_model_that_leads_nowhere_is_not_found() -> None:
    with says("ant") as ant, says("bee") as bee:
        configs = BackendConfig(ant.url, models=("ant",)), BackendConfig(bee.url, models=("bee*",))
        with proxy_before_all(*configs) as url:
            answer = chat(url, "gpt-4o")
            assert answer.status_code == 404
            assert answer.json()["error"]["code"] == "model_not_found"
            assert "ant, bee*" in answer.json()["error"]["message"]
            assert answer.headers["x-should-retry"] == "false"
            assert chat(url, None).status_code == 400
            assert post(f"{url}/v1/embeddings", json={"model": "x"}).json()["error"]["code"] == "model_not_found"
            assert ant.chats == bee.chats == []


def test_the_models_are_one_list_with_what_is_known_of_each() -> None:
    with two() as (url, ant, _):
        models = get(f"{url}/v1/models").json()["data"]
        assert [model["id"] for model in models] == ["ant", "bee", "quick"]
        assert [model["toolgraft"]["backend"] for model in models] == ["a", "b", "b"]
        assert [model["toolgraft"]["mode"] for model in models] == ["native", "xml", "xml"]
        assert get(f"{url}/v1/models/quick").json() == models[2]
        assert get(f"{url}/v1/models/bee-77").status_code == 404
        ant.routes["/v1/models"] = error(500, "out of order")
        assert [model["id"] for model in get(f"{url}/v1/models").json()["data"]] == ["bee", "quick"]


def test_what_was_found_out_is_shown_with_its_age() -> None:
    with says("ant") as ant, proxy_before(ant, "auto") as url:
        assert "mode" not in get(f"{url}/v1/models").json()["data"][0]["toolgraft"]
        chat(url, "ant", tools=[TOOL])
        about = get(f"{url}/v1/models").json()["data"][0]["toolgraft"]
        assert (about["mode"], about["age"]) == ("xml", 0)
        assert "drops tools" in about["source"]


def test_a_replica_that_restarts_is_not_noticed() -> None:
    port = free_port()
    with says("ant") as steady:
        config = BackendConfig(f"http://127.0.0.1:{port}", dispatcher="xml", replicas=(steady.url,))
        with proxy_before_all(config) as url:
            with Backend(port=port) as first:
                assert chat(url, "ant").status_code == 200
                assert len(first.chats) == 1
            assert chat(url, "ant").json()["choices"][0]["message"]["content"] == "ant"
            with Backend(port=port) as first:
                first.script(error(503, "Loading model"))
                for _ in range(3):
                    assert chat(url, "ant", stream=True).status_code == 200
                assert get(f"{url}/ready").status_code == 200
            assert len(steady.chats) == 4


@pytest.mark.parametrize("status", [400, 401, 500])
def test_no_error_repeats_the_backend_s_key(status: int) -> None:
    with Backend() as backend:
        told = {"error": {"message": "You sent Bearer sk-secret.", "code": "x"}}
        refusal = body(told, status, "application/json", ("x-note", "1"))
        backend.routes["/v1/embeddings"] = refusal
        with proxy_before_all(BackendConfig(backend.url, dispatcher="native", key="sk-secret")) as url:
            for path in ("/v1/embeddings", "/v1/chat/completions"):
                backend.script(refusal)
                answer = post(url + path, json={"model": "m", "messages": [{"role": "user", "content": "hi"}]})
                assert answer.status_code == status
                assert "You sent Bearer [the key]." in answer.json()["error"]["message"]


def test_an_answer_that_has_begun_is_not_begun_again_elsewhere() -> None:
    with says("ant") as ant, says("bee") as bee:
        ant.script(sse(*[f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{n}"}}}}]}}\n\n' for n in "12"]))
        config = BackendConfig(ant.url, dispatcher="xml", replicas=(bee.url,))
        with proxy_before_all(config) as url:
            answer = chat(url, "m", stream=True)
            assert "error" in answer.text
            assert bee.chats == []


def test_requests_at_once_are_shared_between_replicas() -> None:
    together = threading.Barrier(9, timeout=20)

    async def wait(exchange: Exchange) -> None:
        await asyncio.to_thread(together.wait)
        await text("done")(exchange)

    with Backend() as one, Backend() as other, Backend() as third:
        replicas = (one, other, third)
        for backend in replicas:
            backend.script(wait)
        config = BackendConfig(one.url, dispatcher="xml", replicas=(other.url, third.url))
        with proxy_before_all(config) as url, ThreadPoolExecutor(9) as pool:
            answers = list(pool.map(lambda _: chat(url, "m"), range(9)))
        assert {answer.status_code for answer in answers} == {200}
        assert [len(backend.chats) for backend in replicas] == [3, 3, 3]


def test_a_model_of_a_backend_can_be_served_in_another_way() -> None:
    with says("ant") as ant:
        text_only = BackendConfig(ant.url, dispatcher="xml", system_role=False)
        config = BackendConfig(ant.url, dispatcher="native", per_model=(("old-*", text_only),))
        with proxy_before_all(config) as url:
            ant.script(text(CALL))
            assert chat(url, "old-1", tools=[TOOL]).json()["choices"][0]["finish_reason"] == "tool_calls"
            assert [message["role"] for message in ant.chats[-1].json["messages"]] == ["user"]
            assert chat(url, "new-1", tools=[TOOL]).json()["choices"][0]["message"]["content"] == CALL


def test_a_form_goes_to_the_backend_of_its_model_as_it_is() -> None:
    with two() as (url, _, bee), http_client(url) as client:
        bee.routes["/v1/audio/transcriptions"] = body({"text": "hello"})
        files = {"file": ("a.wav", b"RIFF" + b"\0" * 300_000, "audio/wav")}
        answer = client.post("/v1/audio/transcriptions", data={"model": "bee-ear"}, files=files)
        assert answer.json() == {"text": "hello"}
        assert bee.requests[-1].body.count(b"\0") == 300_000


def test_a_body_that_is_too_large_is_still_refused() -> None:
    with two(max_body=1000) as (url, ant, _):
        answer = post(f"{url}/v1/embeddings", json={"model": "ant", "input": "x" * 2000})
        assert answer.status_code == 413
        assert [request.path for request in ant.requests] == []


def test_a_dead_backend_is_told_by_its_address_and_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    with says("bee") as bee:
        configs = BackendConfig(dead, name="a", key="sk-secret", default=True), BackendConfig(bee.url, models=("bee",))
        with proxy_before_all(*configs) as url:
            answer = chat(url, "x")
            assert answer.status_code == 502
            assert dead in answer.json()["error"]["message"]
            assert get(f"{url}/ready").status_code == 200
            get(f"{url}/v1/models")
            assert "sk-secret" not in caplog.text + json.dumps(answer.json())

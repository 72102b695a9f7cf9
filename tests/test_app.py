"""The routes and the shape of errors, from outside."""

from __future__ import annotations

import gc
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from proxy import asgi
from proxy.access import hash_key
from proxy.app import FORWARDED_METHODS, canonical, request_id
from proxy.relay import Relay, routes
from tests.support.backend import Backend, Exchange, body, error, text
from tests.support.proxy import free_port, get, http_client, post, proxy_before

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture(scope="module")
def client(backend: Backend) -> Iterator[httpx2.Client]:
    with (
        proxy_before(backend, config={"max_body": 30_000_000}) as url,
        http_client(url) as http,
    ):
        yield http


def error_of(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    fields = answer.json()["error"]
    assert set(fields) == {"message", "type", "param", "code"}
    assert isinstance(fields["message"], str)
    return dict(fields)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/v1/models", "/v1/models"),
        ("/chat/completions", "/v1/chat/completions"),
        ("/models/", "/v1/models"),
        ("/models/a/b", "/v1/models/a/b"),
        ("/", "/"),
        ("/v1/", "/v1"),
        ("/health", "/health"),
        ("/v1beta/models", "/v1beta/models"),
        ("//v1/chat/completions", "/v1/chat/completions"),
        ("/v1//chat/completions", "/v1/chat/completions"),
        ("//chat/completions", "/v1/chat/completions"),
        ("/v1/models/a//b", "/v1/models/a//b"),
    ],
)
def test_a_path_is_what_the_client_means(given: str, meant: str) -> None:
    assert canonical(given) == meant


@pytest.mark.parametrize("path", ["/v1/chat/completions/", "/v1/v1/chat/completions", "/chat/completions"])
def test_chat_is_found_however_the_base_url_was_given(client: httpx2.Client, path: str) -> None:
    assert client.post(path, json=HELLO).json()["choices"][0]["message"]["content"] == "Hello."


def test_a_plain_request_id_is_kept_and_any_other_replaced() -> None:
    def given(value: bytes) -> str:
        return request_id({"type": "http", "headers": [(b"x-request-id", value)]})

    assert given(b"abc-1.2:3_4") == "abc-1.2:3_4"
    for odd in (b"", b"a b", b"a\nb", b"x" * 101, "ä".encode()):
        assert given(odd).startswith("req_")


def test_every_answer_has_the_request_s_id(client: httpx2.Client, backend: Backend) -> None:
    headers = {"x-request-id": "mine-1"}
    assert client.get("/health", headers=headers).headers["x-request-id"] == "mine-1"
    assert client.get("/nowhere", headers=headers).headers["x-request-id"] == "mine-1"
    assert client.post("/v1/chat/completions", json=HELLO, headers=headers).headers["x-request-id"] == "mine-1"
    assert backend.chats[-1].header("x-request-id") == "mine-1"


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v2/chat/completions", "/v1", "/props"])
def test_an_unknown_path_is_a_404_object(client: httpx2.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "/v1" in error_of(answer)["message"]


@pytest.mark.parametrize("path", ["/v1//things/a//b", "//v1/things/a//b", "/v1/v1/things/a//b"])
def test_a_path_that_is_passed_on_begins_with_the_backend_s_own_root(
    client: httpx2.Client, backend: Backend, path: str
) -> None:
    client.get(path)
    assert backend.requests[-1].path == "/v1/things/a//b"


@pytest.mark.parametrize("method", ["TRACE", "CONNECT"])
def test_methods_that_are_about_the_connection_are_not_passed_on(
    client: httpx2.Client, backend: Backend, method: str
) -> None:
    before = len(backend.requests)
    answer = client.request(method, "/v1/things")
    assert answer.status_code == 405
    assert error_of(answer)["message"] == f"/v1/things takes {', '.join(FORWARDED_METHODS)}, not {method}."
    assert len(backend.requests) == before


@pytest.mark.parametrize(
    "path",
    [
        "/v1/../props",
        "/v1/%2e%2e/props",
        "/v1/a/..%2f..%2fprops",
        "/v1/a/..\\..\\props",
        "/v1/%252e%252E/props",
        "/v1/..;a/props",
    ],
)
def test_a_path_cannot_climb_out_of_the_backend_s_api(client: httpx2.Client, backend: Backend, path: str) -> None:
    before = len(backend.requests)
    answer = client.send(raw_request(client, path))
    assert answer.status_code == 404
    assert len(backend.requests) == before


def raw_request(client: httpx2.Client, path: str) -> httpx2.Request:
    """A request whose path no URL parser has tidied up."""
    request = client.build_request("GET", "/")
    request.url = httpx2.URL(str(client.base_url)).copy_with(raw_path=path.encode())
    return request


def test_a_wrong_method_is_a_405_object(client: httpx2.Client) -> None:
    answer = client.get("/v1/chat/completions")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    error_of(answer)
    assert client.delete("/v1/models/a").headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"', b"{'a': 1}", b"\xff\xfe", b'{"a": NaN}'])
def test_a_body_that_is_no_json_object_is_a_400_object(client: httpx2.Client, content: bytes) -> None:
    answer = client.post("/v1/chat/completions", content=content)
    assert answer.status_code == 400
    assert error_of(answer)["type"] == "invalid_request_error"


def test_a_body_may_be_large_up_to_the_limit(client: httpx2.Client, backend: Backend) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 20_000_000}}
    asked = {**HELLO, "messages": [{"role": "user", "content": [image]}]}
    assert client.post("/v1/chat/completions", json=asked).status_code == 200
    assert len(backend.chats[-1].body) > 20_000_000


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_beyond_the_limit_is_a_413_object(client: httpx2.Client, chunked: bool) -> None:
    size = 31_000_000
    content: Any = (b" " * 1_000_000 for _ in range(31)) if chunked else b" " * size
    answer = client.post("/v1/chat/completions", content=content)
    assert answer.status_code == 413
    error_of(answer)


def test_an_unexpected_failure_is_a_500_object_and_its_reason_is_in_the_log(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Relay, "answer", fail)
    answer = client.post("/v1/chat/completions", json=HELLO, headers={"x-request-id": "unlucky"})
    assert answer.status_code == 500
    fields = error_of(answer)
    assert "unlucky" in fields["message"]
    assert "a bug" not in fields["message"]
    record = next(record for record in caplog.records if "unlucky" in record.getMessage())
    assert record.exc_info


def test_health_needs_no_backend_and_readiness_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "READY_FOR", 0.0)
    port = free_port()
    with proxy_before(f"http://127.0.0.1:{port}") as url, http_client(url) as http:
        assert http.get("/health").status_code == 200
        answer = http.get("/ready")
        assert answer.status_code == 503
        assert f"127.0.0.1:{port}" in error_of(answer)["message"]
        with Backend(port=port):
            assert http.get("/ready").status_code == 200


def test_who_shows_no_key_is_not_told_where_the_backend_is() -> None:
    where = f"127.0.0.1:{free_port()}"
    keys = {"ann": hash_key(b"tg-ann")}
    with proxy_before(f"http://{where}", config={"client_keys": keys}) as url, http_client(url) as http:
        unknown, known = http.get("/ready"), http.get("/ready", headers={"x-api-key": "tg-ann"})
    assert (unknown.status_code, known.status_code) == (503, 503)
    assert (where in unknown.text, where in known.text) == (False, True)


@pytest.mark.parametrize(("status", "ready"), [(401, 200), (404, 200), (503, 503)])
def test_a_backend_that_refuses_is_ready_and_one_that_fails_is_not(status: int, ready: int) -> None:
    with Backend(routes={"/v1/models": error(status, "no")}) as other, proxy_before(other) as url:
        assert get(url + "/ready").status_code == ready


def test_a_backend_that_is_down_is_named(client: httpx2.Client) -> None:
    port = free_port()
    with proxy_before(f"http://127.0.0.1:{port}") as url:
        answer = post(url + "/v1/chat/completions", json=HELLO)
    assert answer.status_code in (502, 503)
    assert f"http://127.0.0.1:{port}" in error_of(answer)["message"]


GGUF = "hf.co/lab/Some-Model-GGUF:Q4_K_M"


@pytest.fixture(scope="module")
def models() -> Iterator[httpx2.Client]:
    entries = [{"id": "qwen3:30b", "meta": {"n_ctx": 8192}}, {"id": GGUF}]
    with (
        Backend(routes={"/v1/models": body({"object": "list", "data": entries, "models": []})}) as other,
        proxy_before(other, model="qwen3:30b") as url,
        http_client(url) as http,
    ):
        yield http


def test_models_are_listed_in_openai_s_shape(models: httpx2.Client) -> None:
    listed = models.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [entry["id"] for entry in listed["data"]] == ["qwen3:30b", GGUF]
    assert listed["data"][0]["meta"] == {"n_ctx": 8192}
    assert all({"object", "created", "owned_by"} <= set(entry) for entry in listed["data"])


@pytest.mark.parametrize("name", ["qwen3:30b", "qwen3%3A30b", GGUF, GGUF.replace("/", "%2F").replace(":", "%3A")])
def test_a_model_is_found_by_any_spelling_of_its_id(models: httpx2.Client, name: str) -> None:
    answer = models.send(raw_request(models, f"/v1/models/{name}"))
    assert answer.status_code == 200
    assert answer.json()["id"] in ("qwen3:30b", GGUF)


def test_an_unknown_model_is_a_404_object(models: httpx2.Client) -> None:
    answer = models.get("/v1/models/gpt-5")
    assert answer.status_code == 404
    assert error_of(answer)["code"] == "model_not_found"


def test_a_backend_without_a_list_has_the_configured_model() -> None:
    with Backend(routes={"/v1/models": error(404, "not here")}) as other:
        with proxy_before(other, model="m") as url:
            assert [entry["id"] for entry in get(url + "/v1/models").json()["data"]] == ["m"]
        with proxy_before(other) as url:
            assert get(url + "/v1/models").status_code == 404


EMBEDDED = b'{"data": [{"embedding": [0.10, 1e-3]}]}\n'


def test_other_paths_pass_as_bytes_both_ways(client: httpx2.Client, backend: Backend) -> None:
    async def embeddings(exchange: Exchange) -> None:
        await body(EMBEDDED, 201, "application/json", ("x-cost", "3"), ("set-cookie", "a=1"))(exchange)

    backend.routes["/v1/embeddings"] = embeddings
    sent = b'{"model": "e",   "input": "\xc3\xa4"}'
    answer = client.post("/v1/embeddings?user=%C3%A4&b", content=sent, headers={"cookie": "s=1", "accept": "text/x"})
    assert (answer.status_code, answer.content) == (201, EMBEDDED)
    assert answer.headers["x-cost"] == "3"
    assert "set-cookie" not in answer.headers
    seen = backend.requests[-1]
    assert (seen.method, seen.path, seen.body) == ("POST", "/v1/embeddings?user=%C3%A4&b", sent)
    assert seen.header("accept") == "text/x"
    assert seen.header("cookie") is None
    assert seen.header("host") == backend.url.removeprefix("http://")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_other_paths_take_any_method_and_keep_their_spelling(
    client: httpx2.Client, backend: Backend, method: str
) -> None:
    backend.routes["/v1/files/a%2Fb%20c"] = body({"ok": True})
    request = raw_request(client, "/v1/v1/files/a%2Fb%20c")
    request.method = method
    assert client.send(request).json() == {"ok": True}
    assert (backend.requests[-1].method, backend.requests[-1].path) == (method, "/v1/files/a%2Fb%20c")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_of_other_paths_passes_in_pieces(client: httpx2.Client, backend: Backend, chunked: bool) -> None:
    backend.routes["/v1/audio/transcriptions"] = body({"text": "hi"})
    piece = bytes(range(256)) * 4096
    content: Any = (piece for _ in range(4)) if chunked else piece * 4
    answer = client.post("/v1/audio/transcriptions", content=content, headers={"content-type": "audio/wav"})
    assert answer.json() == {"text": "hi"}
    seen = backend.requests[-1]
    assert seen.body == piece * 4
    assert seen.header("content-type") == "audio/wav"
    assert seen.header("content-length") == (None if chunked else str(len(piece) * 4))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_of_other_paths_beyond_the_limit_is_a_413_object(client: httpx2.Client, chunked: bool) -> None:
    content: Any = (b" " * 1_000_000 for _ in range(31)) if chunked else b" " * 31_000_000
    answer = client.post("/v1/audio/transcriptions", content=content)
    assert answer.status_code == 413
    error_of(answer)


def test_errors_of_other_paths_pass_too_if_they_are_json(client: httpx2.Client, backend: Backend) -> None:
    backend.routes["/v1/images"] = body(b'{"detail":"no"}', 418)
    answer = client.post("/v1/images", json={})
    assert (answer.status_code, answer.content) == (418, b'{"detail":"no"}')
    backend.routes["/v1/images"] = body(b"<html><title>Bad Gateway</title></html>", 502, "text/html")
    answer = client.post("/v1/images", json={})
    assert answer.status_code == 502
    assert "Bad Gateway" in error_of(answer)["message"]


def test_the_backend_s_key_is_not_repeated_to_the_client_on_any_path(backend: Backend) -> None:
    backend.routes["/v1/images"] = error(401, "Incorrect API key: sk-secret")
    with proxy_before(backend, key="sk-secret") as url:
        answer = post(f"{url}/v1/images", json={})
    assert answer.status_code == 401
    assert "Incorrect API key: [the key]" in error_of(answer)["message"]


def test_a_request_is_one_line_in_the_log(
    client: httpx2.Client, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}}
    backend.script(text('<tool_call>{"name": "f", "arguments": {"n": "1",}}</tool_call>', usage=(40, 9)))
    with caplog.at_level(logging.INFO, logger="toolgraft"):
        client.post("/v1/chat/completions", json={**HELLO, "tools": [tool]}, headers={"x-request-id": "logged"})
        client.get("/health")
        client.get("/nowhere")  # answered after the others were written
    lines = [getattr(record, "toolgraft", {}) for record in caplog.records if record.getMessage() == "request"]
    entry = next(line for line in lines if line["id"] == "logged")
    assert (entry["surface"], entry["model"], entry["mode"], entry["status"]) == ("chat", "m", "xml", 200)
    assert entry["backend"] == backend.url + "/v1"
    assert (entry["calls"], entry["repairs"]) == (1, 2)
    assert (entry["prompt_tokens"], entry["completion_tokens"]) == (40, 9)
    assert entry["ms"] > 0
    assert not any(line["surface"] == "health" for line in lines)
    assert "hi" not in json.dumps(entry).split('"')


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_of_a_request_is_left_to_the_garbage_collector(
    client: httpx2.Client, backend: Backend, stream: bool
) -> None:
    def left() -> int:
        return sum(isinstance(thing, asgi.Exchange | asgi.Watch) for thing in gc.get_objects())

    gc.collect()
    before = left()
    gc.disable()
    try:
        for _ in range(3):
            client.post("/v1/chat/completions", json={**HELLO, "stream": stream})
        until = time.monotonic() + 10
        while left() > before and time.monotonic() < until:
            time.sleep(0.01)
        assert left() <= before
    finally:
        gc.enable()

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from typing import Any

import httpx2
import pytest

from proxy.access import hash_key
from proxy.config import BackendConfig, Config
from proxy.inspector.routes import HEADERS, MOST_FEEDS, MOST_TRIED, Inspector
from tests.support.backend import Backend, error, text
from tests.support.proxy import http_client, post, proxy_before

CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Chur",}}</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": TOOLS}
ANN, BOB = "ann-0123456789", "bob-0123456789"
KEYS = {"ann": hash_key(ANN.encode()), "bob": hash_key(BOB.encode())}
BACKEND = BackendConfig("http://127.0.0.1:1")


def lines(client: httpx2.Client, **headers: str) -> list[dict[str, Any]]:
    """The list of exchanges, as a page gets it when it comes."""
    with client.stream("GET", "/inspector/feed", headers=headers) as feed:
        assert feed.status_code == 200, feed.read()
        for line in feed.iter_lines():
            if line.startswith("data: "):
                found: list[dict[str, Any]] = json.loads(line.removeprefix("data: "))
                return found
    raise AssertionError("the feed ended")


@contextmanager
def inspected(backend: Backend, dispatcher: str = "xml", **config: Any) -> Iterator[httpx2.Client]:
    with proxy_before(backend, dispatcher, config=config) as url, http_client(url) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_an_exchange_in_three_columns() -> None:
    with Backend() as backend, inspected(backend) as client:
        backend.script(text(CALL))
        got = client.post("/v1/chat/completions", json=ASKED)
        (line,) = lines(client)
        shown = client.get(f"/inspector/exchanges/{line['number']}").json()
        fixture = client.get(f"/inspector/exchanges/{line['number']}/fixture/0").json()
        sent = backend.chats[0].json
    assert (line["verdict"], line["calls"]) == ("repaired", {"right": 0, "repaired": 1, "refused": 0})
    assert (line["model"], line["status"], line["path"]) == ("m", 200, "/v1/chat/completions")
    assert line["first_ms"] is not None
    assert json.loads(shown["asked"]["text"]) == ASKED
    assert json.loads(shown["turns"][0]["sent"]["text"]) == sent
    assert [each["text"] for each in shown["turns"][0]["segments"]] == [CALL]
    assert [each["kind"] for each in shown["turns"][0]["problems"]] == ["repaired"]
    assert json.loads(shown["told"]["text"]) == got.json()
    assert fixture["text"] == CALL


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dispatcher", ["xml", "native", "auto"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_every_way_through_the_proxy_is_kept(path: str, dispatcher: str, stream: bool) -> None:
    asked = {**ASKED, "input": "hi", "max_tokens": 9, "stream": stream}
    if path == "/v1/responses":
        del asked["messages"]
        asked["tools"] = [{"type": "function", **TOOLS[0]["function"]}]  # type: ignore[dict-item]
    elif path == "/v1/messages":
        asked["tools"] = [{"name": "weather", "input_schema": {"type": "object"}}]
    with Backend() as backend, inspected(backend, dispatcher) as client:
        backend.script(text("Hello ", "there."))
        got = client.post(path, json=asked)
        (line,) = lines(client)
        shown = client.get(f"/inspector/exchanges/{line['number']}").json()
    assert got.status_code == 200, got.text
    assert (line["verdict"], line["running"]) == ("text", False)
    (turn,) = shown["turns"]
    assert "".join(each["text"] for each in turn["segments"]) == "Hello there."
    assert shown["told"]["reply"]["content"] == "Hello there."
    assert shown["told"]["size"] == len(got.content)


def test_asking_again_is_two_turns() -> None:
    required = {"type": "object", "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": required}}]
    with Backend() as backend, inspected(backend) as client:
        backend.script(text('<tool_call>{"name": "weather"}</tool_call>'), text(CALL.replace(",}", "}")))
        client.post("/v1/chat/completions", json={**ASKED, "tools": tools})
        (line,) = lines(client)
        first, second = client.get("/inspector/exchanges/1").json()["turns"]
    assert (line["verdict"], line["calls"]) == ("repaired", {"right": 1, "repaired": 0, "refused": 1})
    assert [each["kind"] for each in first["problems"]] == ["invalid_arguments"]
    assert second["problems"] == []


def test_failures_are_kept_too() -> None:
    with Backend() as backend, inspected(backend) as client:
        client.post("/v1/chat/completions", content=b"{oops")
        backend.script(error(500, "out of memory"))
        client.post("/v1/chat/completions", json=ASKED)
        wrong, failed = lines(client)
        shown = client.get(f"/inspector/exchanges/{failed['number']}").json()
    assert (wrong["verdict"], wrong["error"]) == ("error", "invalid_json")
    assert failed["verdict"] == "error"
    assert shown["turns"][0]["status"] == 500
    assert shown["turns"][0]["error"] == "out of memory"
    assert "out of memory" in shown["turns"][0]["came"]["text"]


def test_a_backend_that_is_not_there() -> None:
    with proxy_before("http://127.0.0.1:1", "xml") as url, http_client(url) as client:
        client.post("/v1/chat/completions", json=ASKED)
        (turn,) = client.get("/inspector/exchanges/1").json()["turns"]
    assert turn["status"] is None
    assert "http://127.0.0.1:1" in turn["error"]


def test_no_key_is_ever_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    client_key, backend_key = "client-key-0123", "backend-key-4567"
    with (
        Backend() as backend,
        proxy_before(
            backend, "xml", key=backend_key, config={"client_keys": {"c": hash_key(client_key.encode())}}
        ) as url,
        http_client(url) as client,
    ):
        client.headers.update(
            {"authorization": f"bearer  {client_key}", "cookie": "a=b; s=cookie-89012", "x-own": "own-345678"}
        )
        backend.script(text(f"You sent {backend_key}."), error(401, f"{backend_key} is wrong"))
        for _ in range(2):
            client.post("/v1/chat/completions", json={**ASKED, "user": f"{client_key} cookie-89012"})
        numbers = [line["number"] for line in lines(client)]
        told = "".join(client.get(f"/inspector/exchanges/{number}").text for number in numbers)
        told += client.get("/inspector/exchanges/1/fixture/0").text + json.dumps(lines(client))
    assert "[the key]" in told
    for secret in (client_key, backend_key, "cookie-89012", "own-345678"):
        assert secret not in told


def test_images_are_not_kept() -> None:
    image = "iVBORw0KGgo" * 100
    content = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}]
    with Backend() as backend, inspected(backend) as client:
        backend.script(text("A picture."))
        client.post("/v1/chat/completions", json={**ASKED, "messages": [{"role": "user", "content": content}]})
        told = client.get("/inspector/exchanges/1").text
    assert told.count("[1100 bytes of base64]") >= 2
    assert image[:600] not in told


# ---- who may look


def test_the_page_is_for_all_and_the_exchanges_for_keys() -> None:
    with Backend() as backend, inspected(backend, client_keys=KEYS) as client:
        assert client.get("/inspector").status_code == 200
        assert client.get("/inspector/app.js").status_code == 200
        for path in ("feed", "exchanges/1", "exchanges/1/fixture/0"):
            assert client.get(f"/inspector/{path}").status_code == 401
            assert client.get(f"/inspector/{path}", headers=bearer("wrong")).status_code == 401
        assert client.post("/inspector/parse", json={"text": ""}).status_code == 401


def test_everybody_sees_their_own() -> None:
    with Backend() as backend, inspected(backend, client_keys=KEYS, inspector_sees_all=("bob",)) as client:
        backend.script(text("one"), text("two"))
        for key in (ANN, BOB):
            client.post("/v1/chat/completions", json=ASKED, headers=bearer(key))
        assert [line["client"] for line in lines(client, **bearer(ANN))] == ["ann"]
        assert [line["client"] for line in lines(client, **bearer(BOB))] == ["ann", "bob"]
        assert client.get("/inspector/exchanges/2", headers=bearer(ANN)).status_code == 404
        assert client.get("/inspector/exchanges/2/fixture/0", headers=bearer(ANN)).status_code == 404
        assert client.get("/inspector/exchanges/1", headers=bearer(BOB)).status_code == 200


@pytest.mark.parametrize(
    ("config", "on"),
    [
        ({}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "0.0.0.0", "client_keys": KEYS}, True),
        ({"host": "0.0.0.0", "inspector": "on"}, True),
        ({"inspector": "off"}, False),
        ({"inspector": "off", "client_keys": KEYS}, False),
    ],
)
def test_it_is_on_where_others_cannot_see_it(config: dict[str, Any], on: bool) -> None:
    assert Inspector(Config((BACKEND,), **config)).on == on


def test_off_nothing_is_kept_or_shown() -> None:
    with Backend() as backend, inspected(backend, inspector="off") as client:
        backend.script(text("Hello."))
        assert client.post("/v1/chat/completions", json=ASKED).status_code == 200
        for path in ("", "/app.js", "/feed", "/exchanges/1"):
            got = client.get(f"/inspector{path}")
            assert (got.status_code, got.json()["error"]["code"]) == (404, "inspector_off")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example", "origin": "http://evil.example"}, 403),
        ({"host": "localhost:8787"}, 200),
    ],
)
def test_other_pages_are_told_nothing(headers: dict[str, str], status: int) -> None:
    with Backend() as backend, inspected(backend, cors_origins=("*",)) as client:
        backend.script(text("Hello."))
        client.post("/v1/chat/completions", json=ASKED)
        assert client.get("/inspector/exchanges/1", headers=headers).status_code == status


def test_names_count_also_where_it_was_opened_to_the_network() -> None:
    with Backend() as backend, inspected(backend, host="0.0.0.0", inspector="on") as client:
        assert client.get("/inspector", headers={"host": "192.168.1.2:8787"}).status_code == 200
        assert client.get("/inspector", headers={"host": "evil.example"}).status_code == 403


def test_looking_on_uses_up_nobody_s_rate() -> None:
    with Backend() as backend, inspected(backend, rate_limit=1) as client:
        backend.script(text("Hello."))
        assert client.post("/v1/chat/completions", json=ASKED).status_code == 200
        for path in ("", "/app.js", "/exchanges/1", "/exchanges/1"):
            got = client.get(f"/inspector{path}")
            assert (got.status_code, "x-ratelimit-limit-requests" in got.headers) == (200, False)
        assert client.post("/v1/chat/completions", json=ASKED).status_code == 429


# ---- the page and its paths


@pytest.mark.parametrize("path", ["", "/app.js", "/style.css", "/exchanges/1", "/feed"])
def test_every_answer_has_the_policy(path: str) -> None:
    with Backend() as backend, inspected(backend) as client:
        backend.script(text("Hello."))
        client.post("/v1/chat/completions", json=ASKED)
        with client.stream("GET", f"/inspector{path}") as got:
            assert got.status_code == 200
            for name, value in HEADERS:
                assert got.headers[name] == value


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    policy = dict(HEADERS)["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "http" not in policy


def test_the_page_has_no_markup_made_of_text_and_nothing_from_elsewhere() -> None:
    for file in resources.files("proxy.inspector").joinpath("page").iterdir():
        source = file.read_text("utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|\beval\b|new Function", source
        )
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", source)
        if file.name.endswith(".html"):
            assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|javascript:", source)


@pytest.mark.parametrize(
    "path", ["/nothing", "/../access.py", "/%2e%2e/access.py", "/page/app.js", "/exchanges/x", "/__init__.py"]
)
def test_what_is_not_there(path: str) -> None:
    with Backend() as backend, inspected(backend) as client:
        assert client.get(f"/inspector{path}").status_code == 404


def test_its_own_requests_are_not_kept() -> None:
    with Backend() as backend, inspected(backend) as client:
        for _ in range(3):
            client.get("/inspector")
            client.get("/v1/models")
        assert lines(client) == []


def test_the_feed_tells_what_changes_and_ends_with_the_server() -> None:
    with Backend() as backend, http_client() as client, ExitStack() as until_the_end:
        with proxy_before(backend, "xml") as url:
            feed = until_the_end.enter_context(client.stream("GET", f"{url}/inspector/feed"))
            news = feed.iter_lines()
            assert [next(news) for _ in range(3)] == ["event: all", "data: []", ""]
            backend.script(text("Hello."))
            post(f"{url}/v1/chat/completions", json=ASKED)
            assert next(news) == "event: some"
        assert list(news)  # to its end, which is not cut off


def test_there_is_an_end_to_the_feeds() -> None:
    with Backend() as backend, inspected(backend) as client:
        opened = [client.stream("GET", "/inspector/feed") for _ in range(MOST_FEEDS)]
        for each in opened:
            each.__enter__()
        assert client.get("/inspector/feed").status_code == 429
        for each in opened:
            each.__exit__(None, None, None)


# ---- a text to try


def trial(client: httpx2.Client, **given: Any) -> httpx2.Response:
    return client.post("/inspector/parse", json={"text": CALL, "tools": TOOLS, **given})


def test_a_text_is_read() -> None:
    with Backend() as backend, inspected(backend) as client:
        got = trial(client).json()
        assert [each["kind"] for each in got["segments"]] == ["call"]
        assert got["reply"]["calls"][0]["name"] == "weather"
        assert [each["kind"] for each in got["problems"]] == ["repaired"]
        for tools in ({"tools": TOOLS}, TOOLS[0], [{"name": "weather", "input_schema": {}}]):
            assert trial(client, tools=tools).json()["reply"]["calls"]
        assert trial(client, tools=[]).json()["reply"]["content"] == CALL
        assert trial(client, text="Hm.", starts_in_reasoning=True).json()["reply"]["reasoning"] == "Hm."
        assert trial(client, text="<tool_call>", finish_reason="length").json()["reply"]["finish"] == "length"
        assert trial(client, dialect="hermes", model="Qwen").json()["fixture"]["dialect"] == "hermes"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"text": 3}, 400),
        ({"tools": "x"}, 400),
        ({"tools": [3]}, 400),
        ({"tools": [{}]}, 400),
        ({"tools": 3}, 400),
        ({"dialect": "unheard"}, 400),
        ({"dialect": ["a"]}, 400),
        ({"finish_reason": "error"}, 400),
        ({"text": "x" * (MOST_TRIED + 1)}, 413),
    ],
)
def test_what_cannot_be_tried(given: dict[str, Any], status: int) -> None:
    with Backend() as backend, inspected(backend) as client:
        got = trial(client, **given)
        assert (got.status_code, bool(got.json()["error"]["message"])) == (status, True)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
def test_bodies_that_are_none(body: bytes) -> None:
    with Backend() as backend, inspected(backend) as client:
        assert client.post("/inspector/parse", content=body).status_code == 400


def test_a_body_has_a_limit() -> None:
    with Backend() as backend, inspected(backend) as client:
        assert client.post("/inspector/parse", content=b"x" * 2_000_000).status_code == 413


def test_hostile_texts_are_read_like_any() -> None:
    hostile = "</script><script>alert(1)</script>\x1b[31m\u202e" + "<tool_call>" * 500 + '{"name":' * 500
    with Backend() as backend, inspected(backend) as client:
        got = trial(client, text=hostile)
        assert "".join(each["text"] for each in got.json()["segments"]) == hostile
        assert got.headers["content-type"] == "application/json"

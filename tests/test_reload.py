"""Settings that change while requests are under way, as clients and operators see it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest

from proxy.access import hash_key
from proxy.config import BackendConfig, Config
from proxy.core.errors import ConfigError
from proxy.reload import Source
from proxy.server import Server, in_background
from tests.support.backend import DONE, Backend, Exchange, chunk, text
from tests.support.proxy import get, http_client, post

KEY = {"authorization": "Bearer tg-ann"}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@dataclass
class File:
    """Stands for the file of settings: what it has, or why it cannot be used."""

    has: Config | ConfigError
    applied: list[Config] = field(default_factory=list)

    def load(self) -> Config:
        if isinstance(self.has, ConfigError):
            raise self.has
        return self.has


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@contextmanager
def serving(config: Config) -> Iterator[tuple[File, Server, httpx2.Client]]:
    file = File(config)
    with in_background(config, Source(file.load, file.applied.append)) as server, http_client(server.url) as client:
        client.headers.update(KEY)
        yield file, server, client


def before(backend: Backend, **more: Any) -> Config:
    return config_of(BackendConfig(backend.url, dispatcher="native"), **more)


def config_of(*backends: BackendConfig, **more: Any) -> Config:
    keys = {"ann": hash_key(b"tg-ann"), "bob": hash_key(b"tg-bob")}
    return Config(backends, **{"port": 0, "client_keys": keys, "may_reload": ("ann",), **more})


def reload(client: httpx2.Client, **headers: str) -> httpx2.Response:
    return client.post("/-/reload", headers=headers)


def only_one(server: Server) -> None:
    """Wait until nothing is left of the settings before."""
    while server.app.generations > 1:
        time.sleep(0.005)


class Held:
    """A streamed reply whose second half waits until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.head(200, "text/event-stream")
        await exchange.write(chunk({"content": "one "}).encode())
        while not self.let_go.is_set():
            await asyncio.sleep(0.005)
        await exchange.write((chunk({"content": "two"}) + chunk({}, "stop") + DONE).encode())


def test_new_requests_follow_the_new_settings_and_a_stream_goes_on_as_it_began(backend: Backend) -> None:
    held = Held()
    with Backend() as other, serving(before(backend)) as (file, server, client):
        backend.script(held)
        other.script(text("from the other"))
        with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as stream:
            pieces = stream.iter_raw()
            first = next(pieces)
            file.has = before(other)
            assert reload(client).json() == {"status": "reloaded", "needs_restart": []}
            assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
            assert (len(backend.chats), len(other.chats)) == (1, 1)
            assert server.app.generations == 2
            held.let_go.set()
            rest = b"".join(pieces)
        assert b"one " in first
        assert (b"two" in rest, rest.endswith(DONE.encode())) == (True, True)
        only_one(server)
    assert file.applied == [file.has]


def test_settings_that_cannot_be_used_change_nothing(backend: Backend) -> None:
    with serving(before(backend)) as (file, server, client):
        file.has = ConfigError("toolgraft.toml, line 3: there is no key `prot` here.")
        answer = reload(client)
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "config_error"
        assert answer.json()["error"]["message"] == (
            "The settings are as they were: toolgraft.toml, line 3: there is no key `prot` here."
        )
        file.has = config_of(BackendConfig("nonsense"))
        assert reload(client).status_code == 400
        backend.script(text("as ever"))
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
        assert server.app.generations == 1
    assert file.applied == []


def test_what_needs_a_restart_is_told(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    with serving(before(backend)) as (file, server, client):
        file.has = before(backend, host="0.0.0.0", max_tools=7)
        assert reload(client).json() == {"status": "reloaded", "needs_restart": ["host"]}
        assert (server.app.config.host, server.app.config.max_tools) == ("127.0.0.1", 7)
    assert "not before a restart: host" in [record.getMessage() for record in caplog.records]


def test_keys_and_what_they_may_change_at_once(backend: Backend) -> None:
    bob = {"authorization": "Bearer tg-bob"}
    with serving(before(backend)) as (file, _, client):
        assert reload(client, **bob).json()["error"]["code"] == "reload_not_allowed"
        file.has = before(backend, client_keys={"bob": hash_key(b"tg-bob")}, may_reload=("bob",))
        assert reload(client).status_code == 200
        assert client.get("/v1/models").status_code == 401
        assert reload(client).status_code == 401
        assert reload(client, **bob).status_code == 200


@pytest.mark.parametrize("owner", ["ann", ""])
def test_without_keys_nobody_is_known_to_be_one_who_may_reload(backend: Backend, owner: str) -> None:
    with serving(before(backend, client_keys={}, may_reload=(owner,))) as (file, _, client):
        answer = reload(client)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "reload_not_allowed")
    assert file.applied == []


def test_what_was_counted_stays_counted(backend: Backend) -> None:
    with serving(before(backend)) as (file, _, client):
        backend.script(text("a"))
        client.post("/v1/chat/completions", json=CHAT)
        file.has = before(backend, rate_limit=1000)
        reload(client)
        backend.script(text("b"))
        assert client.post("/v1/chat/completions", json=CHAT).headers["x-ratelimit-limit-requests"] == "1000"
        counts = [line for line in client.get("/metrics").text.splitlines() if line.startswith("toolgraft_requests_to")]
        assert [line.split()[-1] for line in counts if 'surface="chat"' in line] == ["2.0"]


def test_a_backend_s_turns_stay_taken(backend: Backend) -> None:
    """A backend that works on one request at a time gets no second one because the settings were read again."""
    held = Held()
    config = config_of(BackendConfig(backend.url, dispatcher="native", max_concurrent=1, max_queue=0))
    with serving(config) as (file, _, client):
        backend.script(held)
        with client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as stream:
            pieces = stream.iter_raw()
            next(pieces)
            file.has = replace(config, max_tools=7)
            assert reload(client).status_code == 200
            assert client.post("/v1/chat/completions", json=CHAT).json()["error"]["code"] == "queue_full"
            held.let_go.set()
            b"".join(pieces)


def test_a_page_of_the_inspector_is_told_to_come_again(backend: Backend) -> None:
    with serving(before(backend)) as (_, server, client):
        with client.stream("GET", "/inspector/feed") as feed:
            pieces = feed.iter_raw()
            next(pieces)
            assert reload(client).status_code == 200
            b"".join(pieces)  # it ends
        only_one(server)


def test_without_a_source_there_is_nothing_to_reload(backend: Backend) -> None:
    with in_background(before(backend)) as server:
        assert post(server.url + "/-/reload", headers=KEY).status_code == 404
        assert get(server.url + "/health").status_code == 200

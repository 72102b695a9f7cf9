"""The proxy under a server of one's own, and within another application."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from proxy.config import BackendConfig, Config
from proxy.core.errors import ConfigError
from proxy.mounted import create_app
from tests.support.backend import Backend
from tests.support.proxy import get, post

HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@contextlib.contextmanager
def served(app: ASGIApp, **options: object) -> Iterator[str]:
    """``app`` as plain uvicorn serves it."""
    config = uvicorn.Config(app, port=0, log_level="warning", **options)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def said(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    text: str = answer.json()["choices"][0]["message"]["content"]
    return text


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


def config_for(backend: Backend) -> Config:
    return Config((BackendConfig(backend.url, dispatcher="xml"),), cors_origins=("https://a.example",))


def test_a_server_of_ones_own(backend: Backend) -> None:
    with served(create_app(config_for(backend))) as url:
        assert said(post(f"{url}/v1/chat/completions", json=HELLO)) == "Hello."
        answer = post(f"{url}/v1/chat/completions", json=HELLO, headers={"origin": "https://a.example"})
        assert answer.headers["access-control-allow-origin"] == "https://a.example"


def test_behind_a_path_of_the_server(backend: Backend) -> None:
    with served(create_app(config_for(backend)), root_path="/llm") as url:
        assert said(post(f"{url}/v1/chat/completions", json=HELLO)) == "Hello."


@pytest.mark.parametrize("path", ["/llm", "/a b/llm", "/"])
def test_mounted_in_an_application(backend: Backend, path: str) -> None:
    proxy = create_app(config_for(backend))
    at = path.rstrip("/")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with proxy.running():
            yield

    own = Route("/own", lambda request: PlainTextResponse("own"))
    with served(Starlette(routes=[own, Mount(path, proxy)], lifespan=lifespan)) as url:
        assert get(f"{url}/own").text == "own"
        assert said(post(f"{url}{at}/v1/chat/completions", json=HELLO)) == "Hello."
        assert said(post(f"{url}{at}/chat/completions", json=HELLO)) == "Hello."
        assert get(f"{url}{at}/health").json() == {"status": "ok"}
        answer = get(f"{url}{at}/nothing")
        assert "/nothing" in answer.json()["error"]["message"]
        post(f"{url}{at}/v1/embeddings?a=b%20c", json={"input": "x"})
        assert backend.requests[-1].path == "/v1/embeddings?a=b%20c"


def test_without_its_lifespan_it_says_what_is_missing(backend: Backend) -> None:
    transport = httpx2.ASGITransport(create_app(config_for(backend)))

    async def ask() -> None:
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/health")

    with pytest.raises(RuntimeError, match=r"proxy\.running"):
        asyncio.run(ask())


def test_what_cannot_be_served_is_told_at_once() -> None:
    with pytest.raises(ConfigError):
        create_app(Config((BackendConfig("ftp://host"),)))

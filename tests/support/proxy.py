"""The proxy itself, listening, for tests from outside: ``with proxy_before(backend) as url``."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from proxy.config import BackendConfig, Config
from proxy.server import in_background
from tests.support.backend import Backend


@contextmanager
def proxy_before(
    backend: Backend | str, dispatcher: Any = "xml", *, config: dict[str, Any] | None = None, **options: Any
) -> Iterator[str]:
    """A proxy in front of ``backend``: its URL. ``options`` are ``BackendConfig``'s, ``config`` is ``Config``'s."""
    url = backend if isinstance(backend, str) else backend.url
    with proxy_before_all(BackendConfig(url, dispatcher=dispatcher, **options), **(config or {})) as proxy:
        yield proxy


@contextmanager
def proxy_before_all(*backends: BackendConfig, **config: Any) -> Iterator[str]:
    """A proxy in front of several backends: its URL. ``config`` is ``Config``'s."""
    with in_background(Config(backends, port=0, **config)) as server:
        yield server.url


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def http_client(base_url: str = "") -> httpx2.Client:
    """A client that takes its time, knows no proxy of the environment, and loads no certificates."""
    return httpx2.Client(base_url=base_url, timeout=120, trust_env=False, verify=False)


def get(url: str) -> httpx2.Response:
    with http_client() as client:
        return client.get(url)


def post(url: str, **sent: Any) -> httpx2.Response:
    with http_client() as client:
        return client.post(url, **sent)

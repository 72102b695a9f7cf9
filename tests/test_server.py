from __future__ import annotations

import json
import socket
from contextlib import ExitStack

import pytest

from proxy.config import BackendConfig, Config
from proxy.core.errors import ConfigError
from proxy.server import Server, bind, in_background
from tests.support.backend import Backend, Exchange, chunk
from tests.support.proxy import get, http_client


def test_a_port_in_use_is_told_with_the_mend() -> None:
    with bind("127.0.0.1", 0) as held:
        held.listen()
        port = held.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"Port {port} on 127\.0\.0\.1 is in use\. .*--port"):
            bind("127.0.0.1", port)


def test_a_host_that_is_not_known_is_told() -> None:
    with pytest.raises(ConfigError, match="--host"):
        bind("no-such-host.invalid", 0)


def test_an_address_that_is_not_this_machine_s_is_told() -> None:
    with pytest.raises(ConfigError, match=r"Cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_an_ipv6_address_stands_in_brackets() -> None:
    try:
        bound = bind("::1", 0)
    except ConfigError as error:
        pytest.skip(error.message)
    with bound:
        server = Server(Config((BackendConfig("http://127.0.0.1:1"),)), bound, lambda url: None)
        assert server.url.startswith("http://[::1]:")


def test_it_serves_in_a_thread_until_the_block_ends() -> None:
    with in_background(Config((BackendConfig("http://127.0.0.1:1"),), port=0)) as server:
        assert get(server.url + "/health").json() == {"status": "ok"}
        host, _, port = server.url.removeprefix("http://").partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_a_backend_that_cannot_be_one_is_told_before_anything_is_served() -> None:
    with pytest.raises(ConfigError, match="backend URL"), in_background(Config((BackendConfig("nonsense"),), port=0)):
        pass


def test_a_stream_that_does_not_end_in_time_is_told_so() -> None:
    async def begun(exchange: Exchange) -> None:
        await exchange.head(200, "text/event-stream")
        await exchange.write(chunk({"content": "Hel"}).encode())
        await exchange.wait_for_hang_up()

    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    with Backend() as backend:
        backend.script(begun)
        config = Config((BackendConfig(backend.url, dispatcher="xml"),), port=0, shutdown_timeout=1)
        with ExitStack() as stack:
            server = stack.enter_context(in_background(config))
            client = stack.enter_context(http_client(server.url))
            answer = stack.enter_context(client.stream("POST", "/v1/chat/completions", json=asked))
            pieces = answer.iter_raw()
            told = next(pieces)
            server.should_exit = True
            told += b"".join(pieces)
        assert b"Hel" in told
        last = json.loads(told.rstrip().rpartition(b"data: ")[2])
        assert last["error"]["code"] == "stopping"
        assert backend.hung_up.wait(5)

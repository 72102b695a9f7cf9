"""The proxy on a port: bind first, so that a taken port is told in one line, then serve until told to stop."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from proxy.app import create_app
from proxy.config import Config
from proxy.core.errors import ConfigError
from proxy.protocol import Protocol

START_TIMEOUT = 10.0
"""Seconds that a server in a thread may take to listen."""


def bind(host: str, port: int) -> socket.socket:
    """A bound socket, not yet listening; port 0 picks a free one. Raises ``ConfigError`` with the mend."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"The address {host} (--host) is not known: {error.strerror}.") from error
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            mend = "Stop the program that holds it, or choose another port with --port (0 picks a free one)."
            raise ConfigError(f"Port {port} on {host} is in use. {mend}") from error
        raise ConfigError(f"Cannot listen on {host} port {port} (--host, --port): {error.strerror}.") from error
    return bound


class Server(uvicorn.Server):
    """The proxy with ``config`` on a bound socket. ``ready`` is called with the URL once it listens."""

    def __init__(self, config: Config, bound: socket.socket, ready: Callable[[str], None]) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(config),
                http=Protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=config.shutdown_timeout,
            )
        )
        self._socket = bound
        self._ready = ready
        host, port = self._socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets)
        self._ready(self.url)

    def serve_until_signal(self) -> None:
        """Serve in this thread until SIGINT or SIGTERM, then let open streams end within the configured time."""
        self.run(sockets=[self._socket])


@contextlib.contextmanager
def in_background(config: Config) -> Iterator[Server]:
    """The proxy serving in a thread while the block runs; the server's ``url`` says where."""
    listening = threading.Event()
    with bind(config.host, config.port) as bound:
        server = Server(config, bound, ready=lambda url: listening.set())
        thread = threading.Thread(target=server.serve_until_signal, name="toolgraft", daemon=True)
        thread.start()
        try:
            if not listening.wait(START_TIMEOUT):
                raise ConfigError(f"The proxy did not start within {START_TIMEOUT:.0f} seconds.")
            yield server
        finally:
            server.should_exit = True
            thread.join()

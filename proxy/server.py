"""The proxy on a port: bind first, so that a taken port is told in one line, then serve until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from proxy.config import Config
from proxy.core.errors import ConfigError
from proxy.protocol import Protocol
from proxy.reload import Reloadable, Source
from proxy.terminal import Terminal

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


def url_of(bound: socket.socket) -> str:
    """The root of what is served on a bound socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """The proxy with ``config`` on a bound socket. ``ready`` is called with the URL once it listens.

    New settings come from ``source``, when a client asks for that, or on SIGHUP.
    """

    def __init__(
        self, config: Config, bound: socket.socket, ready: Callable[[str], None], source: Source | None = None
    ) -> None:
        self.app = Reloadable(config, source)
        super().__init__(
            uvicorn.Config(
                self.app,
                http=Protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,
            )
        )
        self._reloads = source is not None
        self._reloading: set[asyncio.Task[None]] = set()
        self._terminal = Terminal()
        self._socket = bound
        self._ready = ready
        self.url = url_of(bound)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then tell."""
        await super().startup(sockets)
        if self._reloads and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)
        self._ready(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open streams end within the time that is now configured."""
        self.config.timeout_graceful_shutdown = self.app.config.shutdown_timeout
        await super().shutdown(sockets)

    def _hang_up(self) -> None:
        """Reload; but where the signal came because the terminal is gone, stop, as programs do."""
        if self._terminal.is_gone():
            self.should_exit = True
            return
        task = asyncio.get_running_loop().create_task(self.app.try_to_reload())
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)

    def serve_until_signal(self) -> None:
        """Serve in this thread until SIGINT or SIGTERM, then let open streams end within the configured time."""
        self.run(sockets=[self._socket])


@contextlib.contextmanager
def in_background(config: Config, source: Source | None = None) -> Iterator[Server]:
    """The proxy serving in a thread while the block runs; the server's ``url`` says where."""
    listening = threading.Event()
    with bind(config.host, config.port) as bound:
        server = Server(config, bound, lambda url: listening.set(), source)
        thread = threading.Thread(target=server.serve_until_signal, name="toolgraft", daemon=True)
        thread.start()
        try:
            if not listening.wait(START_TIMEOUT):
                raise ConfigError(f"The proxy did not start within {START_TIMEOUT:.0f} seconds.")
            yield server
        finally:
            server.should_exit = True
            thread.join()

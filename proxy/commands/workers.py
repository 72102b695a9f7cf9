"""``toolgraft serve --workers``: several processes that serve on one socket, each with its share of the limits."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from shutil import rmtree
from stat import S_ISDIR
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING

from proxy import telemetry
from proxy.config import Config
from proxy.core.errors import ConfigError

if TYPE_CHECKING:
    from proxy.server import Server

COUNTERS = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which the workers count together."""

PLACES = "toolgraft-*-counts"
"""The names of such folders."""

HELD = "held"
"""The file in them that is locked."""


def share(config: Config, place: int, count: int) -> Config:
    """What the worker at ``place`` (from 0) may take of what is configured for all ``count`` of them together."""

    def part(total: int) -> int:
        return total // count + (place < total % count)

    backends = [
        replace(
            backend,
            max_concurrent=None if backend.max_concurrent is None else part(backend.max_concurrent),
            max_queue=part(backend.max_queue),
        )
        for backend in config.backends
    ]
    rate = None if config.rate_limit is None else max(1, part(config.rate_limit))
    return replace(config, backends=tuple(backends), rate_limit=rate)


@contextmanager
def counting_together() -> Iterator[None]:
    """The block in which workers count in one place. The library that counts must not have been loaded before.

    The place is a folder with a file that is locked as long as the parent or any worker lives. Folders of others, who
    were killed and could not remove theirs, go now.
    """
    import fcntl  # not on every system, but where there are workers

    base = Path(gettempdir())
    for folder in base.glob(PLACES):
        _remove_unless_held(folder)
    beginning = Path(mkdtemp(prefix="toolgraft-"))
    with (beginning / HELD).open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        folder = beginning.rename(f"{beginning}-counts")  # the name by which it is looked for: it is held by now
        os.environ[COUNTERS] = str(folder)
        try:
            yield
        finally:
            del os.environ[COUNTERS]
            rmtree(folder, ignore_errors=True)


def _remove_unless_held(folder: Path) -> None:
    import fcntl

    with suppress(OSError):  # it is held, or gone, or none of ours
        about = folder.lstat()
        if S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
            with (folder / HELD).open("rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                rmtree(folder)


@dataclass
class Team:
    """The workers of one proxy: what they serve with now, on what, and what reads new settings.

    ``changed`` is called in the parent with settings that hold from now on.
    """

    config: Config
    bound: socket.socket
    read: Callable[[], Config]
    changed: Callable[[Config], None]

    def serve(self, announce: Callable[[str], None]) -> None:
        """Serve until told to end. Raises ``ConfigError`` when the workers cannot be kept alive."""
        from proxy.metrics import forget_worker
        from proxy.server import url_of
        from proxy.supervisor import Supervisor

        Supervisor(
            self.config.workers,
            self._work,
            reload=self._reload,
            ready=lambda: announce(url_of(self.bound)),
            ended=forget_worker,
            patience=lambda: self.config.shutdown_timeout,
        ).run()

    def _work(self, place: int, ready: Callable[[], None], alive: Connection) -> None:
        """What a worker does until it is told to end, or the parent is gone."""
        from proxy.reload import Source
        from proxy.server import Server

        count = self.config.workers
        source = Source(lambda: share(self.read(), place, count), _configure_log, _spread)
        server = Server(share(self.config, place, count), self.bound, lambda url: ready(), source)
        threading.Thread(target=_end_with, args=(alive, server), daemon=True).start()
        server.serve_until_signal()

    def _reload(self) -> bool:
        """Whether there are settings that can be used. Workers to come begin with them."""
        from proxy.reload import FIXED

        try:
            loaded = self.read()
        except ConfigError as error:
            telemetry.logger.error("the settings are as they were: %s", error.message)
            return False
        self.config = replace(loaded, **{name: getattr(self.config, name) for name in FIXED})
        self.changed(self.config)
        return True


def _configure_log(config: Config) -> None:
    telemetry.configure(as_json=config.log_format == "json")


def _spread() -> None:
    """A client has asked this worker to reload: let the parent tell all of them."""
    os.kill(os.getppid(), signal.SIGHUP)


def _end_with(parent: Connection, server: Server) -> None:
    wait([parent])
    server.should_exit = True

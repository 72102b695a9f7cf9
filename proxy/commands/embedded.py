"""The embedded model as commands use it: started with a word and a progress bar, and missed when it dies."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from proxy.core.errors import ConfigError
from proxy.local import LocalModel
from proxy.server import Server


class FetchBar:
    """A progress bar on stderr, from the first byte on; nothing at all when there is nothing to fetch."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        """Draw it: ``done`` of ``total`` bytes."""
        if self._bar is None:
            self._bar = click.progressbar(length=total, label="Fetching the model, once", file=sys.stderr)
        self._bar.update(done - self._bar.pos)
        if done == total:
            self._bar.render_finish()


@contextmanager
def embedded_model(model_file: Path | None = None) -> Iterator[LocalModel]:
    """The model running while the block does; ``model_file`` None is the one that comes with the proxy."""
    model = LocalModel(model_file, progress=FetchBar())
    click.echo(f"Starting the model {model.alias} ...", err=True)
    with model:
        yield model


def serve_beside(server: Server, model: LocalModel) -> None:
    """Serve until a signal, or until the engine is gone. Raises ``ConfigError`` with its last words then."""
    threading.Thread(target=_end_with, args=(server, model), daemon=True).start()
    server.serve_until_signal()
    if not model.alive:
        raise ConfigError(f"The embedded model's engine ended by itself. Its last words:\n{model.last_words()}")


def _end_with(server: Server, model: LocalModel) -> None:
    model.wait()
    server.should_exit = True

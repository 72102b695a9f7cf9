"""``toolgraft serve``: the proxy in front of model servers, or of the embedded model."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import click

from proxy import telemetry
from proxy.access import is_loopback
from proxy.commands.options import config_option, setting_options
from proxy.commands.workers import Team, counting_together
from proxy.config import BackendConfig, Config
from proxy.core.errors import ConfigError

GARBAGE = 2_000
"""Objects that are made, and not let go, before it is looked whether some only hold each other."""

TO_BE_STARTED = "http://127.0.0.1"
"""Stands for the embedded model's URL until it has one."""


@click.command()
@setting_options
@config_option
@click.option("--local", is_flag=True, help="Serve a small embedded model instead of a backend.")
@click.option(
    "--model-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The GGUF file that --local serves instead of its own model.",
)
def serve(file: Path | None, local: bool, model_file: Path | None, **flags: object) -> None:
    """Put tool calling in front of a model server.

    Each setting comes from a flag, else from the environment, else from the file.
    """
    from proxy.settings.environment import Environment  # imported late: it takes a moment
    from proxy.settings.load import load, names_backend, settings_file

    local = local or model_file is not None
    environ = Environment(os.environ)
    file = settings_file(file, environ)
    if local == (flags["url"] is not None) and (local or not names_backend(environ, file)):
        misspelt = [said for said in environ.misspelt(()) if "TOOLGRAFT_BACKEND_URL" in said]
        mend = "Give either --backend URL or --local, or a file of settings with --config."
        raise click.UsageError(" ".join([mend, *misspelt]))
    read = partial(load, {**flags, "url": (TO_BE_STARTED,)} if local else flags, environ, file)
    config = read()
    signal.signal(signal.SIGTERM, _terminate)
    with ExitStack() as stack:
        if config.workers > 1:
            _check_workers(local=local)
            stack.enter_context(counting_together())
        from proxy.reload import Source
        from proxy.server import Server, bind

        bound = stack.enter_context(bind(config.host, config.port))
        run: Callable[[Server], None] = Server.serve_until_signal
        if local:
            from proxy.commands.embedded import embedded_model, serve_beside

            embedded = stack.enter_context(embedded_model(model_file))
            read = partial(_at, embedded.url, read)
            config = read()
            run = partial(serve_beside, model=embedded)
        apply = partial(_apply, bound.getsockname()[0])
        apply(config)
        if file is not None:
            telemetry.logger.info("settings from %s", file)
        for said in environ.misspelt(backend.name for backend in config.backends):
            telemetry.logger.warning(said)
        _settle()
        try:
            if config.workers > 1:
                Team(config, bound, read, apply).serve(partial(_announce, config))
            else:
                run(Server(config, bound, partial(_announce, config), Source(read, apply)))
        except KeyboardInterrupt:
            raise SystemExit(0) from None


def _check_workers(*, local: bool) -> None:
    """Raise ``ConfigError`` where several workers cannot be."""
    if local:
        raise ConfigError("The embedded model needs no more than one worker. Leave out --workers.")
    if not hasattr(os, "fork"):
        raise ConfigError("This system cannot run several workers. Leave out --workers.")


def _at(url: str, read: Callable[[], Config]) -> Config:
    """What is ``read``, with its one backend at ``url``."""
    config = read()
    return replace(config, backends=(replace(config.backends[0], url=url),))


def _apply(address: str, config: Config) -> None:
    """Log as is wanted, and say what is open on ``address`` that should perhaps not be."""
    telemetry.configure(as_json=config.log_format == "json")
    if not (config.client_keys or is_loopback(address)):
        telemetry.logger.warning(
            "Whoever reaches this machine may use the backend: the proxy listens on %s, and no key is wanted. "
            "Set client_keys or --client-key-env (toolgraft hash-key --new makes a key), or listen on 127.0.0.1.",
            address,
        )
    if "*" in config.cors_origins and not config.client_keys:
        telemetry.logger.warning("Every web page may use the backend: cors_origins is *, and no key is wanted.")


def _settle() -> None:
    """What there is by now stays: to look through it for garbage held up every stream for 50 ms, again and again.

    Requests leave few cycles, so the rest is looked through less often than is usual.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE, 10, 10)


def _announce(config: Config, url: str) -> None:
    backends = ", ".join(map(_shown, config.backends))
    click.echo(f"Toolgraft listens on {url}/v1 in front of {backends}")


def _shown(backend: BackendConfig) -> str:
    urls = ", ".join(url.strip().partition("?")[0] for url in (backend.url, *backend.replicas))  # a query may hold keys
    return f"{backend.name} ({urls})" if backend.name else urls


def _terminate(signum: int, frame: FrameType | None) -> None:
    """Unwind as for Ctrl-C, so that the embedded model's process is ended too."""
    raise SystemExit(0)

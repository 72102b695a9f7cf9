"""``toolgraft check-config``: whether the settings can be used, and what they come to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from proxy.commands.options import config_option
from proxy.config import BackendConfig


@click.command("check-config")
@config_option
def check_config(file: Path | None) -> None:
    """Read the settings as `toolgraft serve` would, and say what they mean. Nothing is started or asked.

    The exit code is 1 when they cannot be used.
    """
    from proxy.settings.environment import Environment
    from proxy.settings.load import load, settings_file

    environ = Environment(os.environ)
    file = settings_file(file, environ)
    config = load({}, environ, file)
    for said in environ.misspelt(backend.name for backend in config.backends):
        click.echo(f"Warning: {said}", err=True)
    click.echo(f"{file or 'The environment'} can be used. Listens on {config.host} port {config.port}.")
    only = len(config.backends) == 1
    for backend in config.backends:
        click.echo("\n" + "\n".join(_told(backend, only=only)))


def _told(backend: BackendConfig, *, only: bool) -> Iterator[str]:
    yield backend.name or "backend"
    yield from (f"  at {url.partition('?')[0]}" for url in (backend.url, *backend.replicas))
    if backend.model:
        yield f"  asked for {backend.model}, whatever clients ask for"
    if only:
        yield "  gets every model"
    elif backend.models or backend.default:
        yield "  gets " + ", ".join([*backend.models, *(["every model that no other gets"] if backend.default else [])])
    yield from (f"  gets {asked} as {sent}" for asked, sent in backend.aliases.items())
    for pattern, own in (("the rest" if backend.per_model else "", backend), *backend.per_model):
        yield f"  dispatcher {own.dispatcher}, dialect {own.dialect}{f' for {pattern}' if pattern else ''}"
    key = "its own key" if backend.key else "the client's key" if backend.forward_client_key else "no key"
    yield f"  is sent {key}"

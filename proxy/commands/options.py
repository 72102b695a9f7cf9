"""Settings as options of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from proxy.settings.keys import BACKEND, SERVER, Key

Function = TypeVar("Function", bound=Callable[..., object])

config_option = click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of settings. [default: toolgraft.toml, if there is one]",
)
"""The option that names the file of settings."""


def setting_options(function: Function) -> Function:
    """Give a command an option for each setting that has a flag. An option that is not given is None."""
    for key in reversed((*BACKEND, *SERVER)):
        if key.flag is not None:
            function = _option(key, key.flag)(function)
    return function


def _option(key: Key, flag: str) -> Callable[[Function], Function]:
    if key.sets is not None:
        return click.option(
            flag,
            key.name,
            is_flag=True,
            callback=lambda context, parameter, given: key.sets if given else None,
            help=key.flag_help or key.help,
        )

    def read(context: click.Context, parameter: click.Parameter, given: str | None) -> Any:
        try:
            return None if given is None else key.kind.read(given)
        except ValueError:
            raise click.BadParameter(f"it must be {key.kind.wanted}.") from None

    kind = click.Choice(key.kind.options) if key.kind.options else None
    default = f" [default: {key.shown.strip(chr(34))}]" if key.shown else ""
    return click.option(flag, key.name, type=kind, callback=read, metavar=key.metavar, help=key.help + default)

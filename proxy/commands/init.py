"""``toolgraft init``: a file of settings to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from proxy.core.errors import ConfigError


@click.command()
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("toolgraft.toml"),
    show_default=True,
    help="The file to write.",
)
def init(file: Path) -> None:
    """Write a file of settings with every key in it, explained and at its default."""
    from proxy.settings.reference import example

    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(example())
    except FileExistsError:
        raise ConfigError(f"There is a file {file} already. Name another one with --config, or remove it.") from None
    except OSError as error:
        raise ConfigError(f"The file {file} cannot be written: {error.strerror or error}.") from None
    click.echo(f"Wrote {file}. Set the url of your model server in it, then run: toolgraft check-config")

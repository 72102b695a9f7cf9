"""``toolgraft hash-key``: what the file of settings holds of a key that lets clients in."""

from __future__ import annotations

import secrets
import sys

import click

from proxy.access import hash_key as hashed

LENGTH = 24
"""Random bytes of a new key."""

SHORT = 16
"""Characters below which a key may be guessed from its hash."""


@click.command()
@click.option("--new", is_flag=True, help="Make a key instead of reading one, and print it first.")
def hash_key(new: bool) -> None:
    """Read an API key from standard input and print its hash, for `client_keys` in the file of settings."""
    if new:
        key = f"tg-{secrets.token_urlsafe(LENGTH)}"
        click.echo(key)
    else:
        if sys.stdin.isatty():
            click.echo("The key: ", nl=False, err=True)
        key = sys.stdin.readline().strip()
    if not key:
        raise click.UsageError("There is no key on standard input. Try: toolgraft hash-key --new")
    if len(key) < SHORT:
        click.echo(f"A key of {len(key)} characters may be guessed. Try: toolgraft hash-key --new", err=True)
    click.echo(hashed(key.encode()))

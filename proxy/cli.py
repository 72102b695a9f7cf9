"""The command line: ``toolgraft COMMAND``. A command's module is imported when it is called, so that help is quick."""

from __future__ import annotations

from importlib import import_module

import click

from proxy.core.errors import ToolgraftError

COMMANDS = {
    "serve": "Put tool calling in front of a model server.",
    "demo": "Run a tool loop on a small local model, step by step, then keep serving.",
    "check": "Examine a model server, try tool calls in every way, and say which settings are best.",
    "init": "Write a file of settings with every key explained.",
    "hash-key": "Read an API key from standard input and print its hash for the file of settings.",
    "check-config": "Read the settings and say what they mean, or what is wrong.",
    "parse": "Read a model's reply from standard input and print what it says.",
    "translate": "Read a request from standard input and print what the backend would be sent.",
}
"""Every command and the line that ``--help`` shows for it; the command ``x-y`` is ``proxy.commands.x_y.x_y``."""


class Commands(click.Group):
    """The commands of ``COMMANDS``. An error that the proxy reports on purpose is one line, with exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module; None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"proxy.commands.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ToolgraftError as error:
            raise click.ClickException(error.message) from error


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="toolgraft", prog_name="toolgraft")
def main() -> None:
    """Toolgraft gives native tool calling to any model server."""

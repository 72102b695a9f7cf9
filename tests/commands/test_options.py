"""Settings become options, and an option that is not given says nothing."""

from __future__ import annotations

import json

import click
from click.testing import CliRunner

from proxy.commands.options import setting_options
from proxy.settings.keys import BACKEND, SERVER


@click.command()
@setting_options
def show(**flags: object) -> None:
    """Show what was given."""
    click.echo(json.dumps({name: value for name, value in flags.items() if value is not None}, default=str))


def given(*options: str) -> dict[str, object]:
    result = CliRunner().invoke(show, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.output))


def test_what_is_not_given_is_left_to_others() -> None:
    assert given() == {}


def test_values_are_read_as_in_the_environment() -> None:
    options = ["--backend", "http://a,http://b", "--port", "0", "--starts-in-reasoning", "true", "--model", "m"]
    assert given(*options, "--no-system-role", "--forward-client-key") == {
        "url": ["http://a", "http://b"],
        "port": 0,
        "starts_in_reasoning": True,
        "only_model": "m",
        "system_role": False,
        "forward_client_key": True,
    }


def test_there_is_an_option_for_each_setting_with_a_flag_in_the_order_of_the_table() -> None:
    assert [option.opts[0] for option in show.params] == [key.flag for key in (*BACKEND, *SERVER) if key.flag]


def test_the_help_tells_the_default() -> None:
    shown = " ".join(CliRunner().invoke(show, ["--help"]).output.split())
    assert "The port to listen on; 0 picks a free one. [default: 8787]" in shown
    assert "The chat template knows no system message: put its text" in shown

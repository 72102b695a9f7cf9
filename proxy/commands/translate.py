"""``toolgraft translate``: what a backend would be sent for a request, offline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal, cast, get_args

import click

from proxy.core.dispatch import XmlDispatcher, goes_untouched
from proxy.core.errors import ClientError
from proxy.core.history import HistoryOptions
from proxy.core.model import Json
from proxy.core.prompt import STYLES, PromptOptions, Style
from proxy.template_file import read_template
from proxy.wire import jsonio
from proxy.wire.bodies import load_body
from proxy.wire.openai_chat import decode_body
from proxy.wire.upstream_chat import encode_request

Mode = Literal["xml", "native"]


@click.command()
@click.option(
    "--dispatcher",
    type=click.Choice(get_args(Mode)),
    default="xml",
    show_default=True,
    help="xml: tools as text. native: the request as it is.",
)
@click.option("--model", metavar="NAME", help="The model to ask the backend for, whatever the client asks for.")
@click.option("--no-system-role", is_flag=True, help="The model's chat template knows no system message.")
@click.option("--example", is_flag=True, help="Show the model a worked example of a call.")
@click.option(
    "--style",
    type=click.Choice(STYLES),
    default="full",
    show_default=True,
    help="Write tools as JSON, or as shorter signatures in the manner of TypeScript.",
)
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that replaces the whole text about tools.",
)
@click.option("--stream", is_flag=True, help="As for a client that asks for a stream.")
def translate(
    dispatcher: str,
    model: str | None,
    no_system_role: bool,
    example: bool,
    style: str,
    template: Path | None,
    stream: bool,
) -> None:
    """Read a Chat Completions request from standard input; write the body of the request to the backend.

    What a running proxy learns from the backend is left out: a grammar that forces a call, whether the model sees
    images or continues an answer.
    """
    prompt = PromptOptions(example, cast(Style, style), None if template is None else read_template(template))
    raw = load_body(sys.stdin.buffer.read())
    if stream:
        raw["stream"] = True
    request = None if dispatcher == "native" else decode_body(raw).request
    if request is None or goes_untouched(request):
        _show(raw if model is None else {**raw, "model": model})
        return
    prepared = XmlDispatcher(HistoryOptions(system_role=not no_system_role), prompt).prepare(request)
    _show(jsonio.loads(encode_request(prepared, model=model or request.model, stream=request.stream)))


def _show(body: Json) -> None:
    """Print ``body`` for people; read as JSON it is what is sent."""
    try:
        text = json.dumps(body, indent=2, ensure_ascii=False)
    except RecursionError:
        raise ClientError("The request is nested too deeply to be printed.") from None
    click.echo(text.encode("utf-8", "backslashreplace"))  # a lone surrogate becomes JSON's own escape for it

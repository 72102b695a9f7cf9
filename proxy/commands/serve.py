"""``toolgraft serve``: the proxy in front of a model server, or of the embedded model."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

import click

from proxy import telemetry
from proxy.config import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DISPATCHERS,
    LOG_FORMATS,
    PROMPT_EXAMPLES,
    BackendConfig,
    Config,
    DispatcherName,
    LogFormat,
    PromptExample,
    key_from_environment,
)
from proxy.core.prompt import STYLES, PromptOptions, Style

if TYPE_CHECKING:
    from proxy.core.template import ProtocolTemplate


@click.command()
@click.option("--backend", metavar="URL", help="The model server, with or without /v1.")
@click.option(
    "--dispatcher",
    type=click.Choice(DISPATCHERS),
    default="auto",
    show_default=True,
    help="native: the backend calls tools itself. xml: as text, read by the proxy. auto: find out.",
)
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option("--model", metavar="NAME", help="The model to ask the backend for, whatever the client asks for.")
@click.option("--backend-key-env", metavar="VAR", help="The environment variable that holds the backend's API key.")
@click.option("--forward-client-key", is_flag=True, help="Send the client's own API key on to the backend.")
@click.option("--no-system-role", is_flag=True, help="The model's chat template knows no system message.")
@click.option(
    "--prompt-example",
    type=click.Choice(PROMPT_EXAMPLES),
    default="auto",
    show_default=True,
    help="Show the model a worked example of a call; auto: where `toolgraft check` measured that it helps.",
)
@click.option(
    "--prompt-style",
    type=click.Choice(STYLES),
    default="full",
    show_default=True,
    help="Tell the model of tools in JSON, or in shorter signatures in the manner of TypeScript.",
)
@click.option(
    "--prompt-template",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that replaces the whole text about tools, example and style included.",
)
@click.option("--dialect", default="auto", show_default=True, help="Read one model family's way of writing calls only.")
@click.option(
    "--starts-in-reasoning",
    type=click.Choice(("auto", "true", "false")),
    default="auto",
    show_default=True,
    help="Whether the prompt ends in an opening think mark, so that replies begin in the reasoning.",
)
@click.option("--local", is_flag=True, help="Serve a small embedded model instead of a backend.")
@click.option(
    "--model-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The GGUF file that --local serves instead of its own model.",
)
@click.option("--log-format", type=click.Choice(LOG_FORMATS), default="human", show_default=True)
def serve(
    backend: str | None,
    dispatcher: str,
    host: str,
    port: int,
    model: str | None,
    backend_key_env: str | None,
    forward_client_key: bool,
    no_system_role: bool,
    prompt_example: str,
    prompt_style: str,
    prompt_template: Path | None,
    dialect: str,
    starts_in_reasoning: str,
    local: bool,
    model_file: Path | None,
    log_format: str,
) -> None:
    """Put tool calling in front of a model server."""
    local = local or model_file is not None
    if local == (backend is not None):
        raise click.UsageError("Give either --backend URL or --local.")
    from proxy.server import Server, bind  # imported late: it takes a moment

    key = key_from_environment(backend_key_env, os.environ)
    prompt = PromptOptions(
        style=cast(Style, prompt_style),
        template=None if prompt_template is None else _read_template(prompt_template),
    )
    signal.signal(signal.SIGTERM, _terminate)
    with bind(host, port) as bound, ExitStack() as stack:
        run: Callable[[Server], None] = Server.serve_until_signal
        if backend is None:
            from proxy.commands.embedded import embedded_model, serve_beside

            embedded = stack.enter_context(embedded_model(model_file))
            backend, run = embedded.url, partial(serve_beside, model=embedded)
        config = Config(
            backends=(
                BackendConfig(
                    url=backend,
                    dispatcher=cast(DispatcherName, dispatcher),
                    model=model,
                    key=key,
                    forward_client_key=forward_client_key,
                    system_role=not no_system_role,
                    prompt=prompt,
                    prompt_example=cast(PromptExample, prompt_example),
                    dialect=dialect,
                    starts_in_reasoning={"true": True, "false": False}.get(starts_in_reasoning),
                ),
            ),
            host=host,
            port=port,
            log_format=cast(LogFormat, log_format),
        )
        telemetry.configure(as_json=config.log_format == "json")
        try:
            run(Server(config, bound, ready=partial(_announce, config)))
        except KeyboardInterrupt:
            raise SystemExit(0) from None


def _read_template(file: Path) -> ProtocolTemplate:
    from proxy.template_file import read_template  # imported late: it takes a moment

    return read_template(file)


def _announce(config: Config, url: str) -> None:
    backend = config.backends[0].url.strip().partition("?")[0]  # the query may hold a key
    click.echo(f"Toolgraft listens on {url}/v1 in front of {backend}")


def _terminate(signum: int, frame: FrameType | None) -> None:
    """Unwind as for Ctrl-C, so that the embedded model's process is ended too."""
    raise SystemExit(0)

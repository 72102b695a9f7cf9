"""``toolgraft demo``: five tool loops on the embedded model, with both sides of the proxy in view, then serve."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import click

from proxy import telemetry
from proxy.config import DEFAULT_HOST, DEFAULT_PORT, BackendConfig, Config
from proxy.core.errors import UpstreamError
from proxy.local import LocalModel, require_extra

ABOUT = """\
The model is {name}: 135 million parameters in 4 bits, a toy beside what you would use, run by llama.cpp on this \
machine's processor. Its chat template knows no tools and its server drops them. What follows is an ordinary program \
on the openai SDK, with the proxy between the two. Two things make so small a model do it every time: each \
conversation begins with a worked example, and where a call has to come the program says so (tool_choice "required"), \
which the proxy turns into a grammar that the model cannot leave. Temperature 0."""


@click.command()
@click.option("--yes", is_flag=True, help="Say yes when a tool that cannot be undone asks first.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port to serve on afterwards; 0 picks a free one.",
)
@click.option("--no-serve", is_flag=True, help="End after the loops. The exit code is 1 if one went otherwise.")
def demo(yes: bool, port: int, no_serve: bool) -> None:
    """Run a tool loop on a small local model, step by step, then keep serving."""
    require_extra("openai")
    from proxy.commands.embedded import embedded_model, serve_beside  # imported late: these take a moment
    from proxy.server import Server, bind

    signal.signal(signal.SIGTERM, _terminate)
    with ExitStack() as stack:
        bound = None if no_serve else stack.enter_context(bind(DEFAULT_HOST, port))
        model = stack.enter_context(embedded_model())
        as_planned = show(model, _say_yes if yes else _ask)
        if bound is None:
            sys.exit(0 if as_planned else 1)
        telemetry.configure(as_json=False)
        server = Server(Config((BackendConfig(model.url),)), bound, ready=_announce)
        try:
            serve_beside(server, model)
        except KeyboardInterrupt:
            sys.exit(0)


def show(model: LocalModel, confirm: Callable[[str], bool]) -> bool:
    """Play every scene on the terminal. Whether all went as they should."""
    from openai import DefaultHttpxClient, OpenAI, OpenAIError

    from proxy.demo.agent import Ended, Got, Sent, play
    from proxy.demo.recorder import Recorder
    from proxy.demo.scenes import furnish, scenes
    from proxy.demo.view import View
    from proxy.server import in_background

    view = View(click.echo, shutil.get_terminal_size().columns)
    view.say(ABOUT.format(name=model.alias))
    began, well = time.monotonic(), 0
    with (
        TemporaryDirectory(prefix="toolgraft-demo-") as folder,
        Recorder(model.url) as recorder,
        in_background(Config((BackendConfig(recorder.url),), port=0)) as proxy,
        DefaultHttpxClient(trust_env=False) as http,  # a proxy of the environment has no business on loopback
        OpenAI(base_url=f"{proxy.url}/v1", api_key="unused", max_retries=0, http_client=http) as client,
    ):
        furnish(Path(folder))
        played = scenes(Path(folder))
        try:
            for number, scene in enumerate(played, 1):
                view.scene(number, scene)
                for moment in play(scene, client, model.alias, confirm):
                    match moment:
                        case Sent():
                            sent = moment
                        case Got():
                            view.turn(sent, moment, recorder.exchanges[-1])
                        case Ended():
                            view.ended(moment)
                            well += scene.went_well(moment.calls, moment.text)
        except OpenAIError as error:
            raise UpstreamError(f"The demo had to stop: {error}\n{model.last_words()}") from error
    click.echo(f"\n{well} of {len(played)} loops went as they should, in {time.monotonic() - began:.0f} s.")
    return well == len(played)


def _say_yes(question: str) -> bool:
    click.echo(f"\n{question} yes (--yes)")
    return True


def _ask(question: str) -> bool:
    """Ask on the terminal; where nobody can answer, the answer is no."""
    click.echo()
    try:
        return click.confirm(question)
    except click.Abort:
        click.echo(" no (nobody answers; --yes says yes)")
        return False


def _announce(url: str) -> None:
    click.echo(
        f"\nThe proxy goes on serving this model until Ctrl-C. Point a client of your own at it:\n\n"
        f'    client = OpenAI(base_url="{url}/v1", api_key="unused")\n'
    )


def _terminate(signum: int, frame: FrameType | None) -> None:
    """Unwind as for Ctrl-C, so that the model's process is ended too."""
    sys.exit(0)

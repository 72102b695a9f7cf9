"""``toolgraft check``: a doctor to run once before a backend is used, and when something is wrong with it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from proxy.config import BackendConfig, key_from_environment
from proxy.core.errors import ConfigError

UNUSABLE = 2
"""The exit code when the backend cannot be asked, as for a command that cannot be understood."""


@click.command()
@click.option("--backend", metavar="URL", help="The model server, with or without /v1.")
@click.option("--local", is_flag=True, help="Check the embedded model instead.")
@click.option(
    "--model-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The GGUF file that --local runs instead of its own model.",
)
@click.option("--model", metavar="NAME", help="The model to ask for; the first that the server lists if left out.")
@click.option("--backend-key-env", metavar="VAR", help="The environment variable that holds the backend's API key.")
@click.option("--quick", is_flag=True, help="Try one prompt of each kind instead of all 20.")
@click.option(
    "--max-tokens",
    type=click.IntRange(16),
    default=512,
    show_default=True,
    help="The most tokens of a reply. A model that thinks at length needs more.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    help="The seconds that the backend has for one reply.",
)
@click.option("--json", "in_json", is_flag=True, help="Write the report as JSON.")
def check(
    backend: str | None,
    local: bool,
    model_file: Path | None,
    model: str | None,
    backend_key_env: str | None,
    quick: bool,
    max_tokens: int,
    timeout: float,
    in_json: bool,
) -> None:
    """Examine a model server, try tool calls in every way it has, and say which settings are best.

    The exit code is 0 when all is well, 1 when there is something to mend or no way brings calls, and 2 when the
    server cannot be asked.
    """
    local = local or model_file is not None
    if local == (backend is not None):
        raise click.UsageError("Give either --backend URL or --local.")
    from proxy.doctor.diagnose import diagnose  # imported late: all this takes a moment
    from proxy.doctor.findings import SickError
    from proxy.doctor.report import Report, as_json, as_text
    from proxy.trial.run import Limits

    with ExitStack() as stack:
        if backend is None:
            from proxy.commands.embedded import embedded_model

            backend = stack.enter_context(embedded_model(model_file)).url
        config = BackendConfig(backend, model=model, key=key_from_environment(backend_key_env, os.environ))
        try:
            report = diagnose(config, Limits(max_tokens, timeout), _bar, few=quick, keep=not local)
        except ConfigError as error:
            raise click.UsageError(error.message) from error
        except SickError as error:
            report, code = Report(backend, error.findings, model), UNUSABLE
        else:
            code = 0 if report.fine else 1
    shown = backend.strip().partition("?")[0]  # the query may hold a key
    report = replace(report, url=shown, key_env=backend_key_env, local=local)
    click.echo(json.dumps(as_json(report), indent=2, ensure_ascii=False) if in_json else as_text(report))
    sys.exit(code)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on a terminal's standard error, nothing elsewhere."""
    with click.progressbar(length=total, label="Trying", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:

        def done(title: str) -> None:
            bar.label = title
            bar.update(1)

        yield done

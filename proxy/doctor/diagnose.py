"""The whole visit: examine the backend, try it in each way that it has, advise, and keep what was measured."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from proxy import measured
from proxy.backends.registry import Backend
from proxy.config import BackendConfig
from proxy.core.errors import ConfigError
from proxy.doctor.advice import advise
from proxy.doctor.examine import Examination, examine
from proxy.doctor.findings import Finding
from proxy.doctor.forcing import try_forcing
from proxy.doctor.report import Report
from proxy.telemetry import logger
from proxy.trial.prompts import BUILTIN, quick, read_prompts
from proxy.trial.run import Limits, Outcome, due, run
from proxy.trial.ways import WAYS, Way

Progress: TypeAlias = Callable[[int], AbstractContextManager[Callable[[str], None]]]
"""From the number of prompts in all, a context that yields what is to be told the title of the way after each."""

_OF_A_REQUEST = re.compile(r"^request \S+: ")
_NUMBER = re.compile(r"\d[\d,]*")


def diagnose(
    config: BackendConfig, limits: Limits, progress: Progress, *, few: bool = False, keep: bool = True
) -> Report:
    """The report on the backend of ``config``, whose settings are the ones that advice starts from.

    ``few``: only one prompt of each kind. ``keep``: remember what was measured for ``prompt_example = "auto"``.
    Raises ``SickError`` when the backend cannot be asked, and ``ConfigError`` when its URL is none.
    """
    examination = asyncio.run(examine(config, limits.seconds))
    backend = replace(
        config,
        system_role=examination.system_role and config.system_role,
        starts_in_reasoning=True if examination.opens_reasoning else config.starts_in_reasoning,
    )
    asked = replace(backend, model=examination.model)
    prompts = read_prompts(BUILTIN)
    prompts = quick(prompts) if few else prompts
    with _warnings() as warnings:
        forcing, forced = try_forcing(asked, limits)
        ways = {name: WAYS[name] for name in _possible(examination, forced=forced, few=few)}
        with progress(sum(len(due(way, prompts)) for way in ways.values())) as done:
            trial = {name: run(way, prompts, asked, limits, partial(_told, done, way)) for name, way in ways.items()}
    advice = advise(backend, examination, trial)
    findings = [*examination.findings, forcing, *advice.findings]
    findings += [Finding("log", said, "note") for said in warnings]
    if keep and not few and advice.example is not None:
        findings.append(_kept(config, examination, helps=advice.example))
    return Report(config.url, findings, examination.model, trial, limits, advice.config)


def _possible(examination: Examination, *, forced: bool, few: bool) -> list[str]:
    """The short names of the ways that are worth a try."""
    facts = examination.facts
    names = ["native"] if facts.native or facts.kind == "unknown" else []
    if facts.native:
        names.append("auto")
    names += ["xml", "example", "forced"]
    if forced and not few:
        names.append("always")
    return names


def _told(done: Callable[[str], None], way: Way, outcome: Outcome) -> None:
    done(way.title)


def _kept(config: BackendConfig, examination: Examination, *, helps: bool) -> Finding:
    """Keep what was measured. It holds for any name when the server has but one model, and was asked for none."""
    names = [examination.model or measured.ANY_MODEL]
    if config.model is None and len(examination.models) <= 1:
        names.append(measured.ANY_MODEL)
    said = f"An example in the prompt {'helps' if helps else 'does not help'}; "
    try:
        file = measured.remember(Backend.of(config).api_root, names, example=helps)
    except ConfigError as error:
        return Finding("example", f"{said}{error.message}", "note")
    return Finding("example", f'{said}prompt_example = "auto" knows it from {file}.')


@contextmanager
def _warnings() -> Iterator[Sequence[str]]:
    """What the proxy's log warns of while the block runs, each kind of warning once, instead of printing it."""
    said: list[str] = []
    kinds: set[str] = set()

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = _OF_A_REQUEST.sub("", record.getMessage())
            kind = _NUMBER.sub("", message)
            if message != "request" and kind not in kinds:  # the line of a failed request: the trial knows of it
                kinds.add(kind)
                said.append(message)

    handler = Collect(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate

"""The doctor's report: for people, and as JSON for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from proxy.config import BackendConfig
from proxy.core.model import Json
from proxy.doctor.findings import Finding
from proxy.trial.run import Limits, Outcome, Score
from proxy.trial.ways import WAYS

_MEANING = """\
valid: calls of offered tools with arguments that fit their schemas where a call is due, plain text where none is;
right: the calls, or the answer, that were expected; cut: at {tokens} tokens; s: the median for a prompt, in seconds."""

_DEFAULTS = BackendConfig("")


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found. ``config`` is the recommended one, None when it did not come to that.

    ``key_env`` is the variable that holds the backend's key; ``local``: it is the embedded model.
    """

    url: str
    findings: Sequence[Finding]
    model: str | None = None
    trial: Mapping[str, Sequence[Outcome]] = field(default_factory=dict)
    limits: Limits | None = None
    config: BackendConfig | None = None
    key_env: str | None = None
    local: bool = False

    @property
    def fine(self) -> bool:
        """There is nothing to mend."""
        return all(finding.level != "bad" for finding in self.findings)


def settings(report: Report) -> dict[str, Json]:
    """The recommended settings that are not the defaults, by their names in ``toolgraft.toml``."""
    config = report.config
    if config is None:
        return {}
    told: dict[str, Json] = {"url": config.url}
    if report.key_env is not None:
        told["key_env"] = report.key_env
    for name in ("model", "dispatcher", "system_role", "prompt_example", "constrain", "starts_in_reasoning"):
        if (value := getattr(config, name)) != getattr(_DEFAULTS, name):
            told["only_model" if name == "model" else name] = value
    return told


def toml(report: Report) -> str:
    """The recommended lines of ``toolgraft.toml``; a string of JSON is one of TOML too."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings(report).items()]
    return "\n".join(["[[backend]]", *lines])


def flags(report: Report) -> str:
    """The same for a shell: a call of ``toolgraft serve``."""
    words = ["toolgraft", "serve"]
    for name, value in settings(report).items():
        match name, value:
            case "url", _:
                words += ["--local"] if report.local else ["--backend", value]
            case "key_env", _:
                words += ["--backend-key-env", value]
            case "only_model", _:
                words += ["--model", value]
            case "system_role", _:
                words.append("--no-system-role")
            case _, bool():
                words += [f"--{name.replace('_', '-')}", json.dumps(value)]
            case _:
                words += [f"--{name.replace('_', '-')}", value]
    return shlex.join(words)


def as_json(report: Report) -> Json:
    """The whole report. ``trial`` has for each way the sums and what came of each prompt."""
    return {
        "url": report.url,
        "model": report.model,
        "fine": report.fine,
        "findings": [asdict(finding) for finding in report.findings],
        "trial": {
            name: {**asdict(Score.of(outcomes)), "outcomes": [asdict(outcome) for outcome in outcomes]}
            for name, outcomes in report.trial.items()
        },
        "recommended": None
        if report.config is None
        else {"settings": settings(report), "toml": toml(report), "command": flags(report)},
    }


def as_text(report: Report) -> str:
    """The report as lines for a terminal."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"toolgraft check: {'the embedded model' if report.local else report.url}"
    yield ""
    width = max(len(finding.about) for finding in report.findings)
    for finding in report.findings:
        yield f"  {finding.level:4}  {finding.about:{width}}  {finding.said}"
        if finding.mend:
            yield f"        {'':{width}}  {finding.mend}"
    if report.trial and report.limits is not None:
        yield ""
        yield from _table(report.trial)
        yield ""
        yield _MEANING.format(tokens=report.limits.tokens)
    if report.config is not None:
        yield ""
        if report.local:
            yield f"Recommended: {flags(report)}"
        else:
            yield "Recommended, in toolgraft.toml:"
            yield ""
            yield from (f"    {line}" for line in toml(report).splitlines())
            yield ""
            yield f"or: {flags(report)}"


def _table(trial: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    width = max(len(WAYS[name].title) for name in trial)
    yield f"  {'way':{width}}  {'valid':>7}{'right':>8}{'cut':>5}{'failed':>8}{'tokens in':>11}{'out':>8}{'s':>8}"
    for name, outcomes in trial.items():
        score = Score.of(outcomes)
        valid, right = f"{score.valid}/{score.asked}", f"{score.right}/{score.asked}"
        yield (
            f"  {WAYS[name].title:{width}}  {valid:>7}{right:>8}{score.cut:>5}{score.errors:>8}"
            f"{score.prompt_tokens:>11,}{score.completion_tokens:>8,}{score.seconds:>8.2f}"
        )

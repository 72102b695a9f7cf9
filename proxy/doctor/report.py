"""The doctor's report: for people, and as JSON for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from proxy.config import BackendConfig
from proxy.core.model import Json
from proxy.doctor.findings import Finding
from proxy.settings.keys import BACKEND
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
    """The recommended settings that are not the defaults, by their names in a file of settings."""
    config = report.config
    if config is None:
        return {}
    url = None if report.local else config.url  # the embedded model has another one each time
    told: dict[str, Json] = {"url": url, "key_env": report.key_env, "only_model": config.model}
    for name in ("dispatcher", "system_role", "starts_in_reasoning", "prompt_example", "constrain"):
        value = getattr(config, name)
        told[name] = None if value == getattr(_DEFAULTS, name) else value
    return {name: value for name, value in told.items() if value is not None}


def toml(report: Report) -> str:
    """The recommended lines of ``toolgraft.toml``; a string of JSON is one of TOML too."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings(report).items()]
    return "\n".join(["[[backend]]", *lines])


def flags(report: Report) -> str:
    """The same for a shell: a call of ``toolgraft serve``."""
    told = settings(report)
    words = ["toolgraft", "serve", *(["--local"] if report.local else [])]
    for key in BACKEND:
        if key.name in told and key.flag is not None:
            value = told[key.name]
            words.append(key.flag)
            if key.sets is None:
                words.append(value if isinstance(value, str) else json.dumps(value))
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
        else {
            "settings": settings(report),
            "toml": None if report.local else toml(report),
            "command": flags(report),
        },
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

"""Which settings follow from what was measured.

The settings of the proxy stand unless another way is clearly better: one right reply more among twenty is chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proxy.config import BackendConfig
from proxy.doctor.examine import Examination
from proxy.doctor.findings import Finding, Level
from proxy.trial.run import Outcome, Score
from proxy.trial.ways import WAYS

GAIN = 2
"""How many more replies have to be right for a setting to be worth a line in the configuration."""

_IN_ORDER = ("auto", "native", "xml", "example", "always")
"""From the simplest to the most particular. Ways in which the client requires a call say nothing of free replies."""


@dataclass(frozen=True, slots=True)
class Advice:
    """``way`` is the best one's short name, None when there is none. ``example``: whether it helps, None if unknown."""

    config: BackendConfig
    way: str | None
    example: bool | None
    findings: Sequence[Finding]


def advise(backend: BackendConfig, examination: Examination, trial: Mapping[str, Sequence[Outcome]]) -> Advice:
    """The settings for ``backend`` after its ``trial``, by the ways' short names."""
    scores = {name: Score.of(outcomes) for name, outcomes in trial.items()}
    way = _best(scores)
    example = _gains(scores["example"], scores["xml"]) if {"example", "xml"} <= set(scores) else None
    config = backend
    native = examination.facts.native
    if way == "native" or (way in ("xml", "example", "always") and (native or examination.facts.kind == "unknown")):
        config = replace(config, dispatcher="native" if way == "native" else "xml")
    if way == "example":
        config = replace(config, prompt_example="on")
    if way == "always":
        config = replace(config, constrain="always")
    return Advice(config, way, example, [*_calling(scores, way), *_troubles(scores, trial)])


def _best(scores: Mapping[str, Score]) -> str | None:
    """The first in order, unless a later one is clearly better; None when no way brings calls."""
    best = None
    for name in _IN_ORDER:
        if name in scores and scores[name].calls and (best is None or _gains(scores[name], scores[best])):
            best = name
    return best


def _gains(score: Score, other: Score) -> bool:
    return score.right >= other.right + GAIN


def _calling(scores: Mapping[str, Score], way: str | None) -> list[Finding]:
    """What the trial says of the model."""
    best, forced = scores.get(way or ""), scores.get("forced")
    if forced is not None and forced.calls and (best is None or best.calls * 2 < best.due):
        of_itself = "no tool" if best is None else f"a tool {best.calls} of {best.due} times"
        said = f"By itself the model calls {of_itself}; when it has to, {forced.calls} of {forced.due} times."
        mend = 'Programs had better say tool_choice "required" where a call is due. A larger model calls by itself.'
        return [Finding("tool calls", said, "note", mend)]
    if best is None or way is None:
        mend = "Try a larger model, or one trained to call tools. `toolgraft serve` still serves its plain chats."
        return [Finding("tool calls", "The model calls no tool in any way.", "bad", mend)]
    said = f"Best is '{WAYS[way].title}': {best.right} right replies of {best.asked}."
    if best.right * 2 >= best.asked:
        return [Finding("tool calls", said)]
    return [Finding("tool calls", said, "note", "A larger model gets more of them right.")]


def _troubles(scores: Mapping[str, Score], trial: Mapping[str, Sequence[Outcome]]) -> list[Finding]:
    """What kept replies from being judged fairly."""
    findings = []
    for name, score in scores.items():
        if score.errors:
            why = next(outcome.error for outcome in trial[name] if outcome.error is not None)
            level: Level = "note" if name == "native" else "bad"
            said = f"{score.errors} of {score.asked} requests failed, the first with: {why}"
            findings.append(Finding(WAYS[name].title, said, level, "The server's own log may say why."))
    cut = sum(score.cut for score in scores.values())
    asked = sum(score.asked for score in scores.values())
    if cut * 10 > asked:
        mend = "If the model thinks or writes long, give it more with --max-tokens."
        findings.append(Finding("length", f"{cut} of {asked} replies were cut at their limit.", "note", mend))
    return findings

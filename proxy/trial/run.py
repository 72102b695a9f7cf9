"""Running the prompts in one way: each is asked of the proxy itself, serving on loopback, as any client would."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import httpx2

from proxy.config import BackendConfig, Config
from proxy.core.model import Json
from proxy.server import in_background
from proxy.trial.judge import Answer, judge
from proxy.trial.prompts import Prompt
from proxy.trial.ways import Way

GIVE_UP_AFTER = 3
"""Errors one after another, after which the rest of the prompts is not asked: they would fail alike."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``tokens`` a reply, and ``seconds`` until it is there."""

    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one prompt. ``due``: a call was. ``error`` is what was said instead of an answer.

    The tokens are the backend's count. ``text`` and ``calls`` (name, JSON of the arguments) are the answer.
    """

    prompt: str
    category: str
    due: bool
    valid: bool = False
    right: bool = False
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    error: str | None = None
    text: str = ""
    calls: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """Outcomes in sum. ``due``: a call was, and ``calls``: it was valid; ``seconds`` is the median of the answers."""

    asked: int
    due: int
    calls: int
    valid: int
    right: int
    cut: int
    errors: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Score:
        """The sum of ``outcomes``."""
        times = [each.seconds for each in outcomes if each.error is None]
        return cls(
            asked=len(outcomes),
            due=sum(each.due for each in outcomes),
            calls=sum(each.valid for each in outcomes if each.due),
            valid=sum(each.valid for each in outcomes),
            right=sum(each.right for each in outcomes),
            cut=sum(each.cut for each in outcomes),
            errors=sum(each.error is not None for each in outcomes),
            prompt_tokens=sum(each.prompt_tokens for each in outcomes),
            completion_tokens=sum(each.completion_tokens for each in outcomes),
            seconds=statistics.median(times) if times else 0.0,
        )


def due(way: Way, prompts: Iterable[Prompt]) -> list[Prompt]:
    """The prompts that ``way`` is asked: when a call is forced, only those where one is due."""
    return [prompt for prompt in prompts if prompt.calls or not way.forced]


def run(
    way: Way,
    prompts: Iterable[Prompt],
    backend: BackendConfig,
    limits: Limits,
    done: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """The outcomes of the prompts that are ``due``, one after another; each is told to ``done`` as it comes.

    Raises ``ConfigError`` when ``backend`` cannot be used. Temperature 0.
    """
    outcomes: list[Outcome] = []
    timeout = httpx2.Timeout(limits.seconds)
    with (
        in_background(Config((way.config(backend),), port=0)) as proxy,
        httpx2.Client(base_url=proxy.url, timeout=timeout, trust_env=False, verify=False) as client,
    ):
        for prompt in due(way, prompts):
            last = outcomes[-GIVE_UP_AFTER:]
            if len(last) == GIVE_UP_AFTER and all(each.error is not None for each in last):
                outcome = _failed(prompt, last[-1].error)
            else:
                outcome = _ask(client, prompt, backend.model, limits, forced=way.forced)
            outcomes.append(outcome)
            done(outcome)
    return outcomes


def _ask(client: httpx2.Client, prompt: Prompt, model: str | None, limits: Limits, *, forced: bool) -> Outcome:
    asked = {
        "model": model or "default",
        "messages": prompt.messages,
        "tools": prompt.tools,
        "temperature": 0,
        "seed": 1,
        "max_tokens": limits.tokens,
        **({"tool_choice": "required"} if forced else {}),
    }
    begun = time.perf_counter()
    try:
        reply = client.post("/v1/chat/completions", json=asked)
        body = reply.json()
    except httpx2.TimeoutException:
        return _failed(prompt, f"no answer within {limits.seconds:g} seconds")
    except (httpx2.TransportError, ValueError) as error:
        return _failed(prompt, str(error) or type(error).__name__)
    seconds = time.perf_counter() - begun
    if reply.status_code != 200:
        return _failed(prompt, body["error"]["message"])
    return _judged(prompt, body, seconds)


def _judged(prompt: Prompt, body: Json, seconds: float) -> Outcome:
    """The outcome of an answer in the shape of a chat completion, which a native backend may not quite keep to."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        answer = Answer(
            message.get("content") or "",
            tuple((call["name"], call["arguments"]) for call in calls),
            cut=choice.get("finish_reason") == "length",
        )
        usage = body.get("usage") or {}
        tokens = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        verdict = judge(prompt, answer)
    except (LookupError, TypeError, AttributeError):
        return _failed(prompt, "the answer is no chat completion")
    return Outcome(
        prompt.id,
        prompt.category,
        bool(prompt.calls),
        verdict.valid,
        verdict.right,
        answer.cut,
        *tokens,
        seconds,
        text=answer.text,
        calls=answer.calls,
    )


def _failed(prompt: Prompt, error: str | None) -> Outcome:
    return Outcome(prompt.id, prompt.category, bool(prompt.calls), error=error)

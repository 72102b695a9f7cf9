"""Events to one whole reply: the non-streaming answer is the stream, folded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from proxy.core.events import (
    Event,
    Extra,
    Finish,
    FinishReason,
    Problem,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import NOTHING, Json, ToolCall


class Reply(Struct, frozen=True):
    """A whole reply. ``content`` and ``reasoning`` are ``""`` when there was none; ``finish`` None: it never ended.

    ``message`` says what went wrong when ``finish`` is ``error``; ``stop_sequence`` is that of ``Finish``.
    """

    content: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishReason | None = None
    message: str | None = None
    stop_sequence: str | None = None
    usage: Usage | None = None
    problems: tuple[Problem, ...] = ()
    extra: Mapping[str, Json] = NOTHING


def collect(events: Iterable[Event]) -> Reply:
    """Fold ``events``. Calls that never reached their ``ToolCallEnd`` are left out: they must not be run."""
    text: list[str] = []
    reasoning: list[str] = []
    refusal: list[str] = []
    started: dict[int, tuple[ToolCallStart, list[str]]] = {}
    calls: list[ToolCall] = []
    problems: list[Problem] = []
    extra: dict[str, Json] = {}
    finish: Finish | None = None
    usage: Usage | None = None
    for event in events:  # not `isinstance`: for another struct it takes three times as long
        if type(event) is TextDelta:
            text.append(event.text)
        elif type(event) is ReasoningDelta:
            reasoning.append(event.text)
        elif type(event) is ToolCallStart:
            started[event.index] = (event, [])
        elif type(event) is ToolArgumentsDelta:
            started[event.index][1].append(event.text)
        elif type(event) is ToolCallEnd:
            start, pieces = started[event.index]
            calls.append(ToolCall(start.id, start.name, "".join(pieces)))
        elif type(event) is Finish:
            finish = event
        elif type(event) is Usage:
            usage = event
        elif type(event) is Problem:
            problems.append(event)
        elif type(event) is Refusal:
            refusal.append(event.text)
        elif type(event) is Extra:
            extra.update(event.fields)
    return Reply(
        content="".join(text),
        reasoning="".join(reasoning),
        refusal="".join(refusal),
        calls=tuple(calls),
        finish=finish.reason if finish else None,
        message=finish.message if finish else None,
        stop_sequence=finish.stop_sequence if finish else None,
        usage=usage,
        problems=tuple(problems),
        extra=extra or NOTHING,
    )

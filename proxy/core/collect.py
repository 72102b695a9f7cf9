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
    for event in events:
        match event:
            case TextDelta(piece):
                text.append(piece)
            case ReasoningDelta(piece):
                reasoning.append(piece)
            case Refusal(piece):
                refusal.append(piece)
            case ToolCallStart(index):
                started[index] = (event, [])
            case ToolArgumentsDelta(index, piece):
                started[index][1].append(piece)
            case ToolCallEnd(index):
                start, pieces = started[index]
                calls.append(ToolCall(start.id, start.name, "".join(pieces)))
            case Problem():
                problems.append(event)
            case Extra(fields):
                extra.update(fields)
            case Finish():
                finish = event
            case Usage():
                usage = event
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

"""Asking the model again when its calls cannot be used, while nothing of its reply has gone to the client.

The first reply that needs no mending is the answer. When none comes, or the backend fails, the first reply stands as it
was: a call that only does not fit its schema, or what the model wrote as text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import TypeAlias

from proxy.core.collect import collect
from proxy.core.correction import corrected, is_fault, mendable
from proxy.core.errors import UpstreamError
from proxy.core.events import Event, Extra, Problem, Usage
from proxy.core.model import Json, Request
from proxy.relay.pump import Pump
from proxy.telemetry import RequestLog, logger

Send: TypeAlias = Callable[[Request, RequestLog], Awaitable[Pump]]
"""Sends a prepared request; the reply, once it has begun. Raises ``UpstreamError``."""


async def with_reasks(
    first: Pump, send: Send, *, prepared: Request, request: Request, times: int, log: RequestLog
) -> AsyncGenerator[list[Event], None]:
    """The batches of ``first``, which is the reply to ``prepared``, or those of a better reply.

    ``request`` is the client's own. Of a stream nothing is held back before the first fault; with a whole reply nothing
    goes out before its end. ``log`` counts the tokens of all replies and the calls of the one that is the answer.
    """
    held: list[Event] = []
    may_ask = True
    try:
        async with aclosing(first.batches()) as batches:
            async for batch in batches:
                passing = 0
                if may_ask and request.stream and not held:
                    passing = _before_fault(batch)
                    may_ask = not any(map(_shows, batch[:passing]))
                if may_ask:
                    held += batch[passing:]
                    batch = batch[:passing]
                if request.stream:
                    yield batch
    except UpstreamError:
        if held:
            yield held
        raise
    if held:
        yield await best_of(held, send, prepared=prepared, request=request, times=times, log=log)


async def best_of(
    events: list[Event], send: Send, *, prepared: Request, request: Request, times: int, log: RequestLog
) -> list[Event]:
    """``events``, the whole of the reply to ``prepared``, or those of a better one."""
    if not any(type(event) is Problem and is_fault(event) for event in events):
        return events
    reply = collect(events)
    usages = [reply.usage]
    for _ in range(times):
        if not mendable(reply):
            break
        log.reasks += 1
        prepared = corrected(prepared, request, reply)
        faults = ", ".join(sorted({problem.kind for problem in reply.problems if is_fault(problem)}))
        logger.info("request %s: the model is asked again (%s)", log.id, faults)
        attempt = RequestLog(log.id, log.surface, tape=log.tape)
        try:
            async with aclosing((await send(prepared, attempt)).batches()) as batches:
                said = [event async for batch in batches for event in batch]
        except UpstreamError as error:
            logger.warning("request %s: asking again failed: %s", log.id, error.code or error.type)
            break
        finally:
            _add(log, attempt)
        reply = collect(said)
        usages.append(reply.usage)
        if reply.calls and reply.finish == "tool_calls" and not mendable(reply):
            events, log.calls = said, attempt.calls
            break
    return [event for event in events if not isinstance(event, Usage)] + _total(usages)


def _before_fault(batch: Iterable[Event]) -> int:
    """How many of the events come before the first fault; all, where something shows before it."""
    batch = list(batch)
    for at, event in enumerate(batch):
        if _shows(event):
            break
        if isinstance(event, Problem) and is_fault(event):
            return at
    return len(batch)


def _shows(event: Event) -> bool:
    """Whether with ``event`` the client has seen some of the reply."""
    return not isinstance(event, Problem | Usage | Extra)


def _add(log: RequestLog, attempt: RequestLog) -> None:
    """Count ``attempt`` in the line of the request, its calls left out."""
    for kind, count in attempt.problems.items():
        log.problems[kind] += count
    log.prompt_tokens = _sum(log.prompt_tokens, attempt.prompt_tokens)
    log.completion_tokens = _sum(log.completion_tokens, attempt.completion_tokens)
    log.estimated |= attempt.estimated
    log.warning = log.warning or attempt.warning
    log.answered = attempt.answered or log.answered


def _total(usages: Iterable[Usage | None]) -> list[Event]:
    """The tokens of all replies together."""
    total: Usage | None = None
    for usage in usages:
        if total is None or usage is None:
            total = total or usage
        else:
            total = Usage(
                _sum(total.prompt_tokens, usage.prompt_tokens),
                _sum(total.completion_tokens, usage.completion_tokens),
                _sum(total.raw, usage.raw),
            )
    return [] if total is None else [total]


def _sum(left: Json, right: Json) -> Json:
    """Counts added, in objects member by member. What is no count is the first one's."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return {**right, **{key: _sum(value, right.get(key)) for key, value in left.items()}}
    if left is None or right is None:
        return right if left is None else left
    return left + right if isinstance(left, int | float) and isinstance(right, int | float) else left

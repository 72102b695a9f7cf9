"""Reading a reply in every way it can arrive: whole, character by character, and cut at random places."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proxy.core.collect import Reply, collect
from proxy.core.events import Event
from proxy.core.model import Json, Tool
from proxy.core.parser import Parser, parse

Tools = Sequence[Tool | Mapping[str, Json]]


def tool(name: str, *required: str, **properties: Json) -> Tool:
    """A tool; ``properties`` are type names or schemas."""
    schemas = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    return Tool(name, f"The tool {name}.", {"type": "object", "properties": schemas, "required": list(required)})


def cuts(text: str, rng: random.Random, count: int) -> list[str]:
    """``text`` in pieces, cut at ``count`` random places."""
    places = sorted(rng.randrange(len(text) + 1) for _ in range(count))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def ways_to_cut(text: str, seed: int = 0, tries: int = 8) -> Iterator[list[str]]:
    """Character by character, in pairs, and at random places."""
    yield list(text)
    yield [text[at : at + 2] for at in range(0, len(text), 2)]
    rng = random.Random(seed)
    for _ in range(tries):
        yield cuts(text, rng, rng.randrange(1, 6))


def events_of(
    pieces: Iterable[str], tools: Tools = (), *, finish_reason: str | None = "stop", **how: Any
) -> list[Event]:
    """All events of one reply that arrives in ``pieces``."""
    parser = Parser(tools, **how)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close(finish_reason)


def read(pieces: Iterable[str], tools: Tools = (), *, finish_reason: str | None = "stop", **how: Any) -> Reply:
    """The reply that arrives in ``pieces``."""
    return collect(events_of(pieces, tools, finish_reason=finish_reason, **how))


def essence(reply: Reply) -> tuple[Any, ...]:
    """What a client sees of a reply; call ids are random."""
    calls = [(call.name, call.arguments) for call in reply.calls]
    return reply.content, reply.reasoning, calls, reply.finish


def read_every_way(text: str, tools: Tools = (), *, finish_reason: str | None = "stop", **how: Any) -> Reply:
    """``text`` read whole, after checking that every way of cutting it gives the same.

    A stream in which a lone think closer came too late is left out: its reasoning had gone out as text.
    """
    whole = parse(text, tools, finish_reason=finish_reason, **how)
    for pieces in ways_to_cut(text):
        streamed = read(pieces, tools, finish_reason=finish_reason, **how)
        if not any(problem.kind == "late_reasoning" for problem in streamed.problems):
            assert essence(streamed) == essence(whole), pieces
    return whole

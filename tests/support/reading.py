"""Reading a reply in every way it can arrive: whole, character by character, and cut at random places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proxy.core.collect import Reply, collect
from proxy.core.events import Event
from proxy.core.model import Json, Tool
from proxy.core.parser import Parser, parse
from proxy.testing import assert_stream_equals_whole, essence

Tools = Sequence[Tool | Mapping[str, Json]]


def tool(name: str, *required: str, **properties: Json) -> Tool:
    """A tool; ``properties`` are type names or schemas."""
    schemas = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    return Tool(name, f"The tool {name}.", {"type": "object", "properties": schemas, "required": list(required)})


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


def read_every_way(text: str, tools: Tools = (), *, finish_reason: str | None = "stop", **how: Any) -> Reply:
    """``text`` read whole, after checking that every way of cutting it gives the same.

    A stream in which a lone think closer came too late is left out: its reasoning had gone out as text.
    """
    whole = parse(text, tools, finish_reason=finish_reason, **how)
    right = essence(whole)
    assert_stream_equals_whole(text, lambda: Parser(tools, **how), whole=lambda text: right, ending=(finish_reason,))
    return whole

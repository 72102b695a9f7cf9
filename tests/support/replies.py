"""Replies as models write them, ``fixtures/replies``: each with its dialect, and with what is to be read from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from proxy.core.model import Tool
from tests.support.conversations import FIXTURES
from tests.support.reading import read_every_way

Fixture: TypeAlias = Mapping[str, Any]

_FOLDER = FIXTURES / "replies"
TOOLS = [
    Tool(name, parameters=parameters) for name, parameters in json.loads((_FOLDER / "tools.json").read_text()).items()
]
REPLIES: Mapping[str, Fixture] = {
    path.stem: json.loads(path.read_text()) for path in sorted(_FOLDER.glob("*.json")) if path.stem != "tools"
}


def check(fixture: Fixture, dialect: str) -> None:
    """Read a reply whole and cut anywhere. Raises ``AssertionError`` if that gives anything but what is expected."""
    starts = fixture.get("starts_in_reasoning", False)
    reply = read_every_way(fixture["text"], TOOLS, dialect=dialect, starts_in_reasoning=starts)
    calls = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.calls]
    assert calls == fixture["calls"]
    assert reply.content == fixture.get("content", "")
    assert reply.reasoning == fixture.get("reasoning", "")

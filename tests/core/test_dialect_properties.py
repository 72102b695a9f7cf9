"""What a family's way of writing can say is read back: random calls, written as models of every family write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.core import dialects
from proxy.core.parser import Parser, parse
from proxy.testing import DIALECTS, assert_stream_equals_whole, calls, chunkings, rendering
from tests.support.effort import EXAMPLES
from tests.support.reading import tool

TOOLS = (
    tool("get_weather", "city", city="string", days={"type": "integer", "minimum": -5}, exact="number"),
    tool("get_time"),
    tool("write_file", path="string", content={"type": ["string", "null"]}, mode={"enum": ["a", "w"]}, deep={}),
    tool("order", lines={"type": "array", "items": {"type": "object"}}, paid="boolean"),
)
ROWS = {row.name: row for row in dialects.DIALECTS}


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
@settings(max_examples=max(8, EXAMPLES // 5))
def test_what_is_written_is_read_back(dialect: str, data: st.DataObject) -> None:
    made = data.draw(rendering(data.draw(calls(TOOLS)), dialect))
    cut = data.draw(chunkings(made.text))
    for name in (dialect, "auto")[: 1 + ROWS[dialect].auto]:
        reply = parse(made.text, TOOLS, dialect=name)
        assert [(call.name, _plain(json.loads(call.arguments))) for call in reply.calls] == [
            (call.name, _plain(call.arguments)) for call in made.calls
        ]
        assert "".join(reply.content.split()) == "".join("".join(made.prose).split())
        assert_stream_equals_whole(
            made.text,
            lambda name=name: Parser(TOOLS, dialect=name, stream_arguments_after=None),  # type: ignore[misc]
            chunkings=[cut],
        )


def _plain(value: object) -> str:
    """JSON by which ``1``, ``1.0`` and ``true`` are told apart."""
    return json.dumps(value, sort_keys=True)

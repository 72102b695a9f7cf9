from __future__ import annotations

from proxy.core.collect import Reply, collect
from proxy.core.events import (
    Extra,
    Finish,
    Problem,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import ToolCall


def test_everything_is_folded() -> None:
    problem = Problem("repaired", "A comma.", 0)
    reply = collect(
        [
            ReasoningDelta("h"),
            ReasoningDelta("m"),
            TextDelta("a"),
            problem,
            ToolCallStart(0, "x", "f"),
            ToolArgumentsDelta(0, "{"),
            ToolArgumentsDelta(0, "}"),
            ToolCallEnd(0),
            TextDelta("b"),
            Refusal("no"),
            Extra({"audio": 1}),
            Finish("tool_calls"),
            Usage(1, 2),
        ]
    )
    assert reply == Reply(
        content="ab",
        reasoning="hm",
        refusal="no",
        calls=(ToolCall("x", "f", "{}"),),
        finish="tool_calls",
        usage=Usage(1, 2),
        problems=(problem,),
        extra={"audio": 1},
    )


def test_a_call_that_never_ended_is_left_out() -> None:
    reply = collect([ToolCallStart(0, "x", "f"), ToolArgumentsDelta(0, '{"a'), Finish("error", "broken")])
    assert reply.calls == ()
    assert (reply.finish, reply.message) == ("error", "broken")

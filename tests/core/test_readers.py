from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.callrules import CallRules
from proxy.core.collect import Reply, collect
from proxy.core.events import (
    Event,
    Extra,
    Finish,
    FinishReason,
    Problem,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from proxy.core.model import Tool
from proxy.core.parser import Parser
from proxy.core.readers import NativeReader, XmlReader
from tests.core.test_callrules import call

TOOLS = (Tool("x"), Tool("y"))
X = '<tool_call>{"name": "x", "arguments": {}}</tool_call>'
Y = '<tool_call>{"name": "y", "arguments": {}}</tool_call>'


def xml_reader(rules: CallRules | None = None, *, read_calls: bool = True, parallel: bool = True) -> XmlReader:
    numbers = count()
    parser = Parser(TOOLS, read_calls=read_calls, parallel=parallel, new_id=lambda: f"own{next(numbers)}")
    return XmlReader(parser, rules or CallRules())


def read(reader: XmlReader | NativeReader, *events: Event) -> list[Event]:
    return [passed for event in events for passed in reader.feed(event)]


def kinds(reply: Reply) -> list[str]:
    return [problem.kind for problem in reply.problems]


def test_calls_are_read_out_of_text() -> None:
    out = read(xml_reader(), ReasoningDelta("hm"), TextDelta(f"Look: {X}"), Finish("stop"), Usage(1, 2))
    reply = collect(out)
    assert (reply.content, reply.reasoning, reply.finish) == ("Look:", "hm", "tool_calls")
    assert [(made.id, made.name, made.arguments) for made in reply.calls] == [("own0", "x", "{}")]
    assert out[-2:] == [Finish("tool_calls"), Usage(1, 2)]


def test_what_is_no_text_passes_at_once() -> None:
    reader = xml_reader()
    for event in (Refusal("no"), Extra({"annotations": []}), Problem("cut", "…"), Usage(1, 1)):
        assert reader.feed(event) == [event]


def test_nothing_but_usage_follows_the_finish() -> None:
    reader = xml_reader()
    read(reader, TextDelta("a"), Finish("stop"))
    assert read(reader, TextDelta("b"), Finish("length"), Usage(1, 1)) == [Usage(1, 1)]
    assert reader.close() == []


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        ("hi", None, "stop"),
        ("hi", "length", "length"),
        (X, None, "tool_calls"),
        (X, "length", "length"),
        ('<tool_call>{"name": "x"', None, "length"),
        ("hi", "tool_calls", "stop"),
        ("hi", "content_filter", "content_filter"),
        ("hi", "error", "error"),
    ],
)
def test_a_reply_without_finish_can_be_closed(text: str, given: FinishReason | None, reason: FinishReason) -> None:
    reader = xml_reader()
    read(reader, TextDelta(text))
    assert reader.close(given)[-1] == Finish(reason)
    assert reader.close(given) == []


def test_where_the_backend_stopped_is_kept() -> None:
    finish = Finish("stop", stop_sequence="END")
    assert collect(read(xml_reader(), TextDelta("One."), finish)).stop_sequence == "END"
    assert read(xml_reader(), TextDelta("One."), Finish("length", stop_sequence="END"))[-1] == Finish("length")


def test_an_error_keeps_its_message() -> None:
    assert xml_reader().feed(Finish("error", "it broke")) == [Finish("error", "it broke")]


def test_calls_of_the_upstream_join_those_out_of_the_text() -> None:
    reply = collect(
        read(xml_reader(), TextDelta(X), *call(0, "y", "{", "}"), TextDelta(f"\n{X}"), Finish("tool_calls"))
    )
    assert [(made.id, made.name) for made in reply.calls] == [("own0", "x"), ("id0", "y"), ("own1", "x")]
    assert reply.finish == "tool_calls"


def test_a_call_of_the_upstream_alone_is_a_call() -> None:
    reply = collect(read(xml_reader(), *call(0, "y"), Finish("stop")))
    assert ([made.name for made in reply.calls], reply.finish) == (["y"], "tool_calls")


def test_a_call_of_the_upstream_waits_while_another_is_open() -> None:
    parser = Parser(TOOLS, stream_arguments_after=0)
    reader = XmlReader(parser, CallRules())
    begun = read(reader, TextDelta('<tool_call>{"name": "x", "arguments": {"a": "1", '))
    assert isinstance(begun[0], ToolCallStart)
    assert read(reader, *call(0, "y")) == []
    rest = read(reader, TextDelta('"b": "2"}}</tool_call>'), Finish("stop"))
    reply = collect([*begun, *rest])
    assert [(made.name, made.arguments.replace(" ", "")) for made in reply.calls] == [
        ("x", '{"a":"1","b":"2"}'),
        ("y", "{}"),
    ]
    assert [type(event) for event in rest if isinstance(event, (ToolCallStart, ToolCallEnd))] == [
        ToolCallEnd,
        ToolCallStart,
        ToolCallEnd,
    ]


def test_a_call_that_the_upstream_leaves_open_was_cut() -> None:
    start, arguments, _ = call(0, "y")
    reply = collect(read(xml_reader(), TextDelta(X), start, arguments, Finish("stop")))
    assert ([made.name for made in reply.calls], reply.finish, kinds(reply)) == (["x"], "length", ["cut"])


def test_where_no_call_may_be_made_those_of_the_upstream_are_text() -> None:
    reader = xml_reader(CallRules(names=frozenset()), read_calls=False)
    reply = collect(read(reader, TextDelta("Hm."), *call(0, "y"), Finish("tool_calls")))
    assert (reply.content, reply.calls, reply.finish) == (f"Hm.\n{Y}", (), "stop")


def test_the_one_call_that_is_allowed_ends_the_reply() -> None:
    for events in ((TextDelta(X + Y),), (TextDelta(X), TextDelta(Y)), (*call(0, "x"), TextDelta(Y)), call(0, "x") * 2):
        reader = xml_reader(CallRules(single=True))
        out = read(reader, *events)
        assert reader.done
        assert read(reader, TextDelta("more"), ReasoningDelta("more"), *call(1, "y")) == []
        reply = collect([*out, *reader.feed(Finish("length"))])
        assert ([made.name for made in reply.calls], reply.content, reply.finish) == (["x"], "", "tool_calls")


def test_a_result_that_the_model_makes_up_ends_the_reply() -> None:
    reader = xml_reader()
    out = read(reader, TextDelta(f'{X}\n<tool_result name="x">'))
    assert reader.done
    reply = collect([*out, *read(reader, TextDelta(Y), Finish("length"))])
    assert ([made.name for made in reply.calls], reply.finish, kinds(reply)) == (
        ["x"],
        "tool_calls",
        ["fabricated_result"],
    )


def test_a_missing_call_is_told_before_any_text() -> None:
    reader = xml_reader(CallRules(names=frozenset({"x"}), forced=True))
    assert read(reader, TextDelta("I would "), TextDelta("rather not.")) == []
    out = reader.feed(Finish("stop"))
    assert isinstance(out[0], Problem)
    reply = collect(out)
    assert (kinds(reply), reply.content, reply.finish) == (["missing_call"], "I would rather not.", "stop")


def test_the_wrong_call_is_missing_and_stays_visible() -> None:
    reader = xml_reader(CallRules(names=frozenset({"x"}), forced=True))
    reply = collect(read(reader, TextDelta(f"See: {Y}"), Finish("stop")))
    assert (reply.calls, reply.finish, kinds(reply)) == ((), "stop", ["missing_call"])
    assert reply.content.split() == ["See:", *Y.split()]


@given(st.lists(st.sampled_from([X, Y, "some text", " ", "\n", "<think>hm</think>", "<tool_call>", "{"])), st.data())
def test_the_rules_hold_however_the_text_is_cut(pieces: list[str], data: st.DataObject) -> None:
    """Cut or whole, the same answer: forced or not, one call or any number."""
    text = "".join(pieces)
    forced, single = data.draw(st.booleans()), data.draw(st.booleans())
    names = frozenset({"x"}) if forced else None
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    whole, cut = (
        collect(
            read(
                xml_reader(CallRules(names=names, forced=forced, single=single)),
                *(TextDelta(text[at:end]) for at, end in zip([0, *bounds], [*bounds, len(text)], strict=True)),
                Finish("stop"),
            )
        )
        for bounds in ([], cuts)
    )
    assert cut == whole


def test_a_native_reply_passes() -> None:
    events = [TextDelta("<tool_call>"), *call(3, "x"), Finish("stop"), Usage(1, 1)]
    reader = NativeReader()
    assert read(reader, *events) == events
    assert not reader.done
    assert reader.close() == []


def test_a_native_reply_without_finish_gets_one() -> None:
    start, arguments, end = call(0, "x")
    for events, given_reason, reason in (
        ([TextDelta("a")], None, "stop"),
        ([start, arguments, end], "stop", "tool_calls"),
        ([start, arguments, end, *call(1, "y")[:2]], None, "length"),
        ([start, arguments, end], "error", "error"),
    ):
        reader = NativeReader()
        read(reader, *events)
        assert reader.close(given_reason) == [Finish(reason)]  # type: ignore[arg-type]
        assert reader.close() == []

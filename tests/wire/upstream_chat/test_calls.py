import json
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.collect import collect
from proxy.core.events import Event, Problem, TextDelta, ToolArgumentsDelta, ToolCallEnd, ToolCallStart
from proxy.core.model import Json, ToolCall
from proxy.wire.upstream_chat.calls import NativeCalls

ELBE, ODER = '{"river": "Elbe"}', '{"river": "Oder"}'


def entry(
    name: str | None = None, arguments: Json = None, *, index: int | None = None, call_id: str | None = None
) -> Json:
    """A fragment as servers send it; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    raw = {
        "index": index,
        "id": call_id,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in raw.items() if value is not None}


def calls(taken: tuple[str, ...] = ()) -> NativeCalls:
    numbers = count(1)
    return NativeCalls(lambda: f"new_{next(numbers)}", taken)


def read(*fragments: Json) -> list[Event]:
    """Each fragment in a delta of its own; all of them in one delta must give the same calls."""
    native = calls()
    events = [event for fragment in fragments for event in native.feed([fragment])] + native.close()
    assert collect(events).calls == collect(read_at_once(*fragments)).calls
    return events


def read_at_once(*fragments: Json) -> list[Event]:
    native = calls()
    return native.feed(fragments) + native.close()


TWO = (ToolCall("a", "level", ELBE), ToolCall("b", "level", ODER))
NEW = (ToolCall("new_1", "level", ELBE), ToolCall("new_2", "level", ODER))


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [
                entry("level", "", index=0, call_id="a"),
                entry(None, ELBE[:5], index=0),
                entry(None, ELBE[5:], index=0),
                entry("level", ODER, index=1, call_id="b"),
            ],
            TWO,
            id="as OpenAI does",
        ),
        pytest.param(
            [entry("level", ELBE, index=0, call_id="a"), entry("level", ODER, index=0, call_id="b")],
            TWO,
            id="index 0 for every call",
        ),
        pytest.param(
            [
                entry("level", ELBE[:5], index=0, call_id="a"),
                entry(None, ELBE[5:], index=0),
                entry("level", ODER[:5], index=0, call_id="b"),
                entry(None, ODER[5:], index=0),
            ],
            TWO,
            id="index 0 for every call, in fragments",
        ),
        pytest.param([entry("level", ELBE, call_id="a"), entry("level", ODER, call_id="b")], TWO, id="no index, ids"),
        pytest.param([entry("level", ELBE), entry("level", ODER)], NEW, id="neither index nor id"),
        pytest.param([entry("level", ELBE, index=0), entry("level", ODER, index=1)], NEW, id="no ids"),
        pytest.param([entry("level", ELBE, index=0), entry("level", ODER, index=0)], NEW, id="index 0 and no ids"),
        pytest.param(
            [
                entry("level", ELBE[:5], index=0, call_id="a"),
                entry("level", ELBE[5:], index=0, call_id="a"),
                entry("level", ODER, index=1, call_id="b"),
            ],
            TWO,
            id="id and name repeated",
        ),
        pytest.param(
            [
                entry("level", "", index=0),
                entry(None, ELBE, index=0, call_id="a"),
                entry("level", ODER, index=1, call_id="b"),
            ],
            (ToolCall("new_1", "level", ELBE), TWO[1]),
            id="the id comes too late to be used",
        ),
        pytest.param(
            [entry(None, None, index=0, call_id="a"), entry("level", None, index=0), entry(None, ELBE, index=0)],
            TWO[:1],
            id="the name comes after the id",
        ),
        pytest.param(
            [
                entry("level", ELBE[:5], index=0, call_id="a"),
                entry("level", ODER[:5], index=1, call_id="b"),
                entry(None, ELBE[5:], index=0),
                entry(None, ODER[5:], index=1),
            ],
            TWO,
            id="fragments of two calls in turn",
        ),
        pytest.param(
            [
                entry("level", "", index=0, call_id="a"),
                entry("level", "", index=1, call_id="b"),
            ],
            (ToolCall("a", "level"), ToolCall("b", "level")),
            id="no arguments",
        ),
        pytest.param(
            [entry("level", {"river": "Elbe"}, call_id="a")], (ToolCall("a", "level", '{"river":"Elbe"}'),), id="object"
        ),
        pytest.param(
            [entry("level", {"n": 2**65}, call_id="a")], (ToolCall("a", "level", f'{{"n":{2**65}}}'),), id="big"
        ),
        pytest.param([{"name": "level", "arguments": ELBE}], NEW[:1], id="flat, as function_call is"),
        pytest.param(
            [entry("level", None), {"id": ""}, {}, None, "x"], (ToolCall("new_1", "level"),), id="null and junk"
        ),
        pytest.param([entry("level", "{'a': 1}", call_id="a")], (ToolCall("a", "level", "{'a': 1}"),), id="not JSON"),
        pytest.param(
            [entry("level", ELBE, index=0, call_id="a"), entry("level", ODER, index=1, call_id="a")],
            (TWO[0], ToolCall("new_1", "level", ODER)),
            id="one id for two calls",
        ),
    ],
)
def test_calls_of_many_servers(fragments: list[Json], expected: tuple[ToolCall, ...]) -> None:
    events = read(*fragments)
    assert collect(events).calls == expected
    assert [event.index for event in events if isinstance(event, ToolCallStart)] == [*range(len(expected))]


def test_arguments_flow_as_they_come() -> None:
    native = calls()
    assert native.feed([entry("level", "", index=0, call_id="a")]) == [ToolCallStart(0, "a", "level")]
    assert native.feed([entry(None, '{"river"', index=0)]) == [ToolArgumentsDelta(0, '{"river"')]
    assert native.feed([entry(None, ': "Elbe"}', index=0)]) == [ToolArgumentsDelta(0, ': "Elbe"}')]
    assert native.close() == [ToolCallEnd(0)]
    assert not native.cut


def test_a_whole_call_ends_when_something_else_begins() -> None:
    native = calls()
    native.feed([entry("level", ELBE, index=0, call_id="a")])
    assert native.around(TextDelta("and")) == [ToolCallEnd(0), TextDelta("and")]
    assert native.around(TextDelta("so")) == [TextDelta("so")]


def test_a_call_that_is_over_does_not_begin_again() -> None:
    native = calls()
    native.feed([entry("level", ELBE, index=0, call_id="a")])
    native.around(TextDelta("and"))
    assert native.feed([entry("level", "", index=0, call_id="a"), entry(None, " ", index=0)]) == []
    assert native.close() == []


def test_each_entry_of_a_message_is_a_call() -> None:
    native = calls()
    entries = [entry("level"), entry("level"), entry("level", ELBE, call_id="a"), entry("level", ODER, call_id="a")]
    events = native.feed(entries, whole=True) + native.close()
    assert [(call.id, call.arguments) for call in collect(events).calls] == [
        ("new_1", "{}"),
        ("new_2", "{}"),
        ("a", ELBE),
        ("new_3", ODER),
    ]


def test_text_never_comes_inside_a_call() -> None:
    native = calls()
    native.feed([entry("level", ELBE[:5], index=0, call_id="a")])
    assert native.around(TextDelta("um")) == []
    assert native.feed([entry(None, ELBE[5:], index=0)]) == [ToolArgumentsDelta(0, ELBE[5:])]
    assert native.around(TextDelta("er")) == []
    assert native.close() == [ToolCallEnd(0), TextDelta("um"), TextDelta("er")]


WHOLE = r'{"a": "x\u00e9\n\ud83d\"", "b": [true, null, -1.5e-10, false], "c": {"d": 1}}'


@pytest.mark.parametrize("length", range(1, len(WHOLE)))
def test_a_call_that_breaks_off_is_never_ended(length: int) -> None:
    native = calls()
    events = native.feed([entry("level", ELBE, index=0), entry("level", WHOLE[:length], index=1)]) + native.close()
    assert native.cut
    assert [call.arguments for call in collect(events).calls] == [ELBE]


def test_a_brace_at_the_end_need_not_be_the_last() -> None:
    native = calls()
    native.feed([entry("level", '{"at": {}', index=0, call_id="a")])
    assert native.around(TextDelta("um")) == []
    native.feed([entry(None, "}", index=0)])
    assert native.close() == [ToolCallEnd(0), TextDelta("um")]


def test_nesting_without_end_is_left_as_it_is() -> None:
    [start, *_, end] = read_at_once(entry("level", "[" * 100_000, call_id="a"))
    assert (start, end) == (ToolCallStart(0, "a", "level"), ToolCallEnd(0))


@pytest.mark.parametrize("arguments", [WHOLE, '{"a": it"s"}', "{'a': 1}", '{"a": "say "hi""}', '{"a": tru}', "[]", "5"])
def test_what_is_whole_or_wrong_has_not_broken_off(arguments: str) -> None:
    events = read_at_once(entry("level", arguments, index=0, call_id="a"))
    assert collect(events).calls == (ToolCall("a", "level", arguments),)


def test_a_call_without_a_name_is_a_problem() -> None:
    [problem] = read_at_once(entry(None, ELBE, index=0, call_id="a"))
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.detail) == ("unreadable", ELBE)


def test_ids_of_earlier_turns_are_not_used_again() -> None:
    native = calls(taken=("call_0", "new_1"))
    [start, *_] = native.feed([entry("level", ELBE, index=0, call_id="call_0")])
    assert start == ToolCallStart(0, "new_2", "level")


@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2), st.lists(st.integers(0, 30))),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_any_cut_gives_the_same_calls(made: list[tuple[dict[str, str], list[int]]], repeat: bool) -> None:
    native = calls()
    events: list[Event] = []
    for number, (value, places) in enumerate(made):
        text = json.dumps(value)
        edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
        for first, (start, end) in enumerate(pairwise(edges)):
            named = repeat or not first
            fragment = entry(
                "level" if named else None, text[start:end], index=0, call_id=f"c{number}" if named else None
            )
            events += native.feed([fragment])
    events += native.close()
    assert collect(events).calls == tuple(
        ToolCall(f"c{number}", "level", json.dumps(value)) for number, (value, _) in enumerate(made)
    )
    kinds = [type(event) for event in events if not isinstance(event, ToolArgumentsDelta)]
    assert kinds == [ToolCallStart, ToolCallEnd] * len(made)

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.bodies.automaton import JsonAutomaton, State

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
CONTAINERS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def run(text: str, step: int) -> tuple[State, int]:
    """The state at the end, and how many characters were used."""
    automaton, used = JsonAutomaton(), 0
    for at in range(0, len(text), step):
        piece = text[at : at + step]
        end = automaton.take(piece, 0)
        used += end
        if automaton.state is not State.OPEN:
            break
    return automaton.state, used


@given(CONTAINERS, st.booleans(), st.integers(1, 9))
def test_it_ends_where_the_value_ends(value: object, ascii_only: bool, step: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert run(text + " }]</x>", step) == (State.DONE, len(text))
    assert run(text[:-1], step)[0] is State.OPEN


@given(st.sampled_from("{["), st.text(alphabet='{}[]",:\\u019.eE-+ntrufalse \n', max_size=30), st.integers(1, 5))
def test_it_agrees_with_a_parser(first: str, rest: str, step: int) -> None:
    text = first + rest
    state, used = run(text, step)
    assert run(text, len(text)) == (state, used)
    if state is State.DONE:
        json.loads(text[:used])
    elif state is State.FAILED:
        with pytest.raises(ValueError):  # noqa: PT011 (any of its kinds)
            json.loads(text)


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ('{"a" 1}', 5),
        ("{'a': 1}", 1),
        ('{"a": 1,}', 8),
        ('{"a": tru}', 9),
        ('{"a": 01}', 8),
        ('{"a": "\n"}', 7),
        ('{"a": "\\x"}', 8),
        ('{"a": "\\u12g4"}', 11),
        ("[1 2]", 3),
        ("5", 0),
        ("[}", 1),
    ],
)
def test_it_fails_at_the_first_wrong_character(text: str, used: int) -> None:
    assert run(text, len(text)) == (State.FAILED, used)
    assert run(text, 1)[0] is State.FAILED


def test_a_number_may_be_long_but_not_endless() -> None:
    assert run("[" + "9" * 5_000 + "]", 4) == (State.DONE, 5_002)
    assert run("[" + "9" * 100_000, 4)[0] is State.FAILED


def test_deep_nesting() -> None:
    assert run("[" * 100_000 + "]" * 100_000, 7) == (State.DONE, 200_000)

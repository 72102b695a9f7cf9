from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.history import NO_RESULT
from proxy.core.model import ImagePart, Message, Role, TextPart, ToolCall, ToolResult
from proxy.core.replay import UNREADABLE, mended, readable

IMAGE = ImagePart("data:image/png;base64,AAAA")


def user(text: str) -> Message:
    return Message("user", (TextPart(text),))


def calls(*ids: str) -> Message:
    return Message("assistant", calls=tuple(ToolCall(call_id, "clock") for call_id in ids))


def tool(call_id: str, text: str = "12:00") -> Message:
    return Message("tool", results=(ToolResult(call_id, (TextPart(text),)),))


def told(messages: tuple[Message, ...]) -> list[str]:
    """Each message in short: its role, ids and text."""
    return [
        " ".join(
            [
                message.role,
                *(call.id for call in message.calls),
                *(f"{result.call_id}={''.join(map(text_of, result.content))}" for result in message.results),
                *filter(None, [message.text]),
            ]
        )
        for message in messages
    ]


def text_of(part: object) -> str:
    return part.text if isinstance(part, TextPart) else "*"


def test_what_is_in_order_stays() -> None:
    given = (user("a"), calls("x", "y"), tool("x"), tool("y"), Message("assistant", (TextPart("b"),)), user("c"))
    assert mended(given) == given


def test_without_calls_and_results_it_is_not_looked_at() -> None:
    odd = (Message("assistant"), Message("tool", (TextPart("a"),)), user("b"))
    assert mended(odd) == odd


@pytest.mark.parametrize("after", [(), (user("next"),), (Message("assistant", (TextPart("done"),)), user("next"))])
def test_a_call_without_a_result_gets_one_that_says_so(after: tuple[Message, ...]) -> None:
    out = mended((user("a"), calls("x", "y"), tool("y"), *after))
    assert told(out)[2:4] == [f"tool x={NO_RESULT}", "tool y=12:00"]
    assert [result.is_error for message in out for result in message.results] == [True, False]
    assert out[4:] == after


def test_results_follow_their_calls_before_anything_else_is_said() -> None:
    both = Message("user", (TextPart("and"),), results=(ToolResult("y", (TextPart("2"),)),))
    out = mended((calls("x", "y"), user("wait"), both, tool("x", "1")))
    assert told(out) == ["assistant x y", "tool x=1", "tool y=2", "user wait", "user and"]


def test_a_result_of_no_call_becomes_the_users_words() -> None:
    gone = Message("tool", results=(ToolResult("gone", (TextPart("7"), IMAGE), is_error=True),))
    out = mended((user("a"), gone, calls("x"), tool("x"), Message("assistant", (TextPart("b"),)), tool("x", "late")))
    assert told(out) == [
        "user [The result of a call that is no longer shown] It failed:\n7",
        "user a",
        "assistant x",
        "tool x=12:00",
        "assistant b",
        "user [A late result of clock]\nlate",
    ]
    assert IMAGE in out[0].content


def test_two_calls_with_one_id_or_none_are_told_apart() -> None:
    out = mended((calls("x", "x", "", "x_2"), tool("x", "1"), tool("x", "2"), tool("x_2", "4"), tool("", "3")))
    assert told(out) == ["assistant x x_2 call_3 x_2_2", "tool x=1", "tool x_2=2", "tool call_3=3", "tool x_2_2=4"]


def test_two_results_of_one_call_are_one() -> None:
    assert told(mended((calls("x"), tool("x", "1"), tool("x", "2")))) == ["assistant x", "tool x=1\n\n2"]


def test_a_call_without_a_name_is_called_unknown_and_a_tools_message_without_a_result_is_its_result() -> None:
    out = mended((Message("user", calls=(ToolCall("x", ""),)), Message("tool", (TextPart("1"),))))
    assert (out[0].role, out[0].calls[0].name, told(out)[1]) == ("assistant", "unknown", "tool x=1")


@pytest.mark.parametrize("text", ["{}", ' {"a": 1e400}', '{"a": {"b": []}}'])
def test_arguments_that_are_an_object_stay_as_they_are(text: str) -> None:
    assert readable(text) == text


@pytest.mark.parametrize(("text", "wanted"), [("", "{}"), (" null ", "{}"), ('"{\\"a\\": 1}"', '{"a": 1}')])
def test_arguments_that_say_an_object_become_one(text: str, wanted: str) -> None:
    assert readable(text) == wanted


@pytest.mark.parametrize(
    "text", ["[1]", "5", '{"a": 1', '{"a": NaN}', "ls -l", '"x"', '{"a": ' + "7" * 5000 + "}", '{"a":' * 9000]
)
def test_other_arguments_are_kept_as_text_within_an_object(text: str) -> None:
    assert json.loads(readable(text)) == {UNREADABLE: text}


ROLES: st.SearchStrategy[Role] = st.sampled_from(["system", "user", "assistant", "tool"])
IDS = st.sampled_from(["", "x", "y", "x_2"])


@st.composite
def odd_messages(draw: st.DrawFn) -> Message:
    role: Role = draw(ROLES)
    made = draw(st.lists(st.builds(ToolCall, IDS, st.sampled_from(["", "clock"]), st.text(max_size=3)), max_size=2))
    results = draw(st.lists(st.builds(ToolResult, IDS, st.just((TextPart("r"),))), max_size=2))
    return Message(role, draw(st.sampled_from([(), (TextPart("t"),)])), tuple(made), tuple(results))


@given(st.lists(odd_messages(), max_size=6))
def test_each_run_of_calls_is_followed_by_its_results_and_nothing_else_is_a_result(given_: list[Message]) -> None:
    out = mended(given_)
    if not any(message.calls or message.results for message in given_):
        return
    waiting: list[str] = []
    for message in out:
        if message.role == "assistant":
            assert not message.results
            waiting += [call.id for call in message.calls]
            assert all(isinstance(json.loads(call.arguments), dict) and call.name for call in message.calls)
            assert len(set(waiting)) == len(waiting)
        elif message.role == "tool":
            (result,) = message.results
            assert result.call_id == waiting.pop(0)
        else:
            assert not waiting
            assert not message.calls
            assert not message.results
    assert not waiting

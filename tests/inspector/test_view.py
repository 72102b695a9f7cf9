from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.events import Problem
from proxy.inspector.marks import Reading
from proxy.inspector.ring import Entry, Ring
from proxy.inspector.view import MOST_SHOWN, detail, exchange_fixture, explained, indented, summary, tried
from proxy.tape import Settings
from proxy.telemetry import RequestLog
from proxy.wire import jsonio
from tests.support.reading import tool

CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Chur"}}</tool_call>'
WEATHER = tool("weather", city="string")
ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"type": "function", "function": {"name": "weather", "description": "", "parameters": {}}}],
}


def reply(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def entry(asked: Any = ASKED, *wrote: str, mode: str | None = "xml", told: bytes = b"", **log: Any) -> Entry:
    """An exchange in which the model ``wrote`` that."""
    made = Ring(9, 1 << 30).begin(
        RequestLog("r1", "chat", mode=mode, **log), "POST", "/v1/chat/completions", [(b"host", b"here")]
    )
    tape = made.tape
    assert tape is not None
    tape.ask(asked if isinstance(asked, bytes) else json.dumps(asked).encode())
    tape.settings = Settings("auto", "m", False)
    for text in wrote:
        turn = tape.turn("http://there/v1/chat/completions", b'{"messages": []}')
        turn.status = 200
        turn.came.add(reply(text))
    tape.told.add(told)
    return made


def shown(made: Entry) -> Any:
    """What the page gets."""
    return jsonio.loads(jsonio.dumps(detail(made, "http://here")))


def test_one_in_three_columns() -> None:
    made = shown(entry(ASKED, f"Look: {CALL}", told=reply("done")))
    assert json.loads(made["asked"]["text"]) == ASKED
    assert made["asked"]["curl"].startswith("curl -sS http://here/v1/chat/completions ")
    (turn,) = made["turns"]
    assert [(each["kind"], each["text"]) for each in turn["segments"]] == [
        ("text", "Look:"),
        ("dropped", " "),
        ("call", CALL),
    ]
    assert turn["segments"][2]["calls"] == [{"name": "weather", "arguments": '{"city": "Chur"}'}]
    assert "http://there/v1/chat/completions" in turn["curl"]
    assert made["told"]["reply"]["content"] == "done"
    assert made["tools"][0]["function"]["name"] == "weather"
    assert [each["rule"] for each in made["lint"]] == ["no_description"]


def test_where_one_call_was_asked_for_one_is_shown_and_written_into_the_fixture() -> None:
    made = entry(ASKED, CALL + CALL)
    assert made.tape is not None
    assert [len(each["calls"]) for each in shown(made)["turns"][0]["segments"]] == [1, 1]
    made.tape.settings = Settings("auto", "m", False, parallel=False)
    assert sum(len(each["calls"]) for each in shown(made)["turns"][0]["segments"]) == 1
    fixture = exchange_fixture(made, 0)
    assert fixture is not None
    assert fixture["parallel"] is False


def test_findings_are_explained_where_they_were_found() -> None:
    made = entry(ASKED, CALL, CALL)
    assert made.tape is not None
    made.tape.turns[0].problems.append(Problem("invalid_arguments", "city is missing.", 0))
    first, second = shown(made)["turns"]
    assert first["problems"][0]["title"] == "Arguments do not fit the schema"
    assert first["problems"][0]["message"] == "city is missing."
    assert second["problems"] == []


def test_what_a_native_backend_wrote_has_no_marks() -> None:
    made = shown(entry(ASKED, CALL, mode="native"))
    assert [each["kind"] for each in made["turns"][0]["segments"]] == ["text"]


def test_a_line_of_the_list() -> None:
    log: dict[str, Any] = {"stream": True, "calls": 2, "prompt_tokens": 5, "completion_tokens": 20, "model": "m"}
    made = entry(ASKED, **log)
    made.log.first, made.log.answered = made.log.started + 0.5, made.log.started + 2.5
    line = summary(made)
    assert (line["first_ms"], line["rate"], line["verdict"], line["running"]) == (500.0, 10.0, "running", True)
    assert line["calls"] == {"right": 0, "repaired": 0, "refused": 0}
    made.log.stream, made.log.asked = False, made.log.started + 0.5
    assert summary(made)["rate"] == 10.0
    made.log.answered = None
    assert summary(made)["rate"] is None


def test_what_was_said_may_be_gone() -> None:
    made = entry()
    made.tape = None
    assert set(detail(made, "http://here")) == {"summary", "method", "headers"}
    assert exchange_fixture(made, 0) is None


@pytest.mark.parametrize(
    "asked",
    [b"", b"{oops", b"\xff\x00", b"[]", b"null", b'{"messages": 3, "tools": "x"}', b'{"tools": [{"name": 4}, 5]}'],
)
def test_requests_that_cannot_be_read_are_shown_with_the_reason(asked: bytes) -> None:
    made = shown(entry(asked, "text"))
    assert made["asked"]["problem"]
    assert made["tools"] == []


def test_the_tools_of_a_request_that_is_wrong_are_shown_all_the_same() -> None:
    made = shown(entry({"tools": [{"type": "function", "function": {"name": "weather"}}]}))
    assert made["asked"]["problem"]
    assert made["tools"][0]["function"]["name"] == "weather"


def test_long_texts_are_cut_in_the_middle() -> None:
    text = "<begin>" + "x" * 3 * MOST_SHOWN + "<end>"
    made = shown(entry({**ASKED, "messages": [{"role": "user", "content": text}]}, text, told=reply(text)))
    for part in (made["asked"]["text"], made["turns"][0]["segments"][0]["text"], made["told"]["reply"]["content"]):
        assert len(part) < MOST_SHOWN + 100
        assert "<begin>" in part
        assert "<end>" in part
        assert "characters are not shown" in part
    assert made["asked"]["cut"]


def test_a_fixture_of_what_the_model_wrote() -> None:
    made = exchange_fixture(entry(ASKED, "first", CALL), 1)
    assert made is not None
    assert (made["text"], made["model"]) == (CALL, "m")
    assert made["calls"] == [{"name": "weather", "arguments": {"city": "Chur"}}]
    assert exchange_fixture(entry(ASKED, "first"), 1) is None
    assert exchange_fixture(entry(ASKED, "first"), -1) is None


def test_a_text_to_try() -> None:
    made = tried(CALL.replace('"}', '",}'), Reading((WEATHER,)), "stop")
    assert [each["kind"] for each in made["segments"]] == ["call"]
    assert made["reply"]["calls"][0]["arguments"] == '{"city": "Chur"}'
    assert [each["kind"] for each in made["problems"]] == ["repaired"]
    assert made["fixture"]["calls"] == [{"name": "weather", "arguments": {"city": "Chur"}}]
    assert [each["rule"] for each in made["lint"]] == ["vague_description", "argument_description"]


def test_a_finding_says_what_it_means() -> None:
    made = explained(Problem("cut", "The reply ended inside a call.", None, "<tool_c"))
    assert (made["verdict"], made["detail"]) == ("refused", "<tool_c")
    assert made["mend"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values, st.booleans())
def test_indenting_changes_nothing(value: Any, plain: bool) -> None:
    text = json.dumps(value, ensure_ascii=plain)
    assert json.loads(indented(text)) == value


def test_indenting() -> None:
    assert indented('{"a":[],"b":[1e5,"\\u00e9, }"]}') == '{\n  "a": [],\n  "b": [\n    1e5,\n    "é, }"\n  ]\n}'
    assert indented("{oops") == "{oops"
    deep = "[" * 5_000 + "]" * 5_000
    assert len(indented(deep)) < 100 * len(deep)


HOSTILE = ["</script><script>alert(1)</script>", "\x1b[31m\x00\x7f", "\u202eabc\u2066", "\ud800", "<" * 3000, "\ufeff{"]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_is_said_is_a_json_string_in_the_end(text: str) -> None:
    body = {
        "model": text,
        "messages": [{"role": text, "content": text}],
        "tools": [{"name": text, "description": text}],
    }
    made = entry(body, text, CALL.replace("Chur", json.dumps(text)[1:-1]), told=text.encode("utf-8", "replace"))
    assert shown(made)["summary"]["id"] == "r1"
    made.log.model = text
    assert jsonio.loads(jsonio.dumps(summary(made)))["number"] == 1

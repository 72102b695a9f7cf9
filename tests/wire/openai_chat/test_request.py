import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, Json, Message, TextPart, ToolCall, ToolResult
from proxy.wire.bodies import load_body
from proxy.wire.openai_chat import ChatRequest, decode_body

USER = {"role": "user", "content": "hi"}
CLOCK = {"type": "function", "function": {"name": "clock"}}


def decode(**body: Json) -> ChatRequest:
    return decode_body(load_body(json.dumps({"messages": [USER], **body}).encode()))


def read(message: Json) -> Message:
    return decode(messages=[message]).request.messages[0]


def call(call_id: str, name: str, arguments: Json) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"role": "system", "content": "s"}, Message("system", (TextPart("s"),))),
        ({"role": "developer", "content": "s"}, Message("system", (TextPart("s"),))),
        ({"role": "user", "content": "u", "name": "Ann"}, Message("user", (TextPart("u"),), name="Ann")),
        ({"role": "wizard", "content": "u"}, Message("user", (TextPart("u"),))),
        ({"content": "u"}, Message("user", (TextPart("u"),))),
        ({"role": ["user"], "content": "u"}, Message("user", (TextPart("u"),))),
        ({"role": "user", "content": None}, Message("user")),
        (
            {"role": "assistant", "content": "a", "refusal": None, "annotations": []},
            Message("assistant", (TextPart("a"),)),
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, Message("assistant", (TextPart("No."),))),
        ({"role": "assistant"}, Message("assistant")),
        ({"role": "assistant", "content": "a", "tool_calls": None}, Message("assistant", (TextPart("a"),))),
        ({"role": "assistant", "content": "a", "tool_calls": "?"}, Message("assistant", (TextPart("a"),))),
        (
            {"role": "assistant", "content": "a", "reasoning_content": "r", "reasoning": "r"},
            Message("assistant", (TextPart("a"),), reasoning="r"),
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "r"}, {"type": "text", "text": "a"}]},
            Message("assistant", (TextPart("a"),), reasoning="r"),
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "content": "10:00"},
            Message("tool", results=(ToolResult("c1", (TextPart("10:00"),)),)),
        ),
        (
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            Message("tool", results=(ToolResult("c1", (TextPart("a"), TextPart("b"))),)),
        ),
        (
            {"role": "tool", "tool_call_id": "c1", "is_error": True, "content": {"code": 7}},
            Message("tool", results=(ToolResult("c1", (TextPart('{"code":7}'),), is_error=True),)),
        ),
        (
            {"role": "tool", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
            Message("tool", results=(ToolResult("", (ImagePart("data:,"),)),)),
        ),
        ({"role": "tool", "tool_call_id": None}, Message("tool", results=(ToolResult(""),))),
        (
            {"role": "function", "name": "clock", "content": "10:00"},
            Message("tool", results=(ToolResult("", (TextPart("10:00"),), name="clock"),)),
        ),
    ],
)
def test_messages_as_clients_replay_them(raw: Json, message: Message) -> None:
    assert read(raw) == message


@pytest.mark.parametrize(
    ("raw", "calls"),
    [
        (call("c1", "clock", "{}"), ToolCall("c1", "clock")),
        (call("c1", "clock", '{"zone": "UTC"}') | {"index": 0}, ToolCall("c1", "clock", '{"zone": "UTC"}')),
        (call("c1", "clock", '{"zone": "unterm'), ToolCall("c1", "clock", '{"zone": "unterm')),
        (call("c1", "clock", {"zone": "UTC"}), ToolCall("c1", "clock", '{"zone":"UTC"}')),
        (call("c1", "clock", {"n": 2**70}), ToolCall("c1", "clock", '{"n":1180591620717411303424}')),
        (call("c1", "clock", ""), ToolCall("c1", "clock")),
        (call("c1", "clock", None), ToolCall("c1", "clock")),
        ({"function": {"name": "clock"}}, ToolCall("", "clock")),
        ({"id": None, "name": "clock", "arguments": {}}, ToolCall("", "clock")),
        (
            {"id": "c1", "type": "custom", "custom": {"name": "shell", "input": 'echo "a"'}},
            ToolCall("c1", "shell", '{"input":"echo \\"a\\""}', custom=True),
        ),
    ],
)
def test_calls_as_clients_replay_them(raw: Json, calls: ToolCall) -> None:
    assert read({"role": "assistant", "content": None, "tool_calls": [raw]}) == Message("assistant", calls=(calls,))


def test_calls_of_a_role_nobody_knows_are_the_assistants() -> None:
    assert read({"role": "model", "tool_calls": [call("c1", "clock", "{}")]}).role == "assistant"


def test_entries_that_are_no_calls_are_passed_over() -> None:
    assert read({"role": "assistant", "tool_calls": ["x", None, call("c1", "clock", "{}")]}).calls == (
        ToolCall("c1", "clock"),
    )


def test_a_legacy_call_counts_unless_it_is_there_twice() -> None:
    legacy = {"name": "clock", "arguments": "{}"}
    assert read({"role": "assistant", "function_call": legacy}).calls == (ToolCall("", "clock"),)
    both = {"role": "assistant", "function_call": legacy, "tool_calls": [call("c1", "clock", "{}")]}
    assert read(both).calls == (ToolCall("c1", "clock"),)


def test_a_plain_request() -> None:
    decoded = decode(model="m", temperature=0.5, stop=["x"], max_completion_tokens=50, n=1, store=True)
    request = decoded.request
    assert (request.model, request.stream, request.include_usage, request.parallel) == ("m", False, False, True)
    assert request.messages == (Message("user", (TextPart("hi"),)),)
    assert request.extra == {"temperature": 0.5, "stop": ["x"], "max_completion_tokens": 50, "n": 1, "store": True}
    assert not decoded.legacy_functions
    assert decoded.dropped_tools == ()


def test_explicit_nulls_are_the_defaults() -> None:
    fields = ("model", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "response_format")
    request = decode(**dict.fromkeys(fields)).request
    assert request == decode().request


def test_big_integers_survive() -> None:
    body = b'{"messages":[{"role":"user","content":"hi"}],"seed":18446744073709551617}'
    assert decode_body(load_body(body)).request.extra == {"seed": 18446744073709551617}


def test_streaming_and_usage() -> None:
    request = decode(stream=True, stream_options={"include_usage": True}).request
    assert (request.stream, request.include_usage) == (True, True)
    assert not decode(stream=True, stream_options={"include_usage": None}).request.include_usage


def test_response_format() -> None:
    assert decode(response_format={"type": "json_object"}).request.response_format == {"type": "json_object"}
    assert decode(response_format={"type": "text"}).request.response_format is None


def test_one_call_only() -> None:
    assert not decode(tools=[CLOCK], parallel_tool_calls=False).request.parallel


def test_a_legacy_request_has_room_for_one_call() -> None:
    decoded = decode(functions=[{"name": "clock"}], function_call="auto")
    assert decoded.legacy_functions
    assert not decoded.request.parallel


def test_what_the_server_has_to_tell_the_client() -> None:
    shell = {"type": "custom", "custom": {"name": "shell"}}
    decoded = decode(tools=[CLOCK, shell, {"type": "web_search"}])
    assert decoded.dropped_tools == ("web_search",)
    assert decoded.custom_tools == {"shell"}


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        (b"", None, "not valid JSON"),
        (b'{"messages": [', None, "not valid JSON: Expecting value: line 1 column 15"),
        (b"[" * 5000, None, "nested too deeply"),
        (b"[]", None, "must be a JSON object"),
        (b"{}", "messages", "at least one message"),
        (b'{"messages": null}', "messages", "at least one message"),
        (b'{"messages": []}', "messages", "at least one message"),
        (b'{"messages": "hi"}', "messages", "must be a list"),
        (b'{"messages": [{}, "hi"]}', "messages[1]", "must be an object"),
        (b'{"messages": [{}], "model": 7}', "model", "must be a string"),
        (b'{"messages": [{}], "stream": "yes"}', "stream", "must be true or false"),
        (b'{"messages": [{}], "response_format": "json"}', "response_format", "must be an object"),
        (b'{"messages": [{}], "tools": "x"}', "tools", "must be a list"),
    ],
)
def test_what_the_client_can_mend(body: bytes, param: str | None, words: str) -> None:
    with pytest.raises(ClientError) as caught:
        decode_body(load_body(body))
    assert (caught.value.status, caught.value.type, caught.value.param) == (400, "invalid_request_error", param)
    assert words in caught.value.message


def test_a_value_too_deep_to_read_is_a_client_error() -> None:
    arguments = b'{"a":' * 1100 + b"1" + b"}" * 1100
    call = b'{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":%s}}]}' % arguments
    with pytest.raises(ClientError):
        decode_body(load_body(b'{"messages":[%s]}' % call))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "function", "name", "arguments", "id", "custom", "input", "image_url", "url"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(["system", "user", "assistant", "tool", "function", "developer", "x"]) | JSON,
            **dict.fromkeys(
                ("content", "tool_calls", "function_call", "tool_call_id", "name", "refusal", "reasoning_content"), JSON
            ),
        },
    )
)
def test_no_old_turn_is_refused(message: dict[str, Json]) -> None:
    assert len(decode(messages=[message]).request.messages) == 1


@pytest.mark.parametrize(("odd", "shown"), [(None, []), ("hi", ["hi"]), ([1], ["[1]"]), (5, ["5"]), ({}, [""])])
def test_what_is_no_message_is_refused_in_the_turn_to_be_answered_alone(odd: Json, shown: list[str]) -> None:
    request = decode(messages=[odd, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]).request
    assert [message.text for message in request.messages] == [*shown, "a", "b"]
    if odd != {}:
        with pytest.raises(ClientError, match="must be an object") as caught:
            decode(messages=[{"role": "assistant", "content": "a"}, odd])
        assert caught.value.param == "messages[1]"

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, Json, Message, Request, TextPart, ToolCall, ToolChoice, ToolResult
from proxy.wire.anthropic_messages.errors import THREAD_UNSUPPORTED
from proxy.wire.anthropic_messages.request import decode_body

USER = {"role": "user", "content": "hi"}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}


def decode(**fields: Json) -> Request:
    return decode_body({"model": "m", "max_tokens": 64, "messages": [USER], **fields}).request


def test_the_least_request() -> None:
    assert decode() == Request((Message("user", (TextPart("hi"),)),), model="m", extra={"max_tokens": 64})


def test_a_conversation() -> None:
    request = decode(
        system=[{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be brief."}],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Time?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look.", "signature": "s"},
                    {"type": "thinking", "thinking": "Now.", "signature": "s"},
                    {"type": "text", "text": "A moment."},
                    {"type": "tool_use", "id": "a", "name": "clock", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "9", "is_error": True},
                    {"type": "text", "text": "And now?"},
                ],
            },
            {"role": "system", "content": "It is late."},
        ],
    )
    assert request.messages == (
        Message("system", (TextPart("Be kind.\n\nBe brief."),)),
        Message("user", (TextPart("Time?"),)),
        Message("assistant", (TextPart("A moment."),), (ToolCall("a", "clock"),), reasoning="Look.\n\nNow."),
        Message("user", (TextPart("And now?"),), results=(ToolResult("a", (TextPart("9"),), is_error=True),)),
        Message("system", (TextPart("It is late."),)),
    )


def test_sampling_goes_on_and_what_is_for_anthropics_servers_does_not() -> None:
    request = decode(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        min_p=None,
        stop_sequences=["END", ""],
        metadata={"user_id": "u"},
        service_tier="auto",
        thinking={"type": "enabled", "budget_tokens": 1024},
        context_management={"edits": []},
        output_config={"effort": "high"},
        cache_control={"type": "ephemeral"},
        mcp_servers=[],
        container=None,
        thread=None,
        speed="fast",
        new_next_year=True,
    )
    assert request.extra == {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop": ["END"], "max_tokens": 64}
    assert request.response_format is None


def test_what_the_answer_is_told_by() -> None:
    decoded = decode_body(
        {"messages": [USER], "stop_sequences": ["END"], "tools": [{"type": "web_search_20250305", "name": "w"}]}
    )
    assert (decoded.stop_sequences, decoded.dropped_tools) == (("END",), ("web_search_20250305",))


def test_streams_and_tools() -> None:
    tool = {"name": "clock", "input_schema": {"type": "object"}}
    request = decode(stream=True, tools=[tool], tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert (request.stream, request.parallel) == (True, False)
    assert request.tool_choice == ToolChoice("required")
    assert decode(tools=[tool]).tool_choice == AUTO
    assert not decode(stream=False).stream


@pytest.mark.parametrize(("given", "sent"), [(None, None), (0, 1), (7, 7)])
def test_the_limit_is_not_demanded(given: int | None, sent: int | None) -> None:
    assert decode(max_tokens=given).extra.get("max_tokens") == sent


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_a_format_for_the_answer(field: str) -> None:
    schema = {"type": "object"}
    form = {"type": "json_schema", "schema": schema}
    request = decode(**{field: {"format": form, "effort": "low"} if field == "output_config" else form})
    assert request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }


def test_a_thread_is_refused_so_that_the_sdk_falls_back() -> None:
    with pytest.raises(ClientError) as caught:
        decode(thread={"type": "create"})
    assert (caught.value.code, caught.value.param) == (THREAD_UNSUPPORTED, "thread")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"model": 3}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"stop_sequences": [3]}, "stop_sequences"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config"),
        ({"output_config": 3}, "output_config"),
        ({"mcp_servers": [{"type": "url", "url": "https://a", "name": "a"}]}, "mcp_servers"),
        ({"container": {"skills": []}}, "container"),
        ({"container": "c_1"}, "container"),
        ({"messages": [{"role": "user", "content": [PDF]}]}, "messages[0].content[0]"),
    ],
)
def test_mistakes_are_named(fields: dict[str, Json], param: str) -> None:
    with pytest.raises(ClientError) as caught:
        decode(**fields)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_what_could_not_be_shown_in_an_earlier_turn_stops_nothing() -> None:
    earlier = [{"role": "user", "content": [PDF]}, {"role": "assistant", "content": "I see."}]
    request = decode(messages=[*earlier, USER])
    assert "left out" in request.messages[0].text


def test_nor_what_a_tool_has_read() -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]}
    read = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "A PDF of 3 pages."}]}
    request = decode(messages=[USER, call, read, {"role": "user", "content": [PDF]}])
    assert "application/pdf" in request.messages[-1].text


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "developer", "content": "x"}, Message("system", (TextPart("x"),))),
        ({"content": "x"}, Message("user", (TextPart("x"),))),
        ({"role": "narrator", "content": "x"}, Message("user", (TextPart("x"),))),
        ({"role": "assistant"}, Message("assistant")),
        (
            {"content": [{"type": "tool_use", "id": "a", "name": "f"}]},
            Message("assistant", calls=(ToolCall("a", "f"),)),
        ),
    ],
)
def test_odd_roles_are_read_somehow(message: Json, expected: Message) -> None:
    assert decode(messages=[message]).messages == (expected,)


def test_what_cannot_be_written_is_the_clients_fault() -> None:
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"deep": deep}}]}
    with pytest.raises(ClientError, match="cannot be read"):
        decode(messages=[call])


@pytest.mark.parametrize(("odd", "shown"), [(None, []), ("hi", ["hi"]), (5, ["5"])])
def test_what_is_no_message_is_refused_in_the_turn_to_be_answered_alone(odd: Json, shown: list[str]) -> None:
    said = {"role": "assistant", "content": "a"}
    assert [message.text for message in decode(messages=[odd, said, USER]).messages] == [*shown, "a", "hi"]
    with pytest.raises(ClientError, match="must be an object") as caught:
        decode(messages=[said, USER, odd])
    assert caught.value.param == "messages[2]"


KNOWN = """
    type text image document source base64 url file content tool_use tool_result thinking input id name system user
    assistant role messages tools tool_choice any tool title data media_type tool_addition tool_removal definition
    tool_definition tool_reference tool_name web_search_tool_result server_tool_use citations input_schema max_tokens
    stop_sequences output_config format json_schema schema thread container custom search_result
"""
WORDS = st.sampled_from(KNOWN.split())
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(WORDS, VALUES, max_size=6), st.lists(st.dictionaries(WORDS, VALUES, max_size=5), max_size=4))
def test_whatever_is_sent_is_read_or_refused(fields: dict[str, Json], blocks: list[Json]) -> None:
    turns = [{"role": "user", "content": blocks}, {"role": "assistant", "content": blocks}, *blocks]
    for body in (fields, {"messages": turns}, {"messages": [USER], "tools": blocks, **fields}):
        with contextlib.suppress(ClientError):
            decode_body(body)

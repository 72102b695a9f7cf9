import json

import pytest

from proxy.core.errors import ClientError
from proxy.core.model import (
    ImagePart,
    Json,
    Message,
    OtherPart,
    Request,
    TextPart,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.wire.bodies import load_body
from proxy.wire.openai_chat import decode_body
from proxy.wire.upstream_chat import encode_request

IMAGE = ImagePart("data:image/png;base64,AAAA", "low")
RAW_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
USER = Message("user", (TextPart("hi"),))
CLOCK = Tool("clock", "Tell the time.", {"type": "object", "properties": {"zone": {"type": "string"}}})
RAW_CLOCK = {
    "type": "function",
    "function": {"name": "clock", "description": CLOCK.description, "parameters": CLOCK.parameters},
}
SHELL = Tool.of({"type": "custom", "custom": {"name": "shell"}})


def encode(request: Request, *, model: str | None = "m", stream: bool = False) -> Json:
    return json.loads(encode_request(request, model=model, stream=stream))


def messages(*given: Message) -> Json:
    return encode(Request(given))["messages"]


def tool_fields(request: Request) -> Json:
    body = encode(request)
    return {key: body[key] for key in ("tools", "tool_choice", "parallel_tool_calls") if key in body}


def text(role: str, content: str) -> Json:
    return {"role": role, "content": content}


def text_part(content: str) -> Json:
    return {"type": "text", "text": content}


def test_the_whole_body() -> None:
    request = Request(
        (USER,), model="asked", extra={"temperature": 0, "top_k": 3}, response_format={"type": "json_object"}
    )
    assert encode(request) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_object"},
        "temperature": 0,
        "top_k": 3,
        "stream": False,
    }


def test_a_stream_is_always_asked_for_its_usage() -> None:
    body = encode(Request((USER,)), model=None, stream=True)
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert "model" not in body


@pytest.mark.parametrize("stop", ["", [], None])
def test_nulls_and_an_empty_stop_are_left_out(stop: Json) -> None:
    body = encode(Request((USER,), extra={"stop": stop, "seed": None, "logit_bias": {}, "temperature": 0}))
    assert body.keys() == {"model", "messages", "logit_bias", "temperature", "stream"}


def test_a_stop_is_sent() -> None:
    assert encode(Request((USER,), extra={"stop": ["x"]}))["stop"] == ["x"]


@pytest.mark.parametrize(
    "extra", [{"max_completion_tokens": 5}, {"max_tokens": 5}, {"max_tokens": 5, "max_completion_tokens": 9}]
)
def test_the_token_limit_goes_under_the_name_that_all_servers_know(extra: dict[str, Json]) -> None:
    body = encode(Request((USER,), extra=extra))
    assert body["max_tokens"] == 5
    assert "max_completion_tokens" not in body


def test_big_integers_and_half_characters() -> None:
    body = rb'{"messages":[{"role":"user","content":"\ud83d!"}],"seed":18446744073709551617}'
    sent = encode(decode_body(load_body(body)).request)
    assert sent["seed"] == 18446744073709551617
    assert sent["messages"][0]["content"] == "\ufffd!"


def test_what_is_too_deep_to_write_is_the_clients_fault() -> None:
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ClientError, match="cannot be passed on"):
        encode(Request((USER,), extra={"metadata": deep}))


@pytest.mark.parametrize(
    ("message", "raw"),
    [
        (Message("system", (TextPart("a"), TextPart("b"))), text("system", "ab")),
        (Message("user"), text("user", "")),
        (Message("user", (TextPart("a"),), name="Ann"), text("user", "a") | {"name": "Ann"}),
        (
            Message("user", (TextPart("a"), IMAGE)),
            {"role": "user", "content": [{"type": "text", "text": "a"}, RAW_IMAGE]},
        ),
        (
            Message("user", (ImagePart("https://x.test/a.png"),)),
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]},
        ),
        (Message("user", (OtherPart({"type": "file"}),)), {"role": "user", "content": [{"type": "file"}]}),
        (Message("assistant", (TextPart("a"),), reasoning="r"), text("assistant", "a")),
        (
            Message("assistant", calls=(ToolCall("c1", "clock", '{"zone": "UTC"}'),)),
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "clock", "arguments": '{"zone": "UTC"}'},
                    }
                ],
            },
        ),
        (
            Message("tool", results=(ToolResult("c1", (TextPart("a"), TextPart("b")), name="clock"),)),
            {"role": "tool", "tool_call_id": "c1", "content": "ab"},
        ),
        (
            Message("tool", results=(ToolResult("c1", (TextPart("42"),), is_error=True),)),
            {"role": "tool", "tool_call_id": "c1", "content": "Error: 42"},
        ),
    ],
)
def test_messages(message: Message, raw: Json) -> None:
    assert messages(message) == [raw]


def test_templates_take_one_system_message_and_sides_in_turn() -> None:
    call, result = ToolCall("a", "clock"), ToolResult("a", (TextPart("9"),))
    given = (
        Message("system", (TextPart("Be kind."),)),
        Message("system", (TextPart("Be brief."),)),
        Message("user", (TextPart("Time?"),)),
        Message("system", (TextPart("It is late."),)),
        Message("user", (IMAGE,)),
        Message("assistant", (TextPart("A moment."),)),
        Message("assistant", calls=(call,)),
        Message("user", results=(result,)),
        Message("system", (TextPart("Hurry."),)),
    )
    sent = messages(*given)
    assert [raw["role"] for raw in sent] == ["system", "user", "assistant", "tool", "user"]
    assert sent[0]["content"] == "Be kind.\n\nBe brief."
    assert sent[1]["content"] == [text_part("Time?\n\nIt is late."), RAW_IMAGE]
    assert (sent[2]["content"], sent[2]["tool_calls"][0]["id"]) == ("A moment.", "a")
    assert (sent[3]["content"], sent[4]["content"]) == ("9", "Hurry.")


def test_users_with_names_of_their_own_stay_apart() -> None:
    sent = messages(Message("user", (TextPart("a"),), name="Ann"), Message("user", (TextPart("b"),), name="Bo"))
    assert [raw["name"] for raw in sent] == ["Ann", "Bo"]


def test_results_come_before_the_text_of_their_turn() -> None:
    turn = Message("user", (TextPart("be brief"),), results=(ToolResult("a"), ToolResult("b", (TextPart("x"),))))
    assert [(raw["role"], raw["content"]) for raw in messages(turn)] == [
        ("tool", ""),
        ("tool", "x"),
        ("user", "be brief"),
    ]


def test_images_of_results_follow_in_the_next_user_message() -> None:
    result = Message("tool", results=(ToolResult("a", (TextPart("saved"), IMAGE)),))
    other = Message("tool", results=(ToolResult("b"),))
    tools = [
        {"role": "tool", "tool_call_id": "a", "content": "saved"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
    ]
    alone = {"role": "user", "content": [RAW_IMAGE]}
    assert messages(result, other) == [*tools, alone]
    assert messages(result, other, USER) == [
        *tools,
        {"role": "user", "content": [RAW_IMAGE, {"type": "text", "text": "hi"}]},
    ]
    assert messages(result, other, Message("assistant", (TextPart("ok"),)), USER) == [
        *tools,
        alone,
        text("assistant", "ok"),
        text("user", "hi"),
    ]


def test_the_reasoning_behind_calls_goes_on_until_the_user_says_something() -> None:
    called = Message("assistant", (), (ToolCall("a", "clock", "{}"),), reasoning="Which zone?")
    answered = Message("assistant", (TextPart("Noon."),), reasoning="Twelve.")
    result = Message("user", results=(ToolResult("a", (TextPart("12:00"),)),))
    running = messages(USER, called, result)
    assert [turn.get("reasoning_content") for turn in running] == [None, "Which zone?", None]
    assert all("reasoning_content" not in turn for turn in messages(USER, called, result, answered, USER))


def test_tools() -> None:
    extended = Tool("bare", strict=True, extra={"cache_control": {"type": "ephemeral"}})
    assert tool_fields(Request((USER,), tools=(CLOCK, extended))) == {
        "tools": [
            RAW_CLOCK,
            {
                "type": "function",
                "function": {"name": "bare", "parameters": {"type": "object", "properties": {}}, "strict": True},
            },
        ]
    }


def test_a_custom_tool_becomes_a_function_with_one_string() -> None:
    [tool] = tool_fields(Request((USER,), tools=(SHELL,)))["tools"]
    assert tool["type"] == "function"
    assert tool["function"]["parameters"]["required"] == ["input"]


@pytest.mark.parametrize(
    ("choice", "fields"),
    [
        (ToolChoice("none"), {"tool_choice": "none"}),
        (ToolChoice("required"), {"tool_choice": "required"}),
        (ToolChoice("named", "clock"), {"tool_choice": {"type": "function", "function": {"name": "clock"}}}),
        (ToolChoice("required", allowed=frozenset({"clock", "shell"})), {"tool_choice": "required"}),
    ],
)
def test_tool_choices(choice: ToolChoice, fields: Json) -> None:
    sent = tool_fields(Request((USER,), tools=(CLOCK, SHELL), tool_choice=choice))
    assert [tool["function"]["name"] for tool in sent.pop("tools")] == ["clock", "shell"]
    assert sent == fields


def test_only_allowed_tools_are_sent() -> None:
    request = Request((USER,), tools=(CLOCK, SHELL), tool_choice=ToolChoice(allowed=frozenset({"clock"})))
    assert tool_fields(request) == {"tools": [RAW_CLOCK]}


@pytest.mark.parametrize("choice", [ToolChoice("none"), ToolChoice(allowed=frozenset())])
def test_without_tools_nothing_is_said_about_them(choice: ToolChoice) -> None:
    tools = (CLOCK,) if choice.allowed is not None else ()
    assert tool_fields(Request((USER,), tools=tools, tool_choice=choice, parallel=False)) == {}


def test_one_call_only() -> None:
    assert tool_fields(Request((USER,), tools=(CLOCK,), parallel=False))["parallel_tool_calls"] is False

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.errors import ClientError
from proxy.core.history import render_history
from proxy.core.model import ImagePart, Message, TextPart, ToolCall, ToolResult
from proxy.wire.openai_responses import decode_body
from proxy.wire.openai_responses.builtins import CALLS, RESULTS
from proxy.wire.openai_responses.items import OPAQUE, SILENT, History, read_input

PNG = "data:image/png;base64,iVBORw0KGgo="


def read(*items: Any) -> tuple[Message, ...]:
    return read_input(list(items)).messages


def call(call_id: str, name: str = "f", arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **fields}


def output(call_id: str, value: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": value, **fields}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_a_text_is_a_users() -> None:
    assert read_input("hi") == History((Message("user", (TextPart("hi"),)),))


@pytest.mark.parametrize("raw", [None, [], {}, 3])
def test_no_input_is_refused(raw: Any) -> None:
    with pytest.raises(ClientError) as caught:
        read_input(raw)
    assert caught.value.param == "input"


@pytest.mark.parametrize(
    ("role", "read_as"),
    [
        ("user", "user"),
        ("assistant", "assistant"),
        ("system", "system"),
        ("developer", "system"),
        ("critic", "user"),
        (None, "user"),
        ([], "user"),
    ],
)
@pytest.mark.parametrize("kind", [{}, {"type": "message", "id": "msg_1", "status": "completed"}])
def test_messages_with_and_without_a_type(role: Any, read_as: str, kind: dict[str, Any]) -> None:
    (message,) = read(kind | {"role": role, "content": "hi"})
    assert (message.role, message.text) == (read_as, "hi")


def test_a_turn_of_the_assistant_is_one_message() -> None:
    messages = read(
        {"role": "user", "content": "?"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        said("I look."),
        call("a", "f", '{"x": 1}'),
        said("Twice."),
        call("b", "g"),
        output("a", "1"),
        output("b", [{"type": "input_text", "text": "2"}]),
        said("Done."),
    )
    assert messages == (
        Message("user", (TextPart("?"),)),
        Message(
            "assistant",
            (TextPart("I look."), TextPart("\n\n"), TextPart("Twice.")),
            (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", "{}")),
            reasoning="Hm.",
        ),
        Message("tool", results=(ToolResult("a", (TextPart("1"),)),)),
        Message("tool", results=(ToolResult("b", (TextPart("2"),)),)),
        Message("assistant", (TextPart("Done."),)),
    )


@pytest.mark.parametrize(
    ("item", "reasoning"),
    [
        ({"summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]}, "a\n\nb"),
        (
            {"summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "c"}]},
            "c",
        ),
        ({"summary": [{"type": "summary_text", "text": "s"}], "content": None}, "s"),
        ({"summary": [], "encrypted_content": "gAAAA"}, None),
        ({}, None),
    ],
)
def test_reasoning_belongs_to_the_turn_that_follows(item: dict[str, Any], reasoning: str | None) -> None:
    (message,) = read({"type": "reasoning", **item}, said("x"))
    assert message.reasoning == reasoning


def test_a_turn_of_reasoning_alone_is_left_out() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]}
    assert [
        message.role for message in read({"role": "user", "content": "a"}, thought, {"role": "user", "content": "b"})
    ] == ["user", "user"]


def test_names_in_a_namespace_are_those_that_the_model_sees() -> None:
    (message,) = read(
        call("a", "find", namespace="crm"),
        {"type": "custom_tool_call", "call_id": "b", "name": "note", "namespace": "crm", "input": 'say "x"'},
    )
    assert message.calls == (
        ToolCall("a", "crm__find", "{}"),
        ToolCall("b", "crm__note", '{"input":"say \\"x\\""}', custom=True),
    )


@pytest.mark.parametrize(("arguments", "text"), [('{"a"', '{"a"'), ({"a": 1}, '{"a":1}'), (None, "{}"), ("", "{}")])
def test_arguments_are_kept_as_they_were_replayed(arguments: Any, text: str) -> None:
    assert read(call("a", arguments=arguments))[0].calls[0].arguments == text


@pytest.mark.parametrize(
    ("item", "result"),
    [
        (output("a", "x"), ToolResult("a", (TextPart("x"),))),
        (output("a", ""), ToolResult("a")),
        (output("a", None), ToolResult("a")),
        (output("a", "x", name="find", namespace="crm"), ToolResult("a", (TextPart("x"),), "crm__find")),
        (output("a", [{"type": "input_image", "image_url": PNG}]), ToolResult("a", (ImagePart(PNG),))),
        (output("a", {"content": "no", "success": False}), ToolResult("a", (TextPart("no"),), is_error=True)),
        (output("a", {"b": 1}), ToolResult("a", (TextPart('{"b":1}'),))),
        ({"type": "custom_tool_call_output", "call_id": "a", "output": "x"}, ToolResult("a", (TextPart("x"),))),
        ({"type": "function_call_output", "output": "x"}, ToolResult("", (TextPart("x"),))),
        (
            {
                "type": "computer_call_output",
                "call_id": "a",
                "output": {"type": "computer_screenshot", "image_url": PNG},
            },
            ToolResult("a", (ImagePart(PNG),)),
        ),
        (
            {"type": "local_shell_call_output", "id": "a", "output": '{"output": "x"}'},
            ToolResult("a", (TextPart('{"output": "x"}'),)),
        ),
        (
            {"type": "shell_call_output", "call_id": "a", "output": [{"stdout": "x", "stderr": ""}]},
            ToolResult("a", (TextPart('[{"stdout":"x","stderr":""}]'),)),
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "a", "status": "failed", "output": "no such file"},
            ToolResult("a", (TextPart("no such file"),), is_error=True),
        ),
    ],
)
def test_results(item: dict[str, Any], result: ToolResult) -> None:
    assert read(item) == (Message("tool", results=(result,)),)


def test_calls_of_tools_with_a_type_are_calls() -> None:
    (message,) = read(
        {"type": "local_shell_call", "call_id": "a", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        {"type": "apply_patch_call", "call_id": "b", "operation": {"type": "delete_file", "path": "x"}},
    )
    assert message.calls == (
        ToolCall("a", "local_shell", '{"command":["ls"]}'),
        ToolCall("b", "apply_patch", '{"type":"delete_file","path":"x"}'),
    )


def test_tools_that_were_found_can_be_offered() -> None:
    inner = {"type": "function", "name": "send"}
    space = {"type": "namespace", "name": "mail", "tools": [inner]}
    history = read_input(
        [
            {"type": "tool_search_call", "call_id": "a", "execution": "client", "arguments": {"query": "mail"}},
            {"type": "tool_search_output", "call_id": "a", "execution": "client", "tools": [space, inner]},
            {"type": "tool_search_output", "call_id": "b", "tools": []},
            {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "extra"}, "odd"]},
        ]
    )
    assert history.messages[0].calls == (ToolCall("a", "tool_search", '{"query":"mail"}'),)
    assert [message.results[0].content for message in history.messages[1:]] == [
        (TextPart("Found: mail__send, send."),),
        (TextPart("Nothing was found."),),
    ]
    assert history.tools == (space, inner, {"type": "function", "name": "extra"})


@pytest.mark.parametrize(
    ("item", "role", "text"),
    [
        (
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "x"},
            },
            "assistant",
            '[web_search_call {"action":{"type":"search","query":"x"}}]',
        ),
        (
            {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "server_label": "s", "output": "42"},
            "assistant",
            '[mcp_call {"name":"f","arguments":"{}","server_label":"s","output":"42"}]',
        ),
        (
            {"type": "image_generation_call", "id": "i", "result": "iVBORw0KGgo="},
            "assistant",
            "[image_generation_call]",
        ),
        (
            {"type": "code_interpreter_call", "code": "1", "outputs": [{"type": "image", "url": PNG}]},
            "assistant",
            '[code_interpreter_call {"code":"1","outputs":[{"type":"image","url":"[data left out]"}]}]',
        ),
        ({"type": "mcp_approval_response", "approve": True}, "user", '[mcp_approval_response {"approve":true}]'),
        ({"type": "agent_message", "content": [{"type": "input_text", "text": "hi"}]}, "user", "hi"),
        ({"type": "brand_new", "role": "assistant", "content": "hi"}, "assistant", "hi"),
    ],
)
def test_items_of_other_types_are_told_in_words(item: dict[str, Any], role: str, text: str) -> None:
    (message,) = read(item)
    assert (message.role, message.text) == (role, text)


@pytest.mark.parametrize("kind", sorted(SILENT))
def test_items_that_say_nothing(kind: str) -> None:
    assert read({"type": kind, "tools": [{"name": "x"}]}) == ()


@pytest.mark.parametrize("kind", sorted(OPAQUE))
def test_what_only_openai_can_read_is_refused(kind: str) -> None:
    with pytest.raises(ClientError, match=kind) as caught:
        read({"role": "user", "content": "x"}, {"type": kind, "encrypted_content": "gAAAA"})
    assert caught.value.param == "input[1]"


@pytest.mark.parametrize("since", [[], [output("a", "x")], [{"role": "user", "content": "x"}]])
@pytest.mark.parametrize("answer", [said("I see."), call("a"), {"role": "assistant", "content": "I see."}])
def test_a_file_elsewhere_is_refused_only_in_what_is_to_be_answered(since: list[Any], answer: dict[str, Any]) -> None:
    picture = {"role": "user", "content": [{"type": "input_image", "file_id": "file_1"}]}
    assert read(picture, answer, *since)[0].text == "[image left out]"
    with pytest.raises(ClientError):
        read(answer, *since, picture)


@pytest.mark.parametrize("reference", [{"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}])
def test_a_reference_is_its_item_if_that_is_known(reference: dict[str, Any]) -> None:
    known = {"msg_1": said("Hello.")}
    assert read_input([reference], known.get).messages[0].text == "Hello."
    with pytest.raises(ClientError, match="store: false") as caught:
        read_input([reference])
    assert caught.value.param == "input[0]"


@pytest.mark.parametrize("item", ["x", None, 3, [], {}, {"type": 7}, {"type": "item_reference"}])
def test_what_is_no_item_is_named(item: Any) -> None:
    with pytest.raises(ClientError) as caught:
        read({"role": "user", "content": "x"}, item)
    assert caught.value.param == "input[1]"


KINDS = sorted({*CALLS, *RESULTS, *SILENT, "message", "reasoning", "function_call", "function_call_output", "new"})
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "text", "content"]), inner),
    max_leaves=4,
)
FIELDS = ["id", "call_id", "role", "content", "summary", "name", "arguments", "output", "action", "tools", "namespace"]


@given(st.lists(st.fixed_dictionaries({"type": st.sampled_from(KINDS) | ODD}, optional=dict.fromkeys(FIELDS, ODD))))
def test_nothing_in_the_past_is_an_exception_of_ours(items: list[dict[str, Any]]) -> None:
    try:
        request = decode_body({"input": items}).request
    except ClientError:
        return
    render_history(request.messages)


@pytest.mark.parametrize(
    ("odd", "shown"), [(None, []), ({}, []), ("hi", ["hi"]), (5, ["5"]), ({"a": 1}, ['[item {"a":1}]'])]
)
def test_what_is_no_item_is_refused_in_the_turn_to_be_answered_alone(odd: Any, shown: list[str]) -> None:
    user = {"role": "user", "content": "b"}
    texts = [message.text for message in read(odd, said("a"), user)]
    assert texts in ([*shown, "a", "b"], ["\n\n".join([*shown, "a"]), "b"])
    with pytest.raises(ClientError) as caught:
        read(said("a"), user, odd)
    assert caught.value.param == "input[2]"

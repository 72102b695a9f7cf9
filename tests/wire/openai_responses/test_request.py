from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from proxy.core.errors import ClientError
from proxy.core.model import Request, TextPart
from proxy.wire.bodies import load_body
from proxy.wire.openai_responses import decode_body
from proxy.wire.openai_responses.request import STAYS_HERE

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def decode(**fields: Any) -> Request:
    return decode_body({"model": "m", "input": "hi", **fields}).request


def test_the_smallest_request() -> None:
    request = decode_body({"input": "hi"}).request
    assert (request.model, request.stream, request.parallel, request.tools) == (None, False, True, ())
    assert request.messages[0].content == (TextPart("hi"),)
    assert dict(request.extra) == {}


def test_instructions_come_first_then_what_name_spaces_are_about() -> None:
    space = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [{"name": "find"}]}
    request = decode(instructions="Be brief.", tools=[space], input=[{"role": "developer", "content": "Now."}])
    assert [(message.role, message.text) for message in request.messages] == [
        ("system", "Be brief."),
        ("system", "About the tools whose names begin with crm__: Customers."),
        ("system", "Now."),
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"),
        ("conversation", "conv_1"),
        ("conversation", {"id": "conv_1"}),
        ("prompt", {"id": "pmpt_1"}),
        ("background", True),
    ],
)
def test_what_needs_state_is_refused_with_the_mend(field: str, value: Any) -> None:
    with pytest.raises(ClientError, match=r"No state is kept .*(send|Send|Leave)") as caught:
        decode(**{field: value})
    assert (caught.value.param, caught.value.status) == (field, 400)


def test_state_that_is_not_asked_for_is_fine() -> None:
    decode(previous_response_id=None, conversation=None, prompt=None, background=False, store=True)


def test_sampling_goes_on_under_the_names_of_chat_completions() -> None:
    request = decode(
        max_output_tokens=9, temperature=0.5, top_p=None, top_k=3, reasoning={"effort": "low", "summary": "auto"}
    )
    assert dict(request.extra) == {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": None,
        "top_k": 3,
        "reasoning_effort": "low",
    }
    assert "reasoning_effort" not in decode(reasoning={"effort": None}).extra


def test_no_other_field_of_the_api_reaches_a_backend() -> None:
    sent_on = {"temperature", "top_p"}
    assert set(ResponseCreateParamsNonStreaming.__annotations__) - sent_on == STAYS_HERE - {"client_metadata"}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (None, None),
        ({}, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "json_object"}),
        (
            {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True, "description": None},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
        ),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        ),
    ],
)
def test_the_format_of_the_answer(form: Any, expected: Any) -> None:
    assert decode(text={"format": form, "verbosity": "low"}).response_format == expected
    assert decode(text=None).response_format is None


def test_one_call_at_a_time() -> None:
    assert not decode(parallel_tool_calls=False).parallel
    assert decode(parallel_tool_calls=None).parallel


def test_hosted_tools_are_reported() -> None:
    asked = decode_body({"input": "hi", "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}]})
    assert asked.dropped_tools == ("web_search",)
    assert list(asked.known) == ["f"]


def test_tools_that_the_history_brings_are_offered() -> None:
    found = {"type": "tool_search_output", "call_id": "a", "tools": [{"type": "function", "name": "send"}]}
    request = decode(input=[found, {"role": "user", "content": "x"}])
    assert [tool.name for tool in request.tools] == ["send"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": None}, "input"),
        ({"model": 3}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"instructions": ["x"]}, "instructions"),
        ({"max_output_tokens": "9"}, "max_output_tokens"),
        ({"reasoning": "high"}, "reasoning"),
        ({"text": "x"}, "text"),
        ({"text": {"format": "json"}}, "format"),
        ({"tool_choice": "required"}, "tool_choice"),
    ],
)
def test_what_is_of_the_wrong_type_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ClientError) as caught:
        decode(**fields)
    assert caught.value.param == param


@pytest.mark.parametrize("body", [b"", b"[]", b'{"input"', b"\xff"])
def test_a_body_that_is_no_object(body: bytes) -> None:
    with pytest.raises(ClientError):
        decode_body(load_body(body))


def test_depth_is_no_crash() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    for item in (
        '{"type": "function_call", "arguments": %s}',
        '{"type": "new", "x": %s}',
        '{"role": "user", "content": %s}',
    ):
        with pytest.raises(ClientError):
            decode_body(load_body(('{"input": [' + item % deep + "]}").encode()))
    nested: Any = "x"
    for _ in range(5_000):
        nested = [nested]
    with pytest.raises(ClientError):
        decode_body({"input": [{"type": "new", "x": nested}]})

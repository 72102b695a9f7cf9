from __future__ import annotations

import json

import pytest

from proxy.core.collect import Reply
from proxy.core.errors import ClientError
from proxy.core.model import ToolCall
from proxy.surfaces.chat import Chat

MESSAGES = [{"role": "user", "content": "hi"}]


def chat(**fields: object) -> Chat:
    return Chat(json.dumps({"messages": MESSAGES, **fields}).encode())


def test_what_a_native_backend_needs_is_known_without_reading_the_rest() -> None:
    asked = Chat(b'{"model": "m", "stream": true, "messages": 3}')
    assert (asked.model, asked.stream) == ("m", True)
    with pytest.raises(ClientError):
        asked.request()


@pytest.mark.parametrize("model", [None, "", 3])
def test_a_model_that_is_no_name_is_none(model: object) -> None:
    assert chat(model=model).model is None


def test_answers_carry_the_name_that_was_asked_for_and_ids_of_their_own() -> None:
    answers = [json.loads(asked.encode(Reply("Hi.", finish="stop"))) for asked in (chat(model="m"), chat())]
    assert [answer["model"] for answer in answers] == ["m", "default"]
    assert answers[0]["id"] != answers[1]["id"]
    assert all(answer["id"].startswith("chatcmpl-") for answer in answers)


def test_an_older_request_is_answered_in_the_older_shape() -> None:
    reply = Reply(calls=(ToolCall("a", "f", "{}"),), finish="tool_calls")
    message = json.loads(chat(functions=[{"name": "f"}]).encode(reply))["choices"][0]["message"]
    assert message["function_call"] == {"name": "f", "arguments": "{}"}
    assert "tool_calls" not in message


def test_a_stream_says_the_same_in_every_chunk() -> None:
    encoder = chat(model="m", stream=True).encoder()
    first, second = json.loads(encoder.start()[6:]), json.loads(encoder.start()[6:])
    assert first == second


def test_hosted_tools_that_were_left_out_are_named_in_a_header_that_can_be_sent() -> None:
    function = {"type": "function", "function": {"name": "f"}}
    assert chat(tools=[function]).headers() == []
    odd = chat(tools=[function, {"type": "web_search"}, {"type": "ä\r\nx: 1"}])
    ((name, value),) = odd.headers()
    assert name == "x-toolgraft-dropped-tools"
    assert value == r"web_search, \xe4\r\nx: 1"


@pytest.mark.parametrize(("logprobs", "headers"), [(True, [("x-toolgraft-ignored", "logprobs")]), (False, [])])
def test_probabilities_that_the_answer_lacks_are_named(logprobs: bool, headers: list[tuple[str, str]]) -> None:
    assert chat(logprobs=logprobs, top_logprobs=2).headers() == headers

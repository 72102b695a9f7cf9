from __future__ import annotations

import json

import pytest

from proxy.core.collect import Reply
from proxy.core.dispatch import XmlDispatcher
from proxy.core.errors import ClientError
from proxy.surfaces.messages import Messages

TURNS = [{"role": "user", "content": "hi, how are you?"}]


def messages(**fields: object) -> Messages:
    return Messages(json.dumps({"messages": TURNS, **fields}).encode())


def test_a_backend_gets_it_in_its_own_format() -> None:
    asked = messages(model="m", stream=True)
    assert (asked.body, asked.model, asked.stream) == (None, "m", True)
    assert asked.request().messages[0].text == "hi, how are you?"


def test_mistakes_are_told_when_it_is_read() -> None:
    with pytest.raises(ClientError):
        Messages(b"[]")
    asked = messages(tools=3)
    with pytest.raises(ClientError):
        asked.request()


@pytest.mark.parametrize("model", [None, "", 3])
def test_a_model_that_is_no_name_is_none(model: object) -> None:
    assert messages(model=model).model is None


def test_answers_carry_the_name_that_was_asked_for_and_ids_of_their_own() -> None:
    answers = [json.loads(asked.encode(Reply("Hi.", finish="stop"))) for asked in (messages(model="m"), messages())]
    assert [answer["model"] for answer in answers] == ["m", "default"]
    assert answers[0]["id"] != answers[1]["id"]
    assert all(answer["id"].startswith("msg_") for answer in answers)


def test_stop_sequences_are_known_to_the_answer() -> None:
    reply = Reply("Hi.", finish="stop", stop_sequence="END")
    assert json.loads(messages(stop_sequences=["END"]).encode(reply))["stop_reason"] == "stop_sequence"


def test_a_stream_begins_with_an_estimate_of_the_prompt() -> None:
    start = messages(model="m", stream=True).encoder().start()
    data = json.loads(start.partition(b"data: ")[2])["message"]
    assert (data["model"], data["usage"]["input_tokens"]) == ("m", 4)


def test_hosted_tools_that_were_left_out_are_named_in_a_header() -> None:
    tool = {"name": "f", "input_schema": {}}
    assert messages(tools=[tool]).headers() == []
    assert messages(tools=[tool, {"type": "web_search_20250305"}, {"type": "ä\r\nx: 1"}]).headers() == [
        ("x-toolgraft-dropped-tools", r"web_search_20250305, \xe4\r\nx: 1")
    ]


def test_a_call_with_a_number_of_any_length_is_read_again() -> None:
    digits = "7" * 5000
    call = f'{{"type":"tool_use","id":"a","name":"pay","input":{{"cents":{digits}}}}}'
    body = f'{{"messages":[{{"role":"assistant","content":[{call}]}},{{"role":"user","content":"again"}}]}}'
    request = Messages(body.encode()).request()
    assert request.messages[0].calls[0].arguments == f'{{"cents":{digits}}}'
    assert digits in str(XmlDispatcher().prepare(request).messages)

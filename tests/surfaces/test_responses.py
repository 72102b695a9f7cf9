from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.core.collect import Reply
from proxy.core.errors import ClientError, UpstreamError
from proxy.core.events import Finish, TextDelta
from proxy.surfaces.base import MOST_NAMED
from proxy.surfaces.memory import Memory
from proxy.surfaces.responses import Responses
from tests.support.responses import final, response


def asked(memory: Memory | None = None, **fields: Any) -> Responses:
    return Responses(json.dumps({"input": "hi", **fields}).encode(), memory)


def test_what_a_backend_needs_is_known_without_reading_the_rest() -> None:
    surface = Responses(b'{"model": "m", "stream": true, "input": 3}')
    assert (surface.model, surface.stream, surface.body) == ("m", True, None)
    with pytest.raises(ClientError):
        surface.request()


def test_answers_carry_the_name_that_was_asked_for_and_ids_of_their_own() -> None:
    answers = [response(surface.encode(Reply("Hi.", finish="stop"))) for surface in (asked(model="m"), asked(model=""))]
    assert [answer.model for answer in answers] == ["m", "default"]
    assert answers[0].id != answers[1].id
    assert answers[0].output[0].id != answers[1].output[0].id
    assert answers[0].created_at > 1_700_000_000


def test_a_stream_of_its_own() -> None:
    encoder = asked(model="m", stream=True).encoder()
    data = encoder.start() + encoder.encode([TextDelta("Hi."), Finish("stop")]) + encoder.done()
    assert final(data)["model"] == "m"


def test_hosted_tools_that_were_left_out_are_named_in_a_header_that_can_be_sent() -> None:
    assert asked().headers() == []
    ((name, value),) = asked(tools=[{"type": "web_search"}, {"type": "ä\r\nx: 1"}]).headers()
    assert name == "x-toolgraft-dropped-tools"
    assert value == r"web_search, \xe4\r\nx: 1"
    ((_, value),) = asked(tools=[{"type": "x" * 5000}]).headers()
    assert len(value) == MOST_NAMED


def test_an_error_before_anything_was_said() -> None:
    status, _, body = Responses.shape.encode_error(UpstreamError("Gone.", status=503))
    assert (status, json.loads(body)["error"]["message"]) == (503, "Gone.")
    assert final(Responses.shape.stream_error(UpstreamError("Gone.")))["error"]["message"] == "Gone."


def test_items_of_answers_can_be_referred_to_unless_the_client_says_not_to_store() -> None:
    memory = Memory()
    kept = response(asked(memory).encode(Reply("Hello.", finish="stop")))
    other = response(asked(memory, store=False).encode(Reply("Bye.", finish="stop")))
    request = asked(memory, input=[{"type": "item_reference", "id": kept.output[0].id}]).request()
    assert (request.messages[0].role, request.messages[0].text) == ("assistant", "Hello.")
    with pytest.raises(ClientError, match="not kept"):
        asked(memory, input=[{"type": "item_reference", "id": other.output[0].id}]).request()
    encoder = asked(memory, stream=True).encoder()
    data = encoder.start() + encoder.encode([TextDelta("Again."), Finish("stop")]) + encoder.done()
    reference = {"type": "item_reference", "id": final(data)["output"][0]["id"]}
    assert asked(memory, input=[reference]).request().messages[0].text == "Again."

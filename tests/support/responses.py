"""What every Responses stream must hold to, checked event by event and against the SDK's own types."""

from __future__ import annotations

import json
from typing import Any, get_args

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

EVENTS: dict[str, type[BaseModel]] = {
    get_args(model.model_fields["type"].annotation)[0]: model
    for model in get_args(get_args(ResponseStreamEvent)[0])
    if model.model_fields["type"].annotation is not str
}
EXTRA = {
    "store",  # of a response: in every answer of OpenAI's, but not in the SDK's type
    "status",  # of a custom call: codex reads it
    "name",  # of function_call_arguments.done: in the types of some versions of the SDK
}
"""Members that the SDK's types do not have."""

LAST = ("response.completed", "response.incomplete", "response.failed")


def response(body: bytes | dict[str, Any]) -> Response:
    """A ``response`` object that has just the members of the type."""
    raw = json.loads(body) if isinstance(body, bytes) else body
    checked = Response.model_validate(raw, strict=True)
    _no_extra(checked)
    return checked


def events(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream, each found to be of its type."""
    found = []
    for block in data.decode().split("\n\n"):
        if not block or block.startswith(":"):
            continue
        name, _, rest = block.removeprefix("event: ").partition("\ndata: ")
        event = json.loads(rest)
        assert event["type"] == name
        _no_extra(EVENTS[name].model_validate(event, strict=True))
        found.append(event)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def final(data: bytes) -> dict[str, Any]:
    """The response that ends a stream in which every item was added, filled and done in order, as it says."""
    stream = events(data)
    assert [event["type"] for event in stream[:2]] == ["response.created", "response.in_progress"]
    assert [event["type"] for event in stream if event["type"] in LAST] == [stream[-1]["type"]]
    last: dict[str, Any] = stream[-1]["response"]
    assert last["status"] == stream[-1]["type"].removeprefix("response.")
    assert {event["response"]["id"] for event in (stream[0], stream[1], stream[-1])} == {last["id"]}
    done: list[dict[str, Any]] = []
    added: dict[str, Any] | None = None
    text = ""
    for event in stream[2:-1]:
        kind = event["type"].removeprefix("response.")
        assert event["output_index"] == len(done)
        if kind == "output_item.added":
            assert added is None
            added, text = event["item"], ""
            continue
        assert added is not None
        if kind == "output_item.done":
            item = event["item"]
            assert (item["id"], item["type"]) == (added["id"], added["type"])
            done.append(item)
            added = None
            continue
        assert event["item_id"] == added["id"]
        if kind.endswith("part.added"):
            text = ""
        elif kind.endswith(".delta"):
            text += event["delta"]
        elif kind.endswith(("arguments.done", "input.done", "text.done", "refusal.done")):
            whole = next(event[key] for key in ("arguments", "input", "text", "refusal") if key in event)
            assert text == whole
        else:
            assert kind.endswith("part.done")
            assert text in event["part"].values()
    if last["status"] == "completed":
        assert added is None
    assert last["output"] == done
    return last


def _no_extra(value: Any) -> None:
    if isinstance(value, BaseModel):
        assert not set(value.model_extra or {}) - EXTRA, value
        for name in type(value).model_fields:
            _no_extra(getattr(value, name))
    elif isinstance(value, list):
        for inner in value:
            _no_extra(inner)

"""What a client got, on any surface: an answer, or an error; whatever else it may be is a fault of the proxy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.chaos.upstream import Outcome

TOOL = {"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}


@dataclass(frozen=True, slots=True)
class Got:
    """``text`` and ``calls`` (names and arguments) are as far as they came."""

    outcome: Outcome
    text: str
    calls: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Surface:
    path: str
    body: Callable[[str, bool, bool], dict[str, Any]]
    whole: Callable[[Mapping[str, Any]], Got]
    streamed: Callable[[list[tuple[str, Any]]], Got]
    is_error: Callable[[Any], bool]

    def read(self, answer: httpx2.Response) -> Got:
        """Raises ``AssertionError`` for what is neither an answer nor an error."""
        assert answer.headers["x-request-id"]
        if "event-stream" in answer.headers.get("content-type", ""):
            assert answer.status_code == 200
            return self.streamed(frames(answer.content))
        assert answer.headers["content-type"] == "application/json", answer.headers
        payload = answer.json()
        if answer.status_code == 200:
            return self.whole(payload)
        assert 400 <= answer.status_code < 600
        assert self.is_error(payload), payload
        return Got("error", "", ())


def frames(raw: bytes) -> list[tuple[str, Any]]:
    """The events of a stream: their names and data, which is JSON but for ``[DONE]``."""
    text = raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    assert text.endswith("\n\n"), text[-200:]
    found = []
    for block in text.split("\n\n"):
        lines = [line.partition(":") for line in block.split("\n") if line and not line.startswith(":")]
        fields = {name: value.removeprefix(" ") for name, _, value in lines}
        if "data" in fields:
            found.append((fields.get("event", ""), fields["data"]))
    return [(name, data if data == "[DONE]" else json.loads(data)) for name, data in found]


def _of_openai(payload: Any) -> bool:
    error = payload.get("error")
    return isinstance(error, dict) and isinstance(error.get("message"), str) and bool(error["message"])


def _chat_body(model: str, stream: bool, tools: bool) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    return {**asked, "tools": [{"type": "function", "function": TOOL}]} if tools else asked


def _calls(entries: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((each["function"]["name"], json.loads(each["function"]["arguments"])) for each in entries or ())


def _chat(payload: Mapping[str, Any]) -> Got:
    try:
        message = dict(payload["choices"][0]["message"])
    except (TypeError, KeyError, IndexError):
        return Got("answer", "", ())  # a native backend's own, passed on as it came
    calls = message.get("tool_calls")
    return Got("answer", str(message.get("content") or ""), _calls(calls) if isinstance(calls, list) else ())


def _chat_stream(events: list[tuple[str, Any]]) -> Got:
    *before, (_, last) = events
    chunks = [data for _, data in before if data != "[DONE]"]
    errors = [data for data in [*chunks, last] if isinstance(data, dict) and data.get("error")]
    choices = [
        each
        for data in chunks
        if isinstance(data, dict)
        for each in data.get("choices") or []
        if isinstance(each, dict)
    ]
    deltas = [each["delta"] for each in choices if isinstance(each.get("delta"), dict)]
    text = "".join([delta["content"] for delta in deltas if isinstance(delta.get("content"), str)])
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for part in delta.get("tool_calls") or () if isinstance(delta.get("tool_calls"), list) else ():
            call = calls.setdefault(part.get("index", 0), ["", ""])
            call[0] += part.get("function", {}).get("name") or ""
            call[1] += part.get("function", {}).get("arguments") or ""
    if errors:
        return Got("error", text, ())
    ended = last == "[DONE]" or any(each.get("finish_reason") for each in [*choices, *last.get("choices", [])])
    assert ended, last
    return Got(
        "answer", text, tuple((name, json.loads(arguments or "{}")) for name, arguments in calls.values() if name)
    )


def _messages_body(model: str, stream: bool, tools: bool) -> dict[str, Any]:
    asked = {**_chat_body(model, stream, False), "max_tokens": 100}
    tool = {"name": "f", "description": "F.", "input_schema": TOOL["parameters"]}
    return {**asked, "tools": [tool]} if tools else asked


def _messages(payload: Mapping[str, Any]) -> Got:
    assert payload["type"] == "message"
    blocks = payload["content"]
    text = "".join([block["text"] for block in blocks if block["type"] == "text"])
    return Got("answer", text, tuple((each["name"], each["input"]) for each in blocks if each["type"] == "tool_use"))


def _messages_stream(events: list[tuple[str, Any]]) -> Got:
    names = [name for name, _ in events]
    assert names == [data["type"] for _, data in events]
    text = ""
    calls: list[list[str]] = []
    for _, data in events:
        if data["type"] == "content_block_start" and data["content_block"]["type"] == "tool_use":
            calls.append([data["content_block"]["name"], ""])
        elif data["type"] == "content_block_delta":
            text += data["delta"].get("text", "")
            if "partial_json" in data["delta"]:
                calls[-1][1] += data["delta"]["partial_json"]
    if names[-1] == "error":
        assert "message_stop" not in names
        assert isinstance(events[-1][1]["error"]["message"], str)
        return Got("error", text, ())
    assert names[-1] == "message_stop"
    return Got("answer", text, tuple((name, json.loads(arguments or "{}")) for name, arguments in calls))


def _responses_body(model: str, stream: bool, tools: bool) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": model, "stream": stream, "input": "hi"}
    return {**asked, "tools": [{"type": "function", **TOOL}]} if tools else asked


def _response(payload: Mapping[str, Any]) -> Got:
    assert payload["status"] in ("completed", "incomplete")
    items = payload["output"]
    text = "".join([part.get("text", "") for item in items if item["type"] == "message" for part in item["content"]])
    calls = [item for item in items if item["type"] == "function_call"]
    return Got("answer", text, tuple((each["name"], json.loads(each["arguments"])) for each in calls))


def _responses_stream(events: list[tuple[str, Any]]) -> Got:
    assert [name for name, _ in events] == [data["type"] for _, data in events]
    text = "".join([data["delta"] for name, data in events if name == "response.output_text.delta"])
    name, last = events[-1]
    if name in ("response.failed", "error"):
        assert not any(name == "response.completed" for name, _ in events)
        return Got("error", text, ())
    assert name in ("response.completed", "response.incomplete")
    return _response(last["response"])


SURFACES = {
    "chat": Surface("/v1/chat/completions", _chat_body, _chat, _chat_stream, _of_openai),
    "messages": Surface(
        "/v1/messages",
        _messages_body,
        _messages,
        _messages_stream,
        lambda payload: payload["type"] == "error" and isinstance(payload["error"]["message"], str),
    ),
    "responses": Surface("/v1/responses", _responses_body, _response, _responses_stream, _of_openai),
}

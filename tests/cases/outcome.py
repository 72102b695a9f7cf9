"""What the proxy answered over HTTP, in the terms in which cases describe it, and how the two are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.backend import Recorded


@dataclass(slots=True)
class Outcome:
    """An answer, whole or gathered from a stream. ``seen`` is what the backend was asked; ``chunks`` is a stream's."""

    status: int
    headers: Mapping[str, str]
    raw: bytes
    seen: list[Recorded]
    calls: list[dict[str, Any]] = field(default_factory=list)
    content: str = ""
    reasoning: str = ""
    finishes: list[str] = field(default_factory=list)
    error: dict[str, Any] | None = None
    chunks: list[dict[str, Any]] = field(default_factory=list)
    fragments: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], raw: bytes, seen: list[Recorded]) -> Outcome:
        outcome = cls(status, headers, raw, seen)
        if "event-stream" in headers.get("content-type", ""):
            outcome._read_stream()
        else:
            outcome._read_whole(json.loads(raw))
        return outcome

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.seen[-1].json["messages"]
        return messages

    @property
    def prompt(self) -> str:
        return "\n".join(str(message["content"]) for message in self.messages)

    def _read_whole(self, body: Any) -> None:
        self.error = body.get("error")
        for choice in body.get("choices", ()):
            message = choice["message"]
            self.content = message["content"] or ""
            self.reasoning = message.get("reasoning_content", "")
            self.finishes = [choice["finish_reason"]]
            self.calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]
            if "function_call" in message:
                self.calls = [{"id": "", **message["function_call"]}]

    def _read_stream(self) -> None:
        for event in self.raw.decode().split("\n\n"):
            data = event.removeprefix("data: ")
            if data == "[DONE]":
                self.done = True
            elif event.startswith("data: "):
                self._read_chunk(json.loads(data))

    def _read_chunk(self, chunk: dict[str, Any]) -> None:
        if "error" in chunk:
            self.error = chunk["error"]
            return
        self.chunks.append(chunk)
        for choice in chunk["choices"]:
            delta = choice["delta"]
            self.content += delta.get("content") or ""
            self.reasoning += delta.get("reasoning_content") or ""
            self.finishes += [choice["finish_reason"]] if choice.get("finish_reason") else []
            for call in delta.get("tool_calls", ()):
                self.fragments.append(call)
                if call["index"] == len(self.calls):
                    self.calls.append({"id": call["id"], "name": call["function"]["name"], "arguments": ""})
                self.calls[call["index"]]["arguments"] += call["function"].get("arguments", "")


def faults(expected: Mapping[str, Any], got: Outcome) -> list[str]:
    """What of ``expected`` is not so. Raises ``KeyError`` for a condition that is not known."""
    return [
        f"{key}: expected {wanted!r}"
        for key, wanted in expected.items()
        if key not in UNCHECKED and not CHECKS[key](wanted, got)
    ]


UNCHECKED = frozenset({"note", "response", "time_ms_below", "within_seconds"})
"""Words for people, and times, which a test on a busy machine must not look at."""


def _loose(wanted: Any, text: str) -> bool:
    """Compared after trimming; ``{"contains": x}`` and ``{"any": true}`` are looser."""
    if isinstance(wanted, dict):
        return bool(wanted.get("any")) or wanted.get("contains", "") in text
    return (wanted or "").strip() == text.strip()


def _calls(wanted: Sequence[Mapping[str, Any]], got: Outcome) -> bool:
    return len(wanted) == len(got.calls) and all(map(_call, wanted, got.calls))


def _call(wanted: Mapping[str, Any], got: Mapping[str, Any]) -> bool:
    arguments = got["arguments"]
    return (
        wanted["name"] == got["name"]
        and ("arguments" not in wanted or _same_json(wanted["arguments"], json.loads(arguments)))
        and wanted.get("arguments_json", arguments) == arguments
        and wanted.get("arguments_json_contains", "") in arguments
    )


def _same_json(left: Any, right: Any) -> bool:
    """Equal, and ``1``, ``1.0`` and ``true`` are not."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def _invariants(wanted: Mapping[str, bool], got: Outcome) -> bool:
    return all(INVARIANTS[name](got) for name, holds in wanted.items() if holds)


def _says(wanted: Any, got: Outcome) -> bool:
    words = [wanted] if isinstance(wanted, str) else wanted
    return got.error is not None and all(word in got.error["message"] for word in words)


def _has_role_once(got: Outcome) -> bool:
    roles = [
        choice["delta"]["role"] for chunk in got.chunks for choice in chunk["choices"] if "role" in choice["delta"]
    ]
    return roles == ["assistant"] and "role" in got.chunks[0]["choices"][0]["delta"]


def _names_come_first_only(got: Outcome) -> bool:
    starts = [fragment for fragment in got.fragments if "id" in fragment or "name" in fragment["function"]]
    return len(starts) == len(got.calls) and all("name" in each["function"] and each["id"] for each in starts)


INVARIANTS: Mapping[str, Callable[[Outcome], bool]] = {
    "first_delta_has_role": _has_role_once,
    "ids_unique": lambda got: len({call["id"] for call in got.calls}) == len(got.calls),
    "index_sequence_from_0": lambda got: (
        sorted({fragment["index"] for fragment in got.fragments}) == list(range(len(got.calls)))
    ),
    "name_and_id_only_in_first_fragment": _names_come_first_only,
    "arguments_concatenate_to_valid_json": lambda got: all(
        isinstance(json.loads(call["arguments"]), dict) for call in got.calls
    ),
    "exactly_one_finish": lambda got: len(got.finishes) == 1,
    "ends_with_done": lambda got: got.done and got.raw.endswith(b"data: [DONE]\n\n"),
}


def _backend_messages(wanted: Mapping[str, Any], got: Outcome) -> bool:
    return all(MESSAGE_CHECKS[key](value, got.messages) for key, value in wanted.items())


Messages = list[dict[str, Any]]


def _all_in(words: Sequence[str], text: str) -> bool:
    return all(word in text for word in words)


def _in_order(words: Sequence[str], text: str) -> bool:
    return re.search(".*".join(map(re.escape, words)), text, re.DOTALL) is not None


def _assistant(messages: Messages) -> str:
    return "\n".join(message["content"] for message in messages if message["role"] == "assistant")


def _results(messages: Messages) -> list[tuple[str, str, str]]:
    """Name, status and content of every result that the model was shown."""
    text = "\n".join(str(message["content"]) for message in messages if message["role"] == "user")
    found = re.findall(r'<tool_result name="([^"]*)"[^>]*status="(\w+)"[^>]*>(.*?)</tool_result>', text, re.DOTALL)
    return [(name, status, content.strip()) for name, status, content in found]


def _call_arguments(messages: Messages) -> list[Any]:
    return [json.loads(call)["arguments"] for call in re.findall(r"<tool_call>(.*?)</tool_call>", _assistant(messages))]


def _every_call_is_json(text: str) -> bool:
    return all(
        isinstance(json.loads(call), dict) for call in re.findall(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", text)
    )


MESSAGE_CHECKS: Mapping[str, Callable[[Any, Messages], bool]] = {
    "roles": lambda wanted, messages: [message["role"] for message in messages] == wanted,
    "every_content_is_string": lambda _, messages: all(isinstance(each["content"], str) for each in messages),
    "contains": lambda words, messages: _all_in(words, json.dumps(messages, ensure_ascii=False)),
    "last_contains": lambda words, messages: _all_in(words, messages[-1]["content"]),
    "last_not_contains": lambda words, messages: not any(word in messages[-1]["content"] for word in words),
    "last_order": lambda words, messages: _in_order(words, messages[-1]["content"]),
    "first_order": lambda words, messages: _in_order(words, messages[0]["content"]),
    "last_element_count": lambda wanted, messages: all(
        messages[-1]["content"].count(f"</{name}>") == count for name, count in wanted.items()
    ),
    "payload_cannot_close_element": lambda _, messages: len(_results(messages)) == 1,
    "text_still_readable": lambda _, messages: "im_start|>system" in messages[-1]["content"],
    "image_marked": lambda _, messages: "image" in messages[-1]["content"],
    "assistant_contains": lambda words, messages: all(
        word.replace(" ", "") in _assistant(messages).replace(" ", "") for word in words
    ),
    "assistant_not_contains": lambda words, messages: not any(word in _assistant(messages) for word in words),
    "assistant_call_arguments": lambda wanted, messages: _call_arguments(messages) == wanted,
    "no_unknown_message_keys": lambda _, messages: all(set(each) <= {"role", "content"} for each in messages),
    "result_names_in_order": lambda wanted, messages: [name for name, _, _ in _results(messages)] == wanted,
    "result_count": lambda wanted, messages: len(_results(messages)) == wanted,
    "result_status": lambda wanted, messages: [status for _, status, _ in _results(messages)] == [wanted],
    "pairs": lambda wanted, messages: {name: content for name, _, content in _results(messages)} == wanted,
}

CHECKS: Mapping[str, Callable[[Any, Outcome], bool]] = {
    "http_status": lambda wanted, got: got.status == wanted,
    "http_status_in": lambda wanted, got: got.status in wanted,
    "http_status_min": lambda wanted, got: got.status >= wanted,
    "content_type": lambda wanted, got: got.headers["content-type"].startswith(wanted),
    "response_headers": lambda wanted, got: all(
        got.headers[name].startswith(value.rstrip("*")) for name, value in wanted.items()
    ),
    "not_gzipped": lambda _, got: "content-encoding" not in got.headers,
    "calls": _calls,
    "content": lambda wanted, got: _loose(wanted, got.content),
    "reasoning": lambda wanted, got: _loose(wanted, got.reasoning),
    "finish_reason": lambda wanted, got: got.finishes == [wanted],
    "finish_reason_not_in": lambda unwanted, got: not set(got.finishes) & set(unwanted),
    "invariants": _invariants,
    "indexes": lambda wanted, got: sorted({fragment["index"] for fragment in got.fragments}) == wanted,
    "first_delta_role": lambda wanted, got: got.chunks[0]["choices"][0]["delta"]["role"] == wanted,
    "usage_chunk": lambda wanted, got: any(chunk.get("usage") for chunk in got.chunks) == wanted,
    "every_chunk_has_choice": lambda _, got: all(chunk["choices"] for chunk in got.chunks),
    "sse_error_event": lambda _, got: got.status == 200 and got.error is not None and not got.done,
    "error_object": lambda _, got: got.error is not None and isinstance(got.error["message"], str),
    "error_type": lambda wanted, got: got.error is not None and got.error["type"] == wanted,
    "error_code": lambda wanted, got: got.error is not None and got.error["code"] == wanted,
    "error_message_contains": _says,
    "error_message_not_contains": lambda words, got: not any(_says(word, got) for word in words),
    "backend_messages": _backend_messages,
    "backend_body_not_contains": lambda words, got: not any(word in got.seen[-1].body.decode() for word in words),
    "backend_stop_includes": lambda wanted, got: wanted in got.seen[-1].json["stop"],
    "prompt_contains": lambda words, got: _all_in(words, got.prompt),
    "prompt_not_contains": lambda words, got: not any(word in got.prompt for word in words),
    "prompt_protocol_block_well_formed": lambda _, got: (
        got.prompt.count("<tools>") == got.prompt.count("</tools>") == 1
    ),
    "prompt_requires_call_of": lambda wanted, got: wanted in got.messages[-1]["content"],
    "every_tool_call_example_in_prompt_is_valid_json": lambda _, got: _every_call_is_json(got.prompt),
}

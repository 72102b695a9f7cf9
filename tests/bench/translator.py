"""The least that a translator does with a request, a whole reply and a stream, whatever carries the bytes.

It puts the tools into a system message, reads a call out of the reply's text, and encodes each token anew. It checks
nothing: what the product costs more than this is what the product does more.
"""

from __future__ import annotations

from typing import Any

import orjson

OPENER, CLOSER = "<tool_call>", "</tool_call>"
_BEFORE = (
    b'data: {"id":"chatcmpl-floor","object":"chat.completion.chunk","created":0,"model":"floor",'
    b'"choices":[{"index":0,"delta":'
)
_AFTER = b',"finish_reason":null}]}\n\n'
_END = b',"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

Asked = dict[str, Any]


def translated(asked: Asked) -> bytes:
    """The request for the backend."""
    tools = asked.pop("tools", None)
    if tools:
        told = b"\n".join(orjson.dumps(tool["function"]) for tool in tools).decode()
        system = {"role": "system", "content": f"# Tools\n<tools>\n{told}\n</tools>\nCall with {OPENER}...{CLOSER}."}
        asked["messages"] = [system, *asked["messages"]]
    return orjson.dumps(asked)


def message(text: str) -> dict[str, object]:
    """An answer, its call told as one."""
    before, opener, rest = text.partition(OPENER)
    if not opener:
        return {"role": "assistant", "content": text}
    call = orjson.loads(rest.partition(CLOSER)[0])
    function = {"name": call["name"], "arguments": orjson.dumps(call["arguments"]).decode()}
    calls = [{"id": "call_1", "index": 0, "type": "function", "function": function}]
    return {"role": "assistant", "content": before or None, "tool_calls": calls}


def whole(data: bytes) -> bytes:
    """The client's answer for a backend's whole reply."""
    reply = orjson.loads(data)
    answer = message(reply["choices"][0]["message"]["content"])
    reason = "tool_calls" if "tool_calls" in answer else "stop"
    return orjson.dumps({**reply, "choices": [{"index": 0, "message": answer, "finish_reason": reason}]})


class Tokens:
    """A stream: the backend's events in, the client's out."""

    def __init__(self) -> None:
        self._rest = b""
        self._text: list[str] = []  # from what may be a call on

    def feed(self, data: bytes) -> bytes:
        """The client's events for what has come."""
        *events, self._rest = (self._rest + data).split(b"\n\n")
        return b"".join([self._event(event) for event in events])

    def _event(self, event: bytes) -> bytes:
        if event == b"data: [DONE]":
            delta = orjson.dumps(message("".join(self._text))) if self._text else b"{}"
            return _BEFORE + delta + _END
        choices = orjson.loads(event[6:])["choices"]
        text = choices[0]["delta"].get("content") if choices else None
        if not text:
            return b""
        if self._text or "<" in text:
            self._text.append(text)
            return b""
        return _BEFORE + b'{"content":' + orjson.dumps(text) + b"}" + _AFTER

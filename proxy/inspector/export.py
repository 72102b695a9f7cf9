"""An exchange to take away: as a command for a shell, and as a fixture for the reader's tests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence

from proxy.core.model import Json, Tool
from proxy.core.parser import parse
from proxy.inspector.marks import Reading
from proxy.wire import jsonio

_MOST_IN_A_COMMAND = 100_000
"""Characters: one argument of a program has 128 KiB at most (Linux)."""

_COPIED = frozenset({"anthropic-beta", "anthropic-version", "openai-beta"})


def curl(url: str, headers: Iterable[tuple[str, str]], body: bytes, key: str) -> str | None:
    """A command that sends ``body`` again, with the key that the environment variable ``key`` then holds.

    It is plain ASCII without control characters: whatever ``body`` says, pasting it runs nothing but curl. None where
    the body is no JSON, or too long for a command.
    """
    try:
        jsonio.loads(body)
        text = body.decode()
    except ValueError:
        return None
    plain = "".join(_escaped(char) for char in text)
    if len(plain) > _MOST_IN_A_COMMAND:
        return None
    words = ["curl", "-sS", shlex.quote(_ascii(url)), "-H", "'content-type: application/json'"]
    for name, value in headers:
        if name in _COPIED:
            words += ["-H", shlex.quote(_ascii(f"{name}: {value}"))]
    return " ".join([*words, "-H", f'"authorization: Bearer ${key}"', "--data-raw", shlex.quote(plain)])


def fixture(text: str, reading: Reading, finish_reason: str | None = "stop") -> Json:
    """``text`` and what is read out of it, as ``proxy.testing`` replays it, with the tools that were offered."""
    reply = parse(
        text,
        reading.tools,
        finish_reason=finish_reason,
        dialect=reading.dialect,
        model=reading.model,
        starts_in_reasoning=reading.starts_in_reasoning,
        read_calls=bool(reading.tools),
        parallel=reading.parallel,
    )
    made: dict[str, Json] = {
        "model": reading.model or "unknown",
        "dialect": reading.dialect,
        "text": text,
        "calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.calls],
    }
    if reply.content:
        made["content"] = reply.content
    if reply.reasoning:
        made["reasoning"] = reply.reasoning
    if reading.starts_in_reasoning:
        made["starts_in_reasoning"] = True
    if not reading.parallel:
        made["parallel"] = False
    if reply.finish not in ("stop", "tool_calls"):
        made["finish_reason"] = reply.finish
    made["tools"] = shown_tools(reading.tools)
    return made


def shown_tools(tools: Sequence[Tool]) -> list[Json]:
    """``tools`` in OpenAI's shape."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def _escaped(char: str) -> str:
    r"""``char`` of a JSON text: beyond ASCII it can only stand in a string, where ``\uXXXX`` says the same."""
    if char in "\r\n\t":
        return " "
    return char if " " <= char <= "~" else "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]


def _ascii(text: str) -> str:
    return "".join(char if " " <= char <= "~" else "?" for char in text)

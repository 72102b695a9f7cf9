"""What a model says in a turn, told by a backend that takes tools and by one that only writes text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.backend import DONE, Exchange, Reply, body, chunk, sse, text

Mode = Literal["xml", "native"]

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


def says(
    mode: Mode,
    words: str = "",
    *calls: Call,
    reasoning: str = "",
    finish: str | None = None,
    cut: int = 0,
    usage: tuple[int, int] | None = (400, 30),
) -> Reply:
    """A turn, streamed or whole as the request asks. ``cut`` takes that many characters off the end of the last call,
    and its closer. ``usage`` None: the tokens are not counted.
    """
    if mode == "xml":
        markup = [f'<tool_call>{{"name": "{call.name}", "arguments": {json.dumps(call.arguments)}}}' for call in calls]
        written = "</tool_call>\n".join(markup)
        written = written[:-cut] if cut else written + "</tool_call>" * bool(calls)
        thought = f"<think>{reasoning}</think>" if reasoning else ""
        whole = thought + words + written
        pieces = [whole[at : at + 5] for at in range(0, len(whole), 5)]
        return text(*pieces, finish=finish or "stop", usage=usage)
    arguments = [json.dumps(call.arguments) for call in calls]
    if cut:
        arguments[-1] = arguments[-1][:-cut]
    prompt, completion = usage or (0, 0)
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return _native(words, calls, arguments, reasoning, finish or ("tool_calls" if calls else "stop"), counts)


def _native(
    words: str, calls: Sequence[Call], arguments: Sequence[str], reasoning: str, finish: str, counts: dict[str, int]
) -> Reply:
    async def reply(exchange: Exchange) -> None:
        heads = [
            {"id": f"call_{next(_numbers)}", "type": "function", "function": {"name": call.name}} for call in calls
        ]
        if not exchange.request.json.get("stream"):
            for head, written in zip(heads, arguments, strict=True):
                head["function"] |= {"arguments": written}  # type: ignore[operator]
            message: dict[str, Any] = {"role": "assistant", "content": words or None}
            message |= {"reasoning_content": reasoning} if reasoning else {}
            message |= {"tool_calls": heads} if heads else {}
            choice = {"index": 0, "message": message, "finish_reason": finish}
            whole: dict[str, Any] = {"id": "chatcmpl-s", "object": "chat.completion", "created": 1, "model": "scripted"}
            await body({**whole, "choices": [choice], "usage": counts})(exchange)
            return
        events = [chunk({"role": "assistant", "content": None})]
        events += [chunk({"reasoning_content": reasoning})] if reasoning else []
        events += [chunk({"content": words[at : at + 5]}) for at in range(0, len(words), 5)]
        for index, (head, written) in enumerate(zip(heads, arguments, strict=True)):
            events.append(chunk({"tool_calls": [{"index": index, **head}]}))
            events += [
                chunk({"tool_calls": [{"index": index, "function": {"arguments": written[at : at + 7]}}]})
                for at in range(0, len(written), 7)
            ]
        events += [chunk({}, finish), chunk(choices=[], usage=counts), DONE]
        await sse(*events, pause=0)(exchange)

    return reply

"""A conversation with calls and results as strict backends take it: what was cut out or broken in it is made good.

vLLM reads the arguments of every earlier call and answers 400 where they are no JSON object; OpenAI and many chat
templates refuse a call without a result, a result without its call, and results that do not follow their calls. Clients
that shorten a history, or that were stopped while a tool ran, leave all of these behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NoReturn

from msgspec.structs import replace

from proxy.core.arguments import jsontext
from proxy.core.content import join
from proxy.core.history import NO_RESULT, UNKNOWN
from proxy.core.model import Json, Message, TextPart, ToolCall, ToolResult
from proxy.core.pairing import Ledger, MadeCall, Stray

UNREADABLE = "unreadable_arguments"
"""The member that holds arguments that are no JSON object, so that the model still sees what it wrote."""


def mended(messages: Sequence[Message]) -> tuple[Message, ...]:
    """``messages`` where every call has readable arguments, an id of its own in its turn, and one result behind it.

    A result of no call in the turn before it becomes text of the user. What has nothing wrong with it says the same
    afterwards; later turns only append. Never raises.
    """
    if not any(message.calls or message.results for message in messages):
        return tuple(messages)
    ledger, out = Ledger(), list[Message]()
    made: list[MadeCall] = []
    ids: list[str] = []  # of the calls made, as they go on
    grouped = groupby(_pieces(messages), key=lambda piece: piece.role == "assistant")
    for assistant, turn in [*((assistant, list(group)) for assistant, group in grouped), (False, [])]:
        if assistant:
            made = ledger.add(call for message in turn for call in message.calls)
            ids = _ids(made)
            mending = (_call(entry.call, call_id) for entry, call_id in zip(made, ids, strict=True))
            out += [replace(message, calls=tuple(next(mending) for _ in message.calls)) for message in turn]
        else:
            strays = ledger.pair([result for message in turn for result in message.results], made)
            out += (Message("tool", results=(_result(*answered),)) for answered in zip(made, ids, strict=True))
            out += (_told(stray) for stray in strays)
            out += (message for message in turn if not message.results)
            made, ids = [], []
    return tuple(out)


def _pieces(messages: Iterable[Message]) -> Iterator[Message]:
    """Results apart from what is said beside them, and calls always the assistant's."""
    for message in messages:
        if message.results:
            yield Message("tool", results=message.results)
        elif message.role == "tool" and not message.calls:
            yield Message("tool", results=(ToolResult("", message.content, message.name),))
        if message.calls or message.role == "assistant":
            yield replace(message, role="assistant", results=())
        elif message.role != "tool" and (message.content or not message.results):
            yield replace(message, results=())


def _ids(made: Iterable[MadeCall]) -> list[str]:
    """The ids of one turn's calls: those that the client gave, unless two are the same."""
    ids: dict[str, None] = {}
    for entry in made:
        call_id, again = entry.id, 1
        while call_id in ids:
            again += 1
            call_id = f"{entry.id}_{again}"
        ids[call_id] = None
    return list(ids)


def _call(call: ToolCall, call_id: str) -> ToolCall:
    return replace(call, id=call_id, name=call.name or UNKNOWN, arguments=readable(call.arguments))


def _result(entry: MadeCall, call_id: str) -> ToolResult:
    """The one result of a call, under the id that the call goes on with."""
    match entry.results:
        case []:
            return ToolResult(call_id, (TextPart(NO_RESULT),), is_error=True)
        case [result]:
            return replace(result, call_id=call_id)
    content = join(result.content for result in entry.results)
    return ToolResult(call_id, content, is_error=any(result.is_error for result in entry.results))


def _told(stray: Stray) -> Message:
    """A result whose call is elsewhere or gone, as words of the user: no role of its own would be accepted."""
    name = stray.made.call.name if stray.made else stray.result.name
    heading = f"[A late result of {name}]" if name else "[The result of a call that is no longer shown]"
    if stray.result.is_error:
        heading += " It failed:"
    return Message("user", (TextPart(f"{heading}\n"), *stray.result.content))


def readable(arguments: str) -> str:
    """``arguments`` as the text of a JSON object: the client's own text where it is one.

    Nothing becomes ``{}``, an object that was encoded twice is unpacked, and anything else is kept as text inside an
    object. Numbers that Python does not read count as unreadable, since servers are written in it.
    """
    text = arguments.strip()
    if text in ("", "null", '""'):
        return "{}"
    value = _read(text)
    if isinstance(value, dict):
        return arguments
    if isinstance(value, str) and isinstance(_read(value), dict):
        return value
    return jsontext.dumps({UNREADABLE: arguments})


def _read(text: str) -> Json:
    """The value of a JSON text, None where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")

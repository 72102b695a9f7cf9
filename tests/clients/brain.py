"""What the model behind real clients says: an agent that reads a file and writes another, one that asks for the
weather, and turns for SDK programs.

All are told by the request alone, so that the requests that clients make beside (titles, checks) do no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.backend import Exchange, Reply, chunk, sse, text
from tests.support.speech import Call, Mode, says

SECRET = re.compile(r"secret-[0-9a-f]{8}")
"""What stands in the file to be read; the other is to hold it in upper case."""

OSLO, ROME = Call("get_weather", {"city": "Oslo"}), Call("get_weather", {"city": "Rome"})

DONE = "Both files are done."

WEATHER = re.compile(r"Rain in Oslo, 7 degrees\.")
"""What the examples' tool says when it is called with :data:`OSLO`'s arguments."""

ADVICE = "Take an umbrella."


def _texts(request: Mapping[str, Any]) -> list[str]:
    """The text of every message."""
    return [
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        for content in (message["content"] or "" for message in request["messages"])
    ]


def offered(request: Mapping[str, Any]) -> list[str]:
    """The names of the tools that the request has, or that the prompt of the proxy tells of."""
    found: list[str] = [tool["function"]["name"] for tool in request.get("tools", ())]
    for block in re.findall(r"<tools>\n(.*?)\n</tools>", "\n".join(_texts(request)), re.DOTALL):
        found += [json.loads(line)["name"] for line in block.splitlines()]
    return found


def agent(mode: Mode, read: Call, write: Callable[[str], Call]) -> Reply:
    """Calls ``read``, then ``write`` with what is to be written, then says that it is done."""

    async def reply(exchange: Exchange) -> None:
        request = exchange.request.json
        told = json.dumps(request["messages"][1:])  # with the calls that were made
        secret = SECRET.search(told)
        if read.name not in offered(request):
            answer = text("A short task", usage=None)
        elif secret is None:
            answer = says(mode, "I will read it first.\n", read, reasoning="Read, then write.", usage=None)
        elif secret[0].upper() not in told:
            answer = says(mode, "", write(secret[0].upper()), usage=None)
        else:
            answer = text(DONE, usage=None)
        await answer(exchange)

    return reply


def weather(mode: Mode) -> Reply:
    """Calls ``get_weather``, then gives :data:`ADVICE` with the result, word for word."""

    async def reply(exchange: Exchange) -> None:
        request = exchange.request.json
        told = WEATHER.search("\n".join(_texts(request)))
        if told:
            answer = says(mode, f"{ADVICE} {told[0]}")
        elif "get_weather" in offered(request):
            answer = says(mode, "I will look. ", OSLO, reasoning="It depends on the weather.")
        else:
            answer = text("I cannot look.")
        await answer(exchange)

    return reply


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model; ``breaks``: its stream ends in the midst of it."""

    words: str = ""
    calls: tuple[Call, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    breaks: bool = False


SCENARIOS: Mapping[str, tuple[Turn, ...]] = {
    "single": (Turn("Let me look. ", (OSLO,)),),
    "parallel": (Turn(calls=(OSLO, ROME)),),
    "steps": (
        Turn("First the weather. ", (OSLO,), {"reasoning": "Step by step."}),
        Turn(calls=(Call("get_time"),)),
        Turn("Take a coat."),
    ),
    "no-arguments": (Turn(calls=(Call("get_time"),)),),
    "tool-error": (Turn(calls=(OSLO,)), Turn("I could not look.")),
    "thinking": (Turn("Hello.", fields={"reasoning": "They greet."}),),
    "markup": (Turn(calls=(Call("write_file", {"path": "a.md", "text": 'Say </tool_call> or "</tool_call>".\n'}),)),),
    "forced": (Turn(calls=(OSLO,)),),
    "one-only": (Turn(calls=(OSLO,)),),
    "cut": (Turn("Look: ", (OSLO, ROME), {"finish": "length", "cut": 8}),),
    "breaks": (Turn("Let me look", breaks=True),),
}
"""What is said to a user who only names one of these. A program of an SDK then checks what arrived."""


def scenarios(mode: Mode) -> Reply:
    """Plays the scenario that the first user text names, as a backend of that ``mode`` would."""

    async def reply(exchange: Exchange) -> None:
        request = exchange.request.json
        name = next(name for name in SCENARIOS if any(_names(name, told) for told in _texts(request)))
        at = sum(message["role"] == "assistant" for message in request["messages"])
        turn = SCENARIOS[name][at]
        if turn.breaks:
            await sse(chunk({"content": turn.words}), end="reset")(exchange)
        else:
            await says(mode, turn.words, *turn.calls, **turn.fields)(exchange)

    return reply


def _names(name: str, told: str) -> bool:
    return f"scenario: {name}." in told

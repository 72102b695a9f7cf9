"""A program that uses the library, for ``mypy --strict`` to check against the installed package. It is never run."""

from __future__ import annotations

import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from proxy import (
    BackendConfig,
    Config,
    Event,
    Finish,
    Message,
    Parser,
    PromptOptions,
    Reply,
    Request,
    TextDelta,
    TextPart,
    Tool,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
    collect,
    create_app,
    parse,
    render_history,
    render_prompt,
)
from proxy.testing import Call, assert_stream_equals_whole, calls, chunkings, rendering, tools

TOOLS = [{"type": "function", "function": {"name": "get_weather"}}]


def told(event: Event) -> str:
    """What a user is shown of an event."""
    match event:
        case TextDelta(text) | ToolArgumentsDelta(_, text):
            return text
        case ToolCallStart(index, name=name):
            return f"{index}: {name}"
        case ToolCallEnd(index):
            return f"{index} is complete"
        case Finish(reason, message):
            return message or reason
        case _:
            return ""


def read(pieces: list[str]) -> Reply:
    """A reply, shown while it comes."""
    parser = Parser(TOOLS, dialect="hermes", new_id=lambda: "call_1")
    events = [event for piece in pieces for event in parser.feed(piece)]
    events += parser.close("stop")
    print("".join(map(told, events)))
    return collect(events)


def prompt(text: str) -> list[tuple[str, str]]:
    """The turns for a question."""
    request = Request((Message("user", (TextPart(text),)),), tools=(Tool("get_time"),))
    turns = render_history(request.messages, system=render_prompt(request, PromptOptions(style="compact")))
    return [(turn.role, turn.text) for turn in turns]


def serve() -> None:
    """The proxy."""
    uvicorn.run(create_app(Config((BackendConfig("http://127.0.0.1:8080"),))))


class Words:
    """A parser of another make."""

    def feed(self, text: str) -> list[str]:
        """Words that came."""
        return text.split()

    def close(self) -> None:
        """Nothing is left."""


@given(tools(), st.data())
def test_replies(offered: tuple[Tool, ...], data: st.DataObject) -> None:
    """A property."""
    made: tuple[Call, ...] = data.draw(calls(offered))
    reply = data.draw(rendering(made, "hermes"))
    assert parse(reply.text, offered).calls[0].name == reply.calls[0].name
    assert_stream_equals_whole(reply.text, lambda: Parser(offered), chunkings=[data.draw(chunkings(reply.text))])
    assert_stream_equals_whole(reply.text, Words, fold=len)

"""What the demo puts on the terminal: both sides of the proxy, request by request."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from proxy.core.arguments import jsontext
from proxy.core.model import Json
from proxy.demo.agent import Ended, Got, Sent
from proxy.demo.columns import WIDE, side_by_side
from proxy.demo.recorder import Exchange
from proxy.demo.scenes import Scene


class View:
    """Writes scenes by ``write``, a line at a time, ``width`` characters wide."""

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write = write
        self._width = min(width, WIDE)
        self._protocol_shown = False
        self._seen = 0

    def scene(self, number: int, scene: Scene) -> None:
        """Begin a scene."""
        title = f"-- {number}. {scene.title} "
        self._write("")
        self._write(f"{title:-<{self._width}}")
        self.say(scene.about)
        self._seen = 0

    def say(self, text: str) -> None:
        """A paragraph."""
        for line in textwrap.wrap(text, self._width):
            self._write(line)

    def turn(self, sent: Sent, got: Got, exchange: Exchange) -> None:
        """One request, from both sides: what went in, then what came out."""
        self._write("")
        sent_lines, saw_lines = list(_sent(sent)), list(self._saw(exchange))
        self._columns(("the client sent", sent_lines), ("the model saw", saw_lines))
        self._write("")
        note = " (held by a grammar)" if exchange.grammar else ""
        self._columns(("the client got", list(_got(got))), (f"the model wrote{note}", [("model", exchange.wrote)]))

    def ended(self, ended: Ended) -> None:
        """How the loop ended."""
        self._write("")
        match ended.how:
            case "answered":
                self.say(f"=> The person reads: {ended.text}")
            case "person":
                self.say(f"=> The loop ends here, without a retry. The person reads: {ended.text}")
            case _:
                self.say(f"=> The loop was given up. {ended.text}")

    def _columns(self, left: tuple[str, list[tuple[str, str]]], right: tuple[str, list[tuple[str, str]]]) -> None:
        for line in side_by_side(left, right, self._width):
            self._write(line)

    def _saw(self, exchange: Exchange) -> Iterator[tuple[str, str]]:
        """The messages that are new since the last request of the scene; the protocol in full only once."""
        for message in exchange.messages[self._seen :]:
            text = message["content"]
            if message["role"] == "system":
                text, self._protocol_shown = (_only_tools(text) if self._protocol_shown else text), True
            yield message["role"], text
        self._seen = len(exchange.messages) + 1  # the model's own reply comes back as a message


def _sent(sent: Sent) -> Iterator[tuple[str, str]]:
    if sent.new < len(sent.messages):
        yield "", f"(the {len(sent.messages) - sent.new} messages from above, then)"
    for message in sent.messages[len(sent.messages) - sent.new :]:
        yield from _message(message)
    yield "tools", f"{sent.tool.name}({sent.tool.parameter})"
    yield "choice", sent.choice


def _message(message: Json) -> Iterator[tuple[str, str]]:
    role: str = message["role"]
    for call in message.get("tool_calls", ()):
        yield role, f"calls {call['function']['name']}({call['function']['arguments']})"
    if message.get("content"):
        yield role, message["content"]


def _got(got: Got) -> Iterator[tuple[str, str]]:
    for name, arguments in got.calls:
        yield "call", f"{name}({arguments})"
    if got.content is not None:
        yield "content", jsontext.dumps(got.content)
    yield "finish", got.finish_reason


def _only_tools(text: str) -> str:
    """The lines of a protocol that differ from scene to scene."""
    tools = [line for line in text.splitlines() if line.startswith("{")]
    return "\n".join(["(the text of scene 1, with this tool:)", *tools])

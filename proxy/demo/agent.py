"""The client of the demo: an ordinary tool loop on the OpenAI SDK, which knows nothing of the proxy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from openai import OpenAI
from openai.types.chat import ChatCompletion

from proxy.core.model import Json
from proxy.demo.scenes import DemoTool, PersonNeededError, Scene, ToolError

MAX_TURNS = 4
"""Requests after which a loop is given up: a model this small may call for ever."""

MAX_TOKENS = 120

Confirm: TypeAlias = Callable[[str], bool]
"""Asks the person a question; whether they said yes."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What the client is about to send: all messages, and how many of them are new since its last request."""

    messages: tuple[Json, ...]
    new: int
    tool: DemoTool
    choice: str


@dataclass(frozen=True, slots=True)
class Got:
    """What came back: its finish reason, its text (None beside calls), and its calls as (name, arguments text)."""

    finish_reason: str
    content: str | None
    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """How the loop ended (an answer, a message for the person, or given up) and the calls that were made."""

    how: Literal["answered", "person", "gave up"]
    text: str
    calls: tuple[tuple[str, str], ...]


def play(scene: Scene, client: OpenAI, model: str, confirm: Confirm) -> Iterator[Sent | Got | Ended]:
    """Run the loop of ``scene``, saying each thing as it happens; the last is ``Ended``.

    Raises the SDK's errors.
    """
    tool, choice = scene.tool, scene.choice
    messages: list[Json] = [*scene.example, {"role": "user", "content": scene.question}]
    made: list[tuple[str, str]] = []
    known = 0
    for _ in range(MAX_TURNS):
        yield Sent(tuple(messages), len(messages) - known, tool, choice)
        completion: ChatCompletion = client.chat.completions.create(
            model=model,
            messages=messages,
            tools=[tool.offer()],
            tool_choice=choice,
            temperature=0,
            seed=1,
            max_tokens=MAX_TOKENS,
        )
        said = completion.choices[0].message
        calls: list[Any] = list(said.tool_calls or ())
        written = tuple((call.function.name, call.function.arguments) for call in calls)
        yield Got(completion.choices[0].finish_reason, said.content, written)
        if not calls:
            yield Ended("answered", said.content or "", tuple(made))
            return
        messages.append(said.model_dump(exclude_none=True))
        known, choice = len(messages), "auto"
        for call in calls:
            made.append((call.function.name, _argument(tool, call.function.arguments)))
            try:
                result = _run(tool, made[-1][1], confirm)
            except PersonNeededError as refusal:
                yield Ended("person", str(refusal), tuple(made))
                return
            except ToolError as failure:
                result, choice = str(failure), "required"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    yield Ended("gave up", f"No answer after {MAX_TURNS} turns.", tuple(made))


def _argument(tool: DemoTool, arguments: str) -> str:
    """The tool's one argument, empty if the model left it out."""
    return str(json.loads(arguments).get(tool.parameter, ""))


def _run(tool: DemoTool, argument: str, confirm: Confirm) -> str:
    """Run the tool; first ask, if it cannot be undone."""
    if tool.final and not confirm(f"The model wants {tool.name}({argument}), which cannot be undone. Let it?"):
        return "The person said no. Nothing was done."
    return tool.run(argument)

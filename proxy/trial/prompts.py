"""Prompts with tools, and what a good reply to each holds.

They are written in files of JSON lines. A line is either a tool (``{"tool": name, "description", "parameters"}``) or a
prompt that offers tools named before it:

    {"prompt": id, "category", "tools": [name, …], "turns": [turn, …], "calls": [{"name", "arguments"}, …], "answer"}

A turn is a string (the user's), ``{"assistant": text}``, or a call that was made with what came of it:
``{"call": name, "arguments": {…}, "result": text}``. Without ``calls`` none is due, and ``answer`` lists the words of
which a good one holds at least one. What is expected of arguments is told by :func:`proxy.trial.judge.matches`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proxy.core.model import Json

BUILTIN = Path(__file__).with_name("prompts.jsonl")
"""20 prompts: of one call and of several, nested and enumerated arguments, a second step, no call, three languages."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is due. ``arguments`` are those that matter."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A conversation that the model is to go on with. ``tools`` and ``messages`` are in OpenAI's shape."""

    id: str
    category: str
    tools: Sequence[Json]
    messages: Sequence[Json]
    calls: Sequence[Call] = ()
    answer: Sequence[str] = ()


def read_prompts(*files: Path) -> tuple[Prompt, ...]:
    """The prompts of all ``files``, in their order; a file may use the tools of those before it."""
    tools: dict[str, Json] = {}
    prompts = []
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if "tool" in entry:
                function = {"name": entry["tool"], **{key: entry[key] for key in ("description", "parameters")}}
                tools[entry["tool"]] = {"type": "function", "function": function}
            else:
                prompts.append(_prompt(entry, tools))
    return tuple(prompts)


def quick(prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """The first prompt of each category: enough for a first look."""
    return tuple({prompt.category: prompt for prompt in reversed(prompts)}.values())[::-1]


def _prompt(entry: Json, tools: Mapping[str, Json]) -> Prompt:
    return Prompt(
        entry["prompt"],
        entry["category"],
        tuple(tools[name] for name in entry["tools"]),
        tuple(message for number, turn in enumerate(entry["turns"], 1) for message in _messages(turn, number)),
        tuple(Call(call["name"], call["arguments"]) for call in entry["calls"]),
        tuple(entry.get("answer", ())),
    )


def _messages(turn: Json, number: int) -> Iterator[Json]:
    if isinstance(turn, str):
        yield {"role": "user", "content": turn}
    elif "assistant" in turn:
        yield {"role": "assistant", "content": turn["assistant"]}
    else:
        made = {"name": turn["call"], "arguments": json.dumps(turn["arguments"], ensure_ascii=False)}
        call = {"id": f"call_{number}", "type": "function", "function": made}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": call["id"], "content": turn["result"]}

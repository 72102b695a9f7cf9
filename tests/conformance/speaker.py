"""The model behind the public suite's probe: it answers each scenario well, and writes its calls as one family does.

The name of the model that is asked for says which; every other thing that it says is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.backend import Exchange, text
from tests.support.speech import Call


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model thinks, says and calls, where it is asked something with ``words`` in it."""

    words: str
    calls: Sequence[Call] = ()
    says: str = ""
    thinks: str = ""


_EVENT = {
    "title": "Design review",
    "start": "2026-10-01T15:00:00Z",
    "attendees": [{"name": "Ana", "email": "ana@example.com"}, {"name": "Bo", "email": "bo@example.com"}],
    "location": {"city": "Berlin", "room": "4.12"},
}
_NOTE = {"title": "Grüße aus Zürich", "body": "Café ☕ in 東京 — naïve résumé 🚀"}

TURNS: Sequence[Turn] = (
    Turn('"temp_c": 18', says="It is 18 degrees and clear in Paris."),  # the result, wherever it stands
    Turn("in Paris right now", [Call("get_weather", {"city": "Paris"})], "Let me look."),
    Turn("in Paris and in Tokyo", [Call("get_weather", {"city": city}) for city in ("Paris", "Tokyo")]),
    Turn("17 + 25", says="42"),
    Turn("'Design review'", [Call("create_event", _EVENT)], "I will enter it."),
    Turn("'Grüße aus Zürich'", [Call("save_note", _NOTE)]),
    Turn("What time is it", [Call("get_server_time")]),
    Turn("something about Lisbon", [Call("get_weather", {"city": "Lisbon"})]),
    Turn(
        "step by step", [Call("record_answer", {"answer": "9.9"})], thinks="9.11 is 9 and 11 hundredths. 9.9 is more."
    ),
)
"""One for each scenario; the first that fits counts."""


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json(call: Call, arguments: str = "arguments") -> str:
    return json.dumps({"name": call.name, arguments: call.arguments}, ensure_ascii=False)


def _arguments(call: Call) -> str:
    return json.dumps(call.arguments, ensure_ascii=False)


def _think(thought: str) -> str:
    return f"<think>\n{thought}\n</think>\n\n" if thought else ""


def _hermes(turn: Turn) -> str:
    calls = (f"<tool_call>\n{_json(call)}\n</tool_call>" for call in turn.calls)
    return "\n".join([_think(turn.thinks) + turn.says, *calls]).lstrip()


def _qwen3_coder(turn: Turn) -> str:
    written = []
    for call in turn.calls:
        values = "".join(f"<parameter={key}>\n{_value(value)}\n</parameter>\n" for key, value in call.arguments.items())
        written.append(f"<tool_call>\n<function={call.name}>\n{values}</function>\n</tool_call>")
    return "\n".join([_think(turn.thinks) + turn.says, *written]).lstrip()


def _glm(turn: Turn) -> str:
    written = []
    for call in turn.calls:
        pairs = "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{_value(value)}</arg_value>\n"
            for key, value in call.arguments.items()
        )
        written.append(f"<tool_call>{call.name}\n{pairs}</tool_call>")
    return "\n".join([_think(turn.thinks) + turn.says, *written]).lstrip()


def _deepseek(turn: Turn) -> str:
    calls = "".join(
        f"<｜tool▁call▁begin｜>{call.name}<｜tool▁sep｜>{_arguments(call)}<｜tool▁call▁end｜>" for call in turn.calls
    )
    section = f"<｜tool▁calls▁begin｜>{calls}<｜tool▁calls▁end｜>" if calls else ""
    return _think(turn.thinks) + turn.says + section + "<｜end▁of▁sentence｜>"


def _kimi(turn: Turn) -> str:
    calls = "".join(
        f"<|tool_call_begin|>functions.{call.name}:{at}<|tool_call_argument_begin|>{_arguments(call)}<|tool_call_end|>"
        for at, call in enumerate(turn.calls)
    )
    section = f"<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>" if calls else ""
    return _think(turn.thinks) + turn.says + section


def _mistral(turn: Turn) -> str:
    thought = f"[THINK]{turn.thinks}[/THINK]" if turn.thinks else ""
    return thought + turn.says + "".join(f"[TOOL_CALLS]{call.name}[ARGS]{_arguments(call)}" for call in turn.calls)


def _harmony(turn: Turn) -> str:
    messages = []
    if turn.thinks:
        messages.append(f"<|channel|>analysis<|message|>{turn.thinks}<|end|>")
    if turn.says:
        channel, end = ("commentary", "<|end|>") if turn.calls else ("final", "<|return|>")
        messages.append(f"<|channel|>{channel}<|message|>{turn.says}{end}")
    messages += [
        f"<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>{_arguments(call)}<|call|>"
        for call in turn.calls
    ]
    return "<|start|>assistant".join(messages)


def _llama3(turn: Turn) -> str:
    calls = "; ".join(_json(call, "parameters") for call in turn.calls)
    return _think(turn.thinks) + turn.says + (f"<|python_tag|>{calls}<|eom_id|>" if calls else "<|eot_id|>")


WRITERS: Mapping[str, Callable[[Turn], str]] = {
    "hermes": _hermes,
    "qwen3-coder": _qwen3_coder,
    "glm": _glm,
    "deepseek-v3": _deepseek,
    "kimi-k2": _kimi,
    "mistral": _mistral,
    "harmony": _harmony,
    "llama3": _llama3,
}
"""By the names of the dialects."""


async def speak(exchange: Exchange) -> None:
    """The reply of the model, a few characters at a time, tools or no tools."""
    request = exchange.request.json
    told = "\n".join(str(message.get("content")) for message in request["messages"])
    turn = next(turn for turn in TURNS if turn.words in told)
    whole = WRITERS[request["model"]](turn)
    await text(*(whole[at : at + 5] for at in range(0, len(whole), 5)), usage=(400, 30))(exchange)

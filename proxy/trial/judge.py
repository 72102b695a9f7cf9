"""Whether a reply is one that a program could use, and whether it is the one that was wanted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from proxy.core.arguments.schema import ToolSchema
from proxy.core.model import Json
from proxy.trial.prompts import Call, Prompt

_MARKUP = ("<tool_call", "<tool_result", "<tool_response")
"""What is no plain answer: a call that could not be read, a result that was made up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. ``calls`` are names and the JSON text of the arguments; ``cut``: it was not at its end."""

    text: str
    calls: Sequence[tuple[str, str]] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """``valid``: calls where calls are due, each of an offered tool and true to its schema; where none is due, text.

    ``right``: valid, and exactly the expected calls, in any order, or an answer with one of the expected words.
    """

    valid: bool
    right: bool


def judge(prompt: Prompt, answer: Answer) -> Verdict:
    """The verdict on ``answer``."""
    if not prompt.calls:
        text = answer.text.casefold()
        valid = not answer.calls and bool(text.strip()) and not any(mark in text for mark in _MARKUP)
        return Verdict(valid, valid and (not prompt.answer or any(word.casefold() in text for word in prompt.answer)))
    schemas = {tool["function"]["name"]: ToolSchema(tool["function"]["parameters"]) for tool in prompt.tools}
    valid = bool(answer.calls) and all(
        name in schemas and not schemas[name].validate(arguments) for name, arguments in answer.calls
    )
    return Verdict(valid, valid and _are(prompt.calls, [(name, json.loads(text)) for name, text in answer.calls]))


def _are(expected: Sequence[Call], given: Sequence[tuple[str, Json]]) -> bool:
    return len(given) == len(expected) and any(
        all(
            call.name == name and matches(call.arguments, args)
            for call, (name, args) in zip(expected, order, strict=True)
        )
        for order in permutations(given)
    )


def matches(expected: Json, given: Json) -> bool:
    """Whether ``given`` is what was ``expected``.

    Strings are equal in any case and with any outer white space, numbers by value. Of an object only the expected
    members matter; a list is matched item by item. ``{"$any": […]}`` matches what one of its values does,
    ``{"$has": text}`` any string that holds the text.
    """
    match expected:
        case {"$any": choices}:
            return any(matches(choice, given) for choice in choices)
        case {"$has": text}:
            return isinstance(given, str) and text.casefold() in given.casefold()
        case dict():
            return isinstance(given, dict) and all(
                key in given and matches(value, given[key]) for key, value in expected.items()
            )
        case list():
            return (
                isinstance(given, list)
                and len(given) == len(expected)
                and all(matches(*pair) for pair in zip(expected, given, strict=True))
            )
        case str():
            return isinstance(given, str) and given.strip().casefold() == expected.strip().casefold()
        case _:
            return type(given) is not bool and bool(given == expected)

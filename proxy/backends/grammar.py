"""Tools to a grammar (GBNF) under which a model can write nothing but calls of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.backends import gbnf, json_rules, schemas
from proxy.backends.gbnf import literal, repeat, sequence
from proxy.backends.schemas import NoValueError, TooLargeError
from proxy.backends.translate import Translator
from proxy.core import markup
from proxy.core.arguments import jsontext
from proxy.core.dialects import THINK
from proxy.core.model import Json, Tool

MAX_TEXT = 65_536
"""Characters of a grammar."""

MAX_COST = 200_000
"""The cost of a grammar (``gbnf.cost``). llama.cpp reads it anew for each request, at some 2 µs a unit."""

_MAX_STEPS = 10_000
"""Schemas and declarations that are looked at for all tools together: some 0.2 s at worst."""

_BEFORE_NAME, _, _REST = markup.tool_call("N", "A").partition('"N"')
_AFTER_NAME, _, _AFTER_ARGUMENTS = _REST.partition("A")


def forced(tools: Iterable[Tool], *, max_calls: int = 1, starts_in_reasoning: bool = False) -> str | None:
    """A grammar whose every text is one to ``max_calls`` calls of ``tools``, written as the prompt shows them.

    ``starts_in_reasoning``: the model's turn begins inside ``<think>``; it may go on with that and has to close it.
    Arguments whose schema is too large or contradicts itself become any object; so do the largest ones when all
    together are too much. None when there are no tools, or so many that not even that will do.
    """
    offered = {tool.name: tool.parameters for tool in tools}
    if not offered:
        return None
    arguments = _within_limits(_translate(offered))
    names = {jsontext.dumps(name): sequence(literal(_AFTER_NAME), each.expression) for name, each in arguments.items()}
    call = sequence(literal(_BEFORE_NAME), gbnf.one_of(names), literal(_AFTER_ARGUMENTS))
    calls = sequence("call", repeat(r'("\n" call)', 0, max_calls - 1))
    rules = {"root": calls, "call": call}
    if starts_in_reasoning:
        rules |= gbnf.up_to(THINK.closer, "thought") | {"root": sequence("thought", r'"\n"{0,2}', calls)}
    for each in arguments.values():
        rules |= each.rules
    text = gbnf.write(rules, json_rules.RULES)
    return text if len(text) <= MAX_TEXT else None


class _Arguments:
    """The arguments of one tool: an expression, and the rules that it needs beside the shared ones."""

    __slots__ = ("cost", "expression", "rules", "size")

    def __init__(self, expression: str, rules: Mapping[str, str]) -> None:
        self.expression = expression
        self.rules = rules
        self.size = sum(len(name) + len(rule) + len(" ::= \n") for name, rule in rules.items())
        self.cost = sum(map(gbnf.cost, rules.values()))


_ANY_OBJECT = _Arguments("object", {})


def _within_limits(arguments: dict[str, _Arguments]) -> dict[str, _Arguments]:
    """``arguments`` with the costliest made any object, as many as it takes."""
    shared = _Arguments("", dict(json_rules.RULES))
    names = sum(2 * len(name) + len(_AFTER_NAME) + len("object") for name in arguments)
    size, cost = MAX_TEXT - shared.size - names, MAX_COST - shared.cost - names
    kept = dict(arguments)
    for name, each in sorted(arguments.items(), key=lambda item: item[1].cost):
        if each.size <= size and each.cost <= cost:
            size, cost = size - each.size, cost - each.cost
        else:
            kept[name] = _ANY_OBJECT
    return kept


def _translate(offered: Mapping[str, Json]) -> dict[str, _Arguments]:
    """The arguments of each tool by its schema; no schema means no arguments."""
    steps = _MAX_STEPS
    arguments: dict[str, _Arguments] = {}
    for number, (name, schema) in enumerate(offered.items()):
        if schema is None or schema == {}:
            arguments[name] = _Arguments('"{}"', {})
            continue
        arguments[name] = _ANY_OBJECT
        if not isinstance(schema, dict):
            continue
        translator = Translator(schema, f"t{number}", max_steps=steps, max_size=MAX_TEXT)
        try:
            expression = translator.value(schemas.merge(schema, {"type": "object"}))
            arguments[name] = _Arguments(expression, translator.rules)
        except (TooLargeError, NoValueError):
            pass
        steps = translator.steps_left
    return arguments

"""Tools to a grammar (GBNF) under which a model can write no call but a valid one of them.

:func:`forced` leaves nothing but a call, :func:`free` leaves text as well. llama.cpp reads the notation, and so do the
engines of vLLM and SGLang (xgrammar, llguidance).
"""

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

MOST_CALLS = 32
"""Calls of one reply: a model that writes more goes round in circles."""

_MAX_STEPS = 10_000
"""Schemas and declarations that are looked at for all tools together: some 0.2 s at worst."""

_AROUND = 4_000
"""More than the characters of the rules around the calls."""

_BEFORE_NAME, _, _REST = markup.tool_call("N", "A").partition('"N"')
_AFTER_NAME, _, _AFTER_ARGUMENTS = _REST.partition("A")
_OPENER, _BRACE, _KEY = _BEFORE_NAME.partition("{")
_LAST_BRACE, _CLOSER = _AFTER_ARGUMENTS[:1], _AFTER_ARGUMENTS[1:]

_THOUGHT = gbnf.without(THINK.closer, "thinking") | {"thought": sequence("thinking", literal(THINK.closer))}


def forced(tools: Iterable[Tool], *, starts_in_reasoning: bool = False) -> str | None:
    """A grammar whose every text is one call of ``tools``, written as the prompt shows it.

    ``starts_in_reasoning``: the model's turn begins inside ``<think>``; it may go on with that and has to close it.
    Arguments whose schema is too large or contradicts itself become any object; so do the largest ones when all
    together are too much. None when there are no tools, or so many that not even that will do.
    """
    around = {"root": "call"}
    if starts_in_reasoning:
        around = _THOUGHT | {"root": sequence("thought", r'"\n"{0,2}', "call")}
    return _grammar(tools, around)


def free(tools: Iterable[Tool], *, max_calls: int = MOST_CALLS, starts_in_reasoning: bool = False) -> str | None:
    """A grammar of any text that one to ``max_calls`` calls of ``tools`` may follow. Bounded as :func:`forced` is.

    The tag that opens a call is always followed by a valid one, and that by nothing but more of them. The JSON of a
    call may stand on a line of its own, as the templates of many models have it. Reasoning that is closed is free of
    all this; one that is not is text like any other, so that no model has to close what it did not open.
    """
    thought = "thought" if starts_in_reasoning else sequence(r'"\n"{0,2}', literal(THINK.opener), "thought")
    more = repeat(r'("\n"{0,2} call)', 0, max_calls - 1)
    calls = sequence("call", more, r"[ \n]{0,2}")
    around = _THOUGHT | gbnf.without(_OPENER, "text") | {"root": f"({thought})? text ({calls})?"}
    return _grammar(tools, around, own_line=r'"\n"?')


def _grammar(tools: Iterable[Tool], around: Mapping[str, str], own_line: str = "") -> str | None:
    """The rules ``around`` with ``call``, within limits. ``own_line`` may stand before and after a call's JSON."""
    offered = {tool.name: tool.parameters for tool in tools}
    if not offered:
        return None
    arguments = _within_limits(_translate(offered))
    names = {jsontext.dumps(name): sequence(literal(_AFTER_NAME), each.expression) for name, each in arguments.items()}
    before = literal(_BEFORE_NAME) if not own_line else sequence(literal(_OPENER), own_line, literal(_BRACE + _KEY))
    after = literal(_AFTER_ARGUMENTS) if not own_line else sequence(literal(_LAST_BRACE), own_line, literal(_CLOSER))
    rules = {**around, "call": sequence(before, gbnf.one_of(names), after)}
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
    names = sum(2 * len(name) + len(_AFTER_NAME) + len("object") for name in arguments) + _AROUND
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

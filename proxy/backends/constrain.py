"""How a kind of backend is kept from writing anything but valid calls: a row a kind.

Two means: a grammar, under which the model writes a call as the prompt shows it, alone or behind free text; and a JSON
Schema (``response_format``), under which the whole reply is the JSON of a call, without a tag. The reader takes both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

from proxy.apart import LARGE, apart
from proxy.backends.call_schema import call_schema
from proxy.backends.grammar import MOST_CALLS, forced, free
from proxy.backends.json_rules import LONGEST_STRING
from proxy.backends.probes import Kind
from proxy.backends.simplify import Schema
from proxy.config import Constrain
from proxy.core.errors import UpstreamError
from proxy.core.model import NOTHING, Json, Request, Tool

Fields: TypeAlias = Mapping[str, Json]
"""Fields of a chat request."""

_REFUSALS = frozenset({400, 422, 500, 501})

_MOST_KEPT = 64
"""Sets of tools for which a grammar or a schema is kept: to write one can take half a second."""

_LARGEST = 262_144
"""Characters of the schemas of all tools, which are more than fit a grammar or schema in any case."""

_NONE: Any = object()
_kept: dict[Hashable, Any] = {}  # by what it was made of; last what was asked for last

Made = TypeVar("Made")


async def constrain(
    kind: Kind, request: Request, when: Constrain, *, starts_in_reasoning: bool = False, size: int = 0
) -> Fields:
    """Fields that keep a backend from answering ``request`` with anything but valid calls.

    ``request`` is the client's, with its tools, and came in ``size`` bytes. Where a call has to come (``when`` is
    ``required`` or ``always``), nothing else can: exactly one call, whatever ``parallel`` says, since small models that
    may go on repeat themselves (of 50 questions SmolLM2-135M got 11 right with exactly one call and 3 with several
    allowed). Where the model may choose (``when`` is ``always``), text comes first and calls after it. That is not the
    default: of 20 prompts 8 got valid calls from SmolLM2-135M instead of 4, but 4 the right ones in both cases; a tool
    that it made up became a wrong one, which is worse than none. Nothing is added where the backend has no way, or no
    known way.
    """
    choice = request.tool_choice
    if when == "off" or not (choice.forced or (choice.mode == "auto" and when == "always")):
        return NOTHING
    starts_in_reasoning = starts_in_reasoning and not thinking_off(request)
    written = partial(_written, request.offered)
    if kind in _BY_GRAMMAR:
        most = None if choice.forced else MOST_CALLS if request.parallel else 1
        text = await _made(_grammar, await apart(size, written), most, starts_in_reasoning)
        return NOTHING if text is None else _BY_GRAMMAR[kind](text)
    if kind in _BY_SCHEMA and choice.forced and not starts_in_reasoning:  # JSON leaves no room for reasoning
        arguments, longest, fields = _BY_SCHEMA[kind]
        schema = await _made(_schema, await apart(size, written), arguments, longest)
        return NOTHING if schema is None else fields(schema)
    return NOTHING


def thinking_off(request: Request) -> bool:
    """Whether the client tells the chat template to close at once the reasoning that it opens."""
    told = request.extra.get("chat_template_kwargs")
    return isinstance(told, Mapping) and told.get("enable_thinking") is False


def may_be_refusal(error: UpstreamError) -> bool:
    """Whether a request with a constraint may have failed for that: only sending it again without one tells.

    vLLM answers a grammar that it cannot use with 500 and no word, others with 400 or 422 and words of any kind.
    """
    return (error.answered or error.status) in _REFUSALS and error.code != "context_length_exceeded"


async def _made(make: Callable[..., Made], *by: Hashable) -> Made:
    """What ``make`` makes of that, once for all requests that ask alike.

    Even a small schema can be much work, by references to references: it is done beside the event loop.
    """
    made: Made = _kept.pop((make, by), _NONE)
    if made is _NONE:
        made = await apart(LARGE, partial(make, *by))
    _kept[make, by] = made
    if len(_kept) > _MOST_KEPT:
        del _kept[next(iter(_kept))]
    return made


def _grammar(tools: str, max_calls: int | None, starts_in_reasoning: bool) -> str | None:
    """A grammar of up to ``max_calls`` calls behind free text; None: of one call."""
    if max_calls is None:
        return forced(_read(tools), starts_in_reasoning=starts_in_reasoning)
    return free(_read(tools), max_calls=max_calls, starts_in_reasoning=starts_in_reasoning)


def _schema(tools: str, arguments: str, longest_string: int) -> Schema | None:
    return call_schema(_read(tools), arguments=arguments, longest_string=longest_string)


def _json_schema(schema: Schema) -> Fields:
    form = {"name": "tool_call", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _written(tools: Iterable[Tool]) -> str:
    """Names and schemas as text, by which what was made of them is found again: clients send them with each request.

    A schema that cannot be written, or no longer within :data:`_LARGEST`, is that of any object.
    """
    entries: list[str] = []
    left = _LARGEST
    for tool in tools:
        try:
            entry = json.dumps([tool.name, tool.parameters])
        except (TypeError, ValueError, RecursionError):
            entry = ""
        if not entry or len(entry) > left:
            entry = json.dumps([tool.name, {"type": "object"}])
        left -= len(entry)
        entries.append(entry)
    return f"[{','.join(entries)}]"


def _read(text: str) -> list[Tool]:
    return [Tool(name, parameters=parameters) for name, parameters in json.loads(text)]


_BY_GRAMMAR: Mapping[Kind, Callable[[str], Fields]] = {
    # The server refuses a grammar together with `tools`, which are not sent as such.
    "llama.cpp": lambda text: {"grammar": text},
    # Since 0.10.2; before, the field was ignored. https://docs.vllm.ai/en/latest/features/structured_outputs/
    "vllm": lambda text: {"structured_outputs": {"grammar": text}},
    # https://docs.sglang.io/advanced_features/structured_outputs.html
    "sglang": lambda text: {"ebnf": text},
}
_BY_SCHEMA: Mapping[Kind, tuple[str, int, Callable[[Schema], Fields]]] = {
    # It writes the members in the order of the alphabet: the name has to come before what depends on it.
    "ollama": ("parameters", LONGEST_STRING, _json_schema),
    "lmstudio": ("arguments", LONGEST_STRING, _json_schema),
    # `json_schema` is refused; a string's bound is written out in brackets within brackets, which has its limits.
    "llama-cpp-python": (
        "arguments",
        LONGEST_STRING // 8,
        lambda schema: {"response_format": {"type": "json_object", "schema": schema}},
    ),
}
"""The member of a call that holds the arguments, the longest string in them, and the fields."""

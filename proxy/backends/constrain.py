"""How a kind of backend is kept from writing anything but valid calls: a row a kind.

Two means: a grammar, under which the model writes a call as the prompt shows it, alone or behind free text; and a JSON
Schema (``response_format``), under which the whole reply is the JSON of a call, without a tag. The reader takes both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

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
"""Sets of tools for which a grammar or a schema is kept: to write one can take a tenth of a second."""

_LARGEST = 262_144
"""Characters of the schemas of all tools, which are more than fit a grammar or schema in any case."""


def constrain(kind: Kind, request: Request, when: Constrain, *, starts_in_reasoning: bool = False) -> Fields:
    """Fields that keep a backend from answering ``request`` with anything but valid calls.

    ``request`` is the client's, with its tools. Where a call has to come (``when`` is ``required`` or ``always``),
    nothing else can: exactly one call, whatever ``parallel`` says, since small models that may go on repeat themselves
    (of 50 questions SmolLM2-135M got 11 right with exactly one call and 3 with several allowed). Where the model may
    choose (``when`` is ``always``), text comes first and calls after it. That is not the default: of 20 prompts 8 got
    valid calls from SmolLM2-135M instead of 4, but 4 the right ones in both cases; a tool that it made up became a
    wrong one, which is worse than none. Nothing is added where the backend has no way, or no known way.
    """
    choice = request.tool_choice
    if when == "off" or not (choice.forced or (choice.mode == "auto" and when == "always")):
        return NOTHING
    told = request.extra.get("chat_template_kwargs")
    if isinstance(told, Mapping) and told.get("enable_thinking") is False:
        starts_in_reasoning = False  # the template then closes what it opens
    if kind in _BY_GRAMMAR:
        return _by_grammar(request, _BY_GRAMMAR[kind], starts_in_reasoning)
    if kind in _BY_SCHEMA and choice.forced and not starts_in_reasoning:  # JSON leaves no room for reasoning
        return _BY_SCHEMA[kind](request)
    return NOTHING


def may_be_refusal(error: UpstreamError) -> bool:
    """Whether a request with a constraint may have failed for that: only sending it again without one tells.

    vLLM answers a grammar that it cannot use with 500 and no word, others with 400 or 422 and words of any kind.
    """
    return (error.answered or error.status) in _REFUSALS and error.code != "context_length_exceeded"


def _by_grammar(request: Request, fields: Callable[[str], Fields], starts_in_reasoning: bool) -> Fields:
    most = None if request.tool_choice.forced else MOST_CALLS if request.parallel else 1
    text = _grammar(_written(request.offered), most, starts_in_reasoning)
    return NOTHING if text is None else fields(text)


def _ollama(request: Request) -> Fields:
    """Ollama writes the members in the order of the alphabet: the name has to come before what depends on it."""
    return _json_schema(_schema(_written(request.offered), "parameters", LONGEST_STRING))


def _lmstudio(request: Request) -> Fields:
    return _json_schema(_schema(_written(request.offered), "arguments", LONGEST_STRING))


def _llama_cpp_python(request: Request) -> Fields:
    """``json_schema`` is refused; a string's bound is written out in brackets within brackets, which has its limits."""
    schema = _schema(_written(request.offered), "arguments", LONGEST_STRING // 8)
    return NOTHING if schema is None else {"response_format": {"type": "json_object", "schema": schema}}


def _json_schema(schema: Json) -> Fields:
    if schema is None:
        return NOTHING
    form = {"name": "tool_call", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


@lru_cache(maxsize=_MOST_KEPT)
def _grammar(tools: str, max_calls: int | None, starts_in_reasoning: bool) -> str | None:
    """A grammar of up to ``max_calls`` calls behind free text; None: of one call."""
    if max_calls is None:
        return forced(_read(tools), starts_in_reasoning=starts_in_reasoning)
    return free(_read(tools), max_calls=max_calls, starts_in_reasoning=starts_in_reasoning)


@lru_cache(maxsize=_MOST_KEPT)
def _schema(tools: str, arguments: str, longest_string: int) -> Schema | None:
    return call_schema(_read(tools), arguments=arguments, longest_string=longest_string)


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
_BY_SCHEMA: Mapping[Kind, Callable[[Request], Fields]] = {
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llama-cpp-python": _llama_cpp_python,
}

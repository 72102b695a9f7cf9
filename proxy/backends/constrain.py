"""How a kind of backend is kept from writing anything but valid calls: a row a kind.

Two means: a grammar, under which the model writes a call as the prompt shows it, alone or behind free text; and a JSON
Schema (``response_format``), under which the whole reply is the JSON of a call, without a tag. The reader takes both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from proxy.backends.call_schema import call_schema
from proxy.backends.grammar import forced, free
from proxy.backends.json_rules import LONGEST_STRING
from proxy.backends.probes import Kind
from proxy.config import Constrain
from proxy.core.errors import UpstreamError
from proxy.core.model import NOTHING, Json, Request

Fields: TypeAlias = Mapping[str, Json]
"""Fields of a chat request."""

_REFUSALS = frozenset({400, 422, 500, 501})


def constrain(kind: Kind, request: Request, when: Constrain, *, starts_in_reasoning: bool = False) -> Fields:
    """Fields that keep a backend from answering ``request`` with anything but valid calls.

    ``request`` is the client's, with its tools. Where a call has to come (``when`` is ``required`` or ``always``),
    nothing else can: exactly one call, whatever ``parallel`` says, since small models that may go on repeat themselves
    (of 50 questions SmolLM2-135M got 11 right with exactly one call and 3 with several allowed). Where the model may
    choose (``when`` is ``always``), text comes first and calls after it. Nothing is added where the backend has no way,
    or no known way.
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
    tools = request.offered
    if request.tool_choice.forced:
        text = forced(tools, starts_in_reasoning=starts_in_reasoning)
    elif request.parallel:
        text = free(tools, starts_in_reasoning=starts_in_reasoning)
    else:
        text = free(tools, max_calls=1, starts_in_reasoning=starts_in_reasoning)
    return NOTHING if text is None else fields(text)


def _ollama(request: Request) -> Fields:
    """Ollama writes the members in the order of the alphabet: the name has to come before what depends on it."""
    return _json_schema(call_schema(request.offered, arguments="parameters"))


def _lmstudio(request: Request) -> Fields:
    return _json_schema(call_schema(request.offered))


def _llama_cpp_python(request: Request) -> Fields:
    """``json_schema`` is refused; a string's bound is written out in brackets within brackets, which has its limits."""
    schema = call_schema(request.offered, longest_string=LONGEST_STRING // 8)
    return NOTHING if schema is None else {"response_format": {"type": "json_object", "schema": schema}}


def _json_schema(schema: Json) -> Fields:
    if schema is None:
        return NOTHING
    form = {"name": "tool_call", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


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

"""How a kind of backend is made to write a call when one has to come: a row a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from proxy.backends.grammar import forced
from proxy.backends.probes import Kind
from proxy.core.model import NOTHING, Json, Request

Strategy: TypeAlias = Callable[[Request, int, bool], Mapping[str, Json]]
"""From a request, the most calls, and whether the reply starts in reasoning, to fields of the chat request."""


def constrain(
    kind: Kind, request: Request, *, max_calls: int = 1, starts_in_reasoning: bool = False
) -> Mapping[str, Json]:
    """Fields that keep a backend from answering ``request`` with anything but calls.

    ``request`` is the client's, with its tools. Nothing is added when no call is required, or where the backend has no
    way. One call is the default even where more are allowed: small models that may go on repeat themselves (of 50
    questions SmolLM2-135M got 11 right with exactly one call and 3 with several allowed).
    """
    strategy = _STRATEGIES.get(kind)
    if strategy is None or not request.tool_choice.forced:
        return NOTHING
    return strategy(request, max_calls if request.parallel else 1, starts_in_reasoning)


def _llama_cpp(request: Request, max_calls: int, starts_in_reasoning: bool) -> Mapping[str, Json]:
    """An eager grammar. The server refuses one together with ``tools``, which are not sent as such."""
    told = request.extra.get("chat_template_kwargs")
    if isinstance(told, Mapping) and told.get("enable_thinking") is False:
        starts_in_reasoning = False  # the template then closes what it opens
    grammar = forced(request.offered, max_calls=max_calls, starts_in_reasoning=starts_in_reasoning)
    return NOTHING if grammar is None else {"grammar": grammar}


_STRATEGIES: Mapping[Kind, Strategy] = {"llama.cpp": _llama_cpp}

"""What is known about a backend and a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from proxy.core.model import Json, nothing

Kind: TypeAlias = Literal["llama.cpp", "ollama", "lmstudio", "unknown"]


@dataclass(frozen=True, slots=True)
class Facts:
    """How a backend serves a model. ``source`` is a sentence for a person: how it is known.

    ``native``: the server itself turns ``tools`` into calls for this model. ``starts_in_reasoning``: the text of a
    reply begins inside ``<think>``, since the chat template opened it. ``prefill``: a final assistant message is gone
    on with. ``vision``: the model sees images; None = unknown. ``context`` is in tokens. ``fields`` go into each
    request whose reply is read as text, so that the server hands on what the model wrote.
    """

    kind: Kind
    native: bool
    source: str
    starts_in_reasoning: bool = False
    prefill: bool = False
    vision: bool | None = None
    context: int | None = None
    version: str | None = None
    fields: Mapping[str, Json] = field(default_factory=nothing)

"""What a reader yields: a closed union of small values.

The order within a reply: any number of text, reasoning, call and problem events, then ``Finish`` once, then at most one
``Usage``. A call is ``ToolCallStart``, one or more ``ToolArgumentsDelta``, ``ToolCallEnd``, never interleaved with
another call or with text. A ``Problem`` about a call comes before that call's ``ToolCallStart`` unless its arguments
were already flowing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from proxy.core.model import NOTHING, Json

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "error"]
"""``error``: the reply could not be completed honestly; ``Finish.message`` says why."""

_LONGEST_DETAIL = 200


class TextDelta(Struct, frozen=True):
    """More of the visible answer."""

    text: str


class ReasoningDelta(Struct, frozen=True):
    """More of the reasoning."""

    text: str


class ToolCallStart(Struct, frozen=True):
    """A call begins. ``index`` counts from 0 without gaps within a reply; ``id`` is unique."""

    index: int
    id: str
    name: str


class ToolArgumentsDelta(Struct, frozen=True):
    """More of the JSON text of the arguments."""

    index: int
    text: str


class ToolCallEnd(Struct, frozen=True):
    """The call is complete: the joined deltas are one JSON object."""

    index: int


class Refusal(Struct, frozen=True):
    """More of a refusal (OpenAI's ``refusal`` field)."""

    text: str


class Usage(Struct, frozen=True):
    """Token counts, None where the backend gave none. ``raw`` is the backend's own object."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    raw: Mapping[str, Json] = NOTHING

    def detail(self, group: str, name: str) -> int | None:
        """A count that the backend tells apart (``prompt_tokens_details``, ``cached_tokens``), None if it does not."""
        details = self.raw.get(group)
        count = details.get(name) if isinstance(details, Mapping) else None
        return count if isinstance(count, int) else None


class Problem(Struct, frozen=True):
    """A finding that is not fatal: something was repaired, converted, refused or cut.

    ``kind`` is one of a closed list (:data:`ProblemKind`), ``message`` a sentence for a person, ``call`` the index of
    the call it is about (None: about text), ``detail`` the piece of model output it is about, shortened.
    """

    kind: ProblemKind
    message: str
    call: int | None = None
    detail: str = ""


def shorten(text: str) -> str:
    """``text`` in a length fit for the detail of a :class:`Problem`."""
    return text if len(text) <= _LONGEST_DETAIL else text[:_LONGEST_DETAIL] + "…"


class Extra(Struct, frozen=True):
    """Fields of a message that have no event of their own (``annotations``, ``audio`` …), passed on as they are."""

    fields: Mapping[str, Json]


class Finish(Struct, frozen=True):
    """The reply is over. ``message`` is set for ``error`` only.

    ``stop_sequence`` is the text at which the backend stopped, where it said so: a client's stop sequence, or another.
    """

    reason: FinishReason
    message: str | None = None
    stop_sequence: str | None = None


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolArgumentsDelta
    | ToolCallEnd
    | Refusal
    | Usage
    | Problem
    | Extra
    | Finish
)

ProblemKind = Literal[
    "repaired",  # the syntax was mended; one reading
    "coerced",  # a value was converted to the type its schema asks for, losslessly
    "renamed",  # the tool's name was matched by case, separator or name space
    "dropped_text",  # words between a call's JSON and its closer
    "dropped_markup",  # a stray closer, a terminator, an empty tag
    "unreadable",  # looked like a call, has no single reading: stays visible as text
    "unknown_tool",  # no tool of that name was offered
    "invalid_arguments",  # the arguments do not validate against the schema
    "cut",  # the reply ended inside a call
    "fabricated_result",  # the model wrote a tool result by itself
    "extra_call",  # a second call although only one was allowed
    "promoted",  # the only call stood in the reasoning
    "late_reasoning",  # a lone closer: what stands before it was reasoning, but had gone out as text
    "rescued",  # a backend with tools of its own had left the call in its text
    "missing_call",  # a call was required and none came
    "schema",  # the tool's schema cannot be compiled: served without validation
]

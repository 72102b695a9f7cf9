"""Findings in words: what it was, why the proxy did what it did, and what would spare it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from proxy.core.events import ProblemKind

Verdict: TypeAlias = Literal["repaired", "refused", "note"]
"""What became of a call: the client got it mended; it got none, or one that is wrong; or nothing of a call changed."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """``why`` says what the proxy did and for what reason, ``mend`` what to do about it ("" if nothing)."""

    verdict: Verdict
    title: str
    why: str
    mend: str = ""


EXPLANATIONS: Mapping[ProblemKind, Explanation] = {
    "repaired": Explanation(
        "repaired",
        "Syntax mended",
        "The call was not valid JSON, but there is only one thing that it can mean. That is what the client got.",
        'Backends with grammars write none of these: try `constrain = "always"`.',
    ),
    "coerced": Explanation(
        "repaired",
        "Value converted",
        "The schema excludes the type that the model wrote, and the value can be converted without loss.",
    ),
    "renamed": Explanation(
        "repaired",
        "Tool name matched",
        "No tool has exactly this name, and just one differs only in case, separators or its name space.",
        "Tool names in one style, all of them, are easier to get right.",
    ),
    "promoted": Explanation(
        "repaired",
        "Call found in the reasoning",
        "The reply was reasoning alone, and ended in a complete and valid call: the model forgot to stop thinking.",
    ),
    "rescued": Explanation(
        "repaired",
        "Call rescued from the text",
        "The backend calls tools by itself, but left this complete and valid call in its text.",
        '`toolgraft check` measures whether `dispatcher = "xml"` does better with this model.',
    ),
    "unreadable": Explanation(
        "refused",
        "Not readable as a call",
        "It looks like a call, but has no reading or more than one. It stays visible as text; nothing is guessed.",
        "If it happens often, try `constrain`, or pin the `dialect` if the model has one of its own.",
    ),
    "unknown_tool": Explanation(
        "refused",
        "No such tool",
        "No tool of this name was offered, and none is close enough to be meant. The call is passed on as it is.",
        "Names that are easily mixed up, and tools that older turns mention but the request no longer offers, do this.",
    ),
    "invalid_arguments": Explanation(
        "refused",
        "Arguments do not fit the schema",
        "The call can be read but not be mended without guessing. It is passed on as it is, for the client to refuse.",
        "Descriptions, formats and enums help; see the findings about the tools.",
    ),
    "cut": Explanation(
        "refused",
        "Reply ended inside a call",
        "Half a call must not be run. It was dropped, and the finish reason says `length`.",
        "A larger `max_tokens`, or a larger context of the server.",
    ),
    "missing_call": Explanation(
        "refused",
        "No call came",
        "The client required a call and the model wrote none. It got what the model wrote, as text.",
        "Where the backend can be constrained a call is forced: see `constrain`.",
    ),
    "extra_call": Explanation(
        "refused",
        "One call too many",
        "The client takes one call at a time (`parallel_tool_calls: false`): this one was left out.",
    ),
    "fabricated_result": Explanation(
        "note",
        "Made-up tool result",
        "The model went on to write the tool's result by itself. Nothing from there on counts.",
    ),
    "dropped_text": Explanation(
        "note", "Words inside a call", "Between the call's JSON and its closing mark stood words; they were left out."
    ),
    "dropped_markup": Explanation(
        "note", "Stray mark", "A mark without its other half, or an empty one, was left out of the text."
    ),
    "late_reasoning": Explanation(
        "note",
        "Reasoning told too late",
        "A closing think mark came alone. What stood before it was reasoning, and had gone out as text.",
        "Set `starts_in_reasoning = true` for this model.",
    ),
    "schema": Explanation(
        "note",
        "Schema not usable",
        "The tool's JSON Schema cannot be compiled. The tool is served, and its arguments are not validated.",
        "Correct the schema; the finding says where.",
    ),
}

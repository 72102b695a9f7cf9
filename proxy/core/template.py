"""A protocol block of the user's own making, from a template, and the check of what it must tell a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from proxy.core.definitions import definition, to_json, writing
from proxy.core.errors import ConfigError, ToolgraftError
from proxy.core.model import AUTO, Json, Tool, ToolChoice
from proxy.core.templating import Script

NAMES = ("tools", "tool_choice", "parallel")

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)

_SAMPLE = (
    Tool(
        "book_berth",
        "Reserves a place in a marina.",
        {
            "type": "object",
            "properties": {
                "vessel": {"type": "object", "properties": {"draught": {"type": "number"}}},
                "mooring": {"enum": ["stern-to", "alongside"]},
                "crane": {"$ref": "#/$defs/Crane"},
            },
            "required": ["vessel"],
            "$defs": {"Crane": {"type": "object", "properties": {"hoist": {"type": "boolean"}}}},
        },
    ),
    Tool("tide_now"),
)
_MUST_SHOW = (
    ("the name of a tool", ("book_berth", "tide_now")),
    ("the description of a tool", ("Reserves a place in a marina.",)),
    ("a parameter", ("vessel", "mooring", "crane")),
    ("what is inside of a parameter", ("draught", "stern-to", "alongside")),
    ("the definitions of a schema ($defs)", ("hoist",)),
)
_ODD = (
    Tool("odd", parameters=True),
    Tool("odder", parameters={"properties": [], "required": True, "type": ["object", "null"]}),
    Tool("oddest", parameters={"properties": {"a": True, "b": {"items": [{}]}, "c": {"anyOf": {}}}}),
)
_CHOICES = (ToolChoice("required"), ToolChoice("named", "odd"), ToolChoice(allowed=frozenset({"odd", "odder"})))


class ProtocolTemplate:
    """A template that takes the place of the built-in protocol block.

    Its variables are ``tools`` (each with ``name``, ``description`` if it has one, ``parameters``: its JSON Schema, and
    ``format`` / ``input_examples`` if it has them), ``tool_choice`` (``mode``: auto, required or named; ``name``;
    ``allowed``: a list of names) and ``parallel``. The language is that of :mod:`proxy.core.templating`.

    Raises ``ConfigError`` when it cannot be used. ``label`` is what messages call it, the file's name say.
    """

    def __init__(self, source: str, label: str = "template") -> None:
        self._label = label
        try:
            self._script = Script(source, NAMES)
            shown = self._write(_SAMPLE, AUTO, parallel=True)
            for choice in _CHOICES:
                self._write(_ODD, choice, parallel=False)
        except ValueError as error:
            raise ConfigError(f"The protocol template {label} cannot be used: {error}.") from None
        shortcoming = next(_shortcomings(shown), None)
        if shortcoming is not None:
            raise ConfigError(f"The protocol template {label} {shortcoming}")

    def render(self, tools: Iterable[Tool], choice: ToolChoice = AUTO, *, parallel: bool = True) -> str:
        """The block for ``tools``. Same input, same text.

        Raises ``ClientError`` when a tool cannot be written as JSON, ``ToolgraftError`` (500) when the template fails
        at these tools although it passed the check.
        """
        try:
            return self._write(tools, choice, parallel=parallel)
        except ValueError as error:
            raise ToolgraftError(
                f"The protocol template {self._label} failed at the tools of this request: {error}.",
                code="template_failed",
            ) from None

    def _write(self, tools: Iterable[Tool], choice: ToolChoice, *, parallel: bool) -> str:
        shown: list[Json] = []
        for tool in tools:
            with writing(f"tool {tool.name!r}"):
                shown.append(definition(tool))
                to_json(shown[-1])
        allowed = None if choice.allowed is None else sorted(choice.allowed)
        chosen = {"mode": choice.mode, "name": choice.name, "allowed": allowed}
        return self._script.run({"tools": shown, "tool_choice": chosen, "parallel": parallel}).strip()


def _shortcomings(text: str) -> Iterator[str]:
    """What ``text``, made of the sample tools, fails to tell a model, and the mend."""
    for what, words in _MUST_SHOW:
        missing = [word for word in words if word not in text]
        if missing:
            yield (
                f"leaves out {what} ({missing[0]!r} of the tools it was tried with). "
                "Print each tool whole: {% for tool in tools %}{{ tool | tojson }}{% endfor %}"
            )
    calls = [call for call in _CALL.findall(text) if call.strip()]
    wrong = [call for call in calls if not _is_call(call)]
    if wrong or not calls:
        found = f"shows a call that is not valid: {wrong[0].strip()[:80]!r}" if wrong else "shows no call"
        yield (
            f"{found}. Write one out, in valid JSON: "
            '<tool_call>{"name": "tool_name", "arguments": {"parameter": "value"}}</tool_call>'
        )
    if "<tool_result" not in text:
        yield (
            "does not say how results come back. Tell the model that they follow in the next user message, each as "
            '<tool_result name="tool_name" id="call_id" status="ok">...</tool_result>, and are never its own to write.'
        )


def _is_call(text: str) -> bool:
    try:
        call = json.loads(text)
    except ValueError:
        return False
    return isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict)

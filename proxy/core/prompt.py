"""The text that tells a model which tools there are and how to call them.

The wording decides whether a model calls at all. It follows the ``# Tools`` / ``<tools>`` text of Hermes and Qwen chat
templates, which many models were trained on. Same tools, same bytes: servers reuse the prompt's prefix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from proxy.core import markup
from proxy.core.arguments import jsontext
from proxy.core.dialects import RESULTS_LINE
from proxy.core.errors import ClientError
from proxy.core.model import Json, Request, Tool

_CALL = markup.tool_call("tool_name", '{"parameter": "value"}')
_RESULT = '<tool_result name="tool_name" id="call_id" status="ok">...</tool_result>'

_BEFORE_TOOLS = """\
# Tools

You may call one or more tools to help with the user's request. Each line within these tags describes one tool, with \
the JSON Schema of its arguments:
<tools>
"""

_AFTER_TOOLS = f"""
</tools>

For each call, write a JSON object with the tool's name and its arguments within tool_call tags:
{_CALL}

- Call only the tools above, under their exact names, with arguments that fit their schemas. Never invent a tool.
- For several calls, write one such line after another. Finish a call before you write anything else.
- The results come in the next user message, after the line {RESULTS_LINE}, one for each call in order:
{_RESULT}
The status is "error" when a call failed. Never write a result yourself.
- When no tool is needed, answer in plain text without any tags."""

_EXAMPLE = f"""\
Example (this tool is made up, you do not have it):
User: How many people live in Lund?
Assistant: {markup.tool_call("example_population", '{"place": "Lund"}')}
User: {RESULTS_LINE}
{markup.tool_result("example_population", "call_1", "94393")}
Assistant: 94,393 people live in Lund."""

_PAST = f"""\
Tools were used earlier in this conversation. A call looks like this:
{_CALL}
Its result stands in the next user message, after the line {RESULTS_LINE}:
{_RESULT}
No tool can be called now. Answer in plain text without any tags."""

_FORMAT = "When you answer without calling a tool, the whole answer must be one JSON {kind}, and nothing else."

_TOLD = ("format", "input_examples")
"""Fields of a tool, besides its schema, that say how to call it: the grammar of a free-text tool, sample arguments."""

_KEPT_NULL = frozenset({"default", "const"})
_VALUES = frozenset({"default", "const", "enum", "examples", "example", "input_examples"})
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})


def render_protocol(tools: Iterable[Tool], *, example: bool = False) -> str:
    """The protocol block for ``tools``, in the order given; ``example`` adds a worked one (it helps very small models).

    Raises ``ClientError`` when a tool cannot be written as JSON (NaN, nesting of many hundred levels).
    """
    lines = "\n".join(_tool_line(tool) for tool in tools)
    protocol = _BEFORE_TOOLS + lines + _AFTER_TOOLS
    return f"{protocol}\n\n{_EXAMPLE}" if example else protocol


def render_past() -> str:
    """What to say when earlier turns hold calls and none may be made now."""
    return _PAST


def render_choice(request: Request) -> str:
    """One line that says which calls are wanted in this turn; ``""`` when the protocol block says it all."""
    choice = request.tool_choice
    said = []
    if choice.mode == "named":
        said.append(f"You must call the tool {_quoted(choice.name or '')} now.")
    elif choice.allowed is not None:
        names = ", ".join(_quoted(tool.name) for tool in request.offered)
        must = (
            "You must call one of these tools now"
            if choice.mode == "required"
            else "Only these tools may be called now"
        )
        said.append(f"{must}: {names}.")
    elif choice.mode == "required":
        said.append("You must call a tool now.")
    if not request.parallel:
        said.append("Make exactly one call." if choice.forced else "Make at most one call.")
    return " ".join(said)


def render_format(response_format: Mapping[str, Json] | None) -> str:
    """What ``response_format`` asks of an answer without calls, in words; ``""`` for plain text.

    Raises ``ClientError`` like :func:`render_protocol`.
    """
    if response_format is None:
        return ""
    wrapped = response_format.get("json_schema")
    schema = wrapped.get("schema") if isinstance(wrapped, Mapping) else response_format.get("schema")
    match response_format.get("type"):
        case "json_schema" | "json_object" if isinstance(schema, Mapping):
            fits = _FORMAT.format(kind="value that fits the schema below")
            return f"{fits}\n{_compact(schema, 'response_format')}"
        case "json_schema" | "json_object":
            return _FORMAT.format(kind="object")
        case _:
            return ""


def _tool_line(tool: Tool) -> str:
    shown: dict[str, Json] = {"name": tool.name}
    if tool.description:
        shown["description"] = tool.description
    shown["parameters"] = {} if tool.parameters is None else tool.parameters
    shown |= {key: tool.extra[key] for key in _TOLD if tool.extra.get(key) is not None}
    return _compact(shown, f"tool {tool.name!r}")


def _compact(value: Json, what: str) -> str:
    """Short JSON (15 % fewer tokens than with spaces) that cannot leave the block it stands in."""
    try:
        text = json.dumps(_without_nulls(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ClientError(f"{what} cannot be written as JSON: {error}") from None
    return markup.neutralise_json(text)


def _without_nulls(schema: Json) -> Json:
    """``schema`` less the keywords that some clients send as null; a null that is a value (``default`` …) stays."""
    if isinstance(schema, Mapping):
        return {
            key: value if key in _VALUES else _schemas(value) if key in _NAMED_SCHEMAS else _without_nulls(value)
            for key, value in schema.items()
            if value is not None or key in _KEPT_NULL
        }
    if isinstance(schema, (list, tuple)):
        return [_without_nulls(item) for item in schema]
    return schema


def _schemas(named: Json) -> Json:
    """A mapping of names to schemas: a name is never left out, a null schema admits anything."""
    if not isinstance(named, Mapping):
        return named
    return {name: {} if schema is None else _without_nulls(schema) for name, schema in named.items()}


def _quoted(name: str) -> str:
    return markup.neutralise_json(jsontext.dumps(name))

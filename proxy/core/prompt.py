"""The text that tells a model which tools there are and how to call them.

The wording decides whether a model calls at all. It follows the ``# Tools`` / ``<tools>`` text of Hermes and Qwen chat
templates, which many models were trained on. Same tools, same bytes: servers reuse the prompt's prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from proxy.core import markup
from proxy.core.arguments import jsontext
from proxy.core.definitions import definition, to_json, without_nulls, writing
from proxy.core.model import Json, KeptTools, Request, Tool
from proxy.core.protocol import RESULTS_LINE
from proxy.core.signatures import signature

if TYPE_CHECKING:
    from proxy.core.template import ProtocolTemplate

Style: TypeAlias = Literal["full", "compact"]
"""How tools are written: each as a line of JSON, or as a signature in the manner of TypeScript."""

STYLES: tuple[Style, ...] = get_args(Style)

_CALL = markup.tool_call("tool_name", '{"parameter": "value"}')
_RESULT = '<tool_result name="tool_name" id="call_id" status="ok">...</tool_result>'

_BEFORE_TOOLS = """\
# Tools

You may call one or more tools to help with the user's request. {described}:
<tools>
"""

_DESCRIBED: Mapping[Style, str] = {
    "full": "Each line within these tags describes one tool, with the JSON Schema of its arguments",
    "compact": (
        "Each function within these tags is one tool with the type of its arguments. Types that it names follow it; "
        "objects have only the keys shown"
    ),
}

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


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """How a model is told of its tools.

    ``example`` adds a worked one (it helps some small models; others copy its values). ``template`` replaces the whole
    protocol block; the other two then mean nothing.
    """

    example: bool = False
    style: Style = "full"
    template: ProtocolTemplate | None = None


DEFAULT = PromptOptions()


def render_prompt(request: Request, options: PromptOptions = DEFAULT) -> str:
    """The text that tells a model of the tools of ``request``, for its system message.

    Raises ``ClientError`` when a tool cannot be written as JSON (NaN, hundreds of levels), or by a template.
    """
    if options.template is not None:
        return options.template.render(request.tools, request.tool_choice, parallel=request.parallel)
    if isinstance(request.tools, KeptTools):
        return _kept(request.tools, options.example, options.style)
    return render_protocol(request.tools, example=options.example, style=options.style)


def render_protocol(tools: Iterable[Tool], *, example: bool = False, style: Style = "full") -> str:
    """The built-in protocol block for ``tools``, in the order given.

    Raises ``ClientError`` when a tool cannot be written as JSON (NaN, nesting of many hundred levels).
    """
    listed = ("\n" if style == "full" else "\n\n").join(_told(tool, style) for tool in tools)
    protocol = _BEFORE_TOOLS.format(described=_DESCRIBED[style]) + listed + _AFTER_TOOLS
    return f"{protocol}\n\n{_EXAMPLE}" if example else protocol


@lru_cache(maxsize=64)
def _kept(tools: KeptTools, example: bool, style: Style) -> str:
    """What :func:`render_protocol` says of the very same tools: the next request of a conversation has them too."""
    return render_protocol(tools, example=example, style=style)


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
            with writing("response_format"):
                return f"{fits}\n{to_json(without_nulls(schema))}"
        case "json_schema" | "json_object":
            return _FORMAT.format(kind="object")
        case _:
            return ""


def _told(tool: Tool, style: Style) -> str:
    with writing(f"tool {tool.name!r}"):
        shown = definition(tool)
        return to_json(shown) if style == "full" else signature(shown)


def _quoted(name: str) -> str:
    return markup.neutralise_json(jsontext.dumps(name))

"""The tools of a Messages request and what the client allows to be done with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, Json, Tool, ToolChoice
from proxy.wire.anthropic_messages.content import Block, blocks
from proxy.wire.choices import check_choice, refuse_client_side

_READ = frozenset({"name", "description", "input_schema", "strict", "type", "cache_control"})


class Offer(Struct, frozen=True):
    """What a request offers. ``dropped``: types of hosted tools left out."""

    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = AUTO
    parallel: bool = True
    dropped: tuple[str, ...] = ()


def read_offer(body: Mapping[str, Json]) -> Offer:
    """Read ``tools``, the changes that system messages make to them, and ``tool_choice``.

    Of two tools with one name the later counts. Types that only Anthropic's servers can run (``web_search_20250305`` …)
    are left out and reported: agents offer them always and do without. Tools with ``defer_loading`` are offered like
    the others, since there is no search for tools here. Raises ``ClientError``.
    """
    raw = body.get("tools")
    if raw is not None and not isinstance(raw, list):
        raise ClientError("`tools` must be a list.", param="tools")
    tools: dict[str, Tool] = {}
    dropped: list[tuple[Json, str]] = []  # names and types
    given = [(f"tools[{index}]", item) for index, item in enumerate(raw or ())]
    for where, item in [*given, *_changes(body.get("messages"))]:
        if item is None:
            tools.pop(where, None)
            continue
        if not isinstance(item, dict):
            raise ClientError(f"`{where}` must be an object that describes a tool.", param=where)
        kind, name = item.get("type"), item.get("name")
        if kind not in (None, "custom") and not isinstance(item.get("input_schema"), dict):
            if kind == "function":  # as OpenAI's APIs have tools: left out like a hosted tool it would be missed
                raise ClientError(
                    f"`{where}` is a tool as OpenAI's APIs have it. "
                    "Here a tool has a `name`, a `description` and an `input_schema`, and no type.",
                    param=where,
                )
            refuse_client_side(str(kind), where, "input_schema")
            dropped.append((name, str(kind)))
            continue
        if not isinstance(name, str) or not name:
            raise ClientError(f"`{where}` has no name: give the tool a `name`, a string.", param=where)
        tools[name] = _tool(name, item)
    choice, parallel = _read_choice(body.get("tool_choice"))
    for name, kind in dropped:
        if choice.name is not None and name == choice.name and name not in tools:
            raise ClientError(
                f"`tool_choice` asks for the hosted tool type {kind!r}, which this server cannot run. "
                "Offer a tool with an `input_schema`, or choose 'auto'.",
                param="tool_choice",
            )
    check_choice(choice, tools, "tool_choice")
    return Offer(tuple(tools.values()), choice, parallel, tuple(dict.fromkeys(kind for _, kind in dropped)))


def _tool(name: str, item: Block) -> Tool:
    description, strict = item.get("description"), item.get("strict")
    return Tool(
        name,
        description if isinstance(description, str) else "",
        item.get("input_schema"),
        strict if isinstance(strict, bool) else None,
        extra={key: value for key, value in item.items() if key not in _READ},
    )


def _changes(messages: Json) -> Iterator[tuple[str, Json]]:
    """Tools that messages add, with their place, and the names of those that they remove, with None."""
    for at, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for index, block in enumerate(_lists(content)):
            match block:
                case {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": item}}:
                    yield f"messages[{at}].content[{index}].tool.definition", item or {}
                case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": str(name)}}:
                    yield name, None


def _lists(content: Json) -> Iterable[Block]:
    return blocks(content) if isinstance(content, list) else ()


def _read_choice(raw: Json) -> tuple[ToolChoice, bool]:
    """The choice, and whether several calls may be made."""
    parallel = not (isinstance(raw, dict) and raw.get("disable_parallel_tool_use") is True)
    match raw:
        case None | "auto" | {"type": "auto"}:
            return AUTO, parallel
        case "any" | {"type": "any"}:
            return ToolChoice("required"), parallel
        case "none" | {"type": "none"}:
            return ToolChoice("none"), parallel
        case {"type": "tool", "name": str(name)}:
            return ToolChoice("named", name), parallel
    raise ClientError(
        "`tool_choice` must be an object whose `type` is 'auto', 'any' or 'none', or "
        '{"type": "tool", "name": "get_weather"}.',
        param="tool_choice",
    )

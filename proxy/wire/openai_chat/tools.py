"""The tools of a Chat Completions request and what the client allows to be done with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, Json, KeptTools, Tool, ToolChoice
from proxy.wire import jsonio
from proxy.wire.choices import check_choice, refuse_client_side

_LARGEST_KEPT = 128 * 1024  # bytes of the tools of a request; with the number of those kept, a bound on memory


class Offer(Struct, frozen=True):
    """What a request offers. ``legacy``: it came as ``functions``. ``dropped``: types of hosted tools left out."""

    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = AUTO
    legacy: bool = False
    dropped: tuple[str, ...] = ()


def read_offer(body: Mapping[str, Json]) -> Offer:
    """Read ``tools`` and ``tool_choice``, or else the older ``functions`` and ``function_call``.

    Of two tools with one name the later counts, as in a client's own table of handlers. Tool types that only OpenAI's
    servers can run (``web_search`` …) are left out and reported: agents offer them always and do without.
    Raises ``ClientError``.
    """
    legacy = not body.get("tools") and bool(body.get("functions"))
    field, choice_field = ("functions", "function_call") if legacy else ("tools", "tool_choice")
    raw = body.get(field)
    if raw is None:
        raw = []
    if not isinstance(raw, list):
        raise ClientError(f"`{field}` must be a list.", param=field)
    tools, dropped = _tools(raw, field)
    choice = _read_choice(body.get(choice_field), choice_field)
    if choice is not AUTO:
        check_choice(choice, {tool.name: tool for tool in tools}, choice_field)
    return Offer(tools, choice, legacy, dropped)


def _tools(raw: list[Json], field: str) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools, and the types of those left out. Clients send the same ones with every request, so they are kept."""
    try:
        text = jsonio.dumps(raw)
    except ValueError:
        return _read_tools(raw, field)
    return _kept(text, field) if len(text) <= _LARGEST_KEPT else _read_tools(raw, field)


@lru_cache(maxsize=64)
def _kept(text: bytes, field: str) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    raw = jsonio.loads(text)
    assert isinstance(raw, list)  # noqa: S101 (it was one)
    tools, dropped = _read_tools(raw, field)
    return KeptTools(tools), dropped


def _read_tools(raw: list[Json], field: str) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    tools: dict[str, Tool] = {}
    dropped: list[str] = []
    for index, item in enumerate(raw):
        param = f"{field}[{index}]"
        if not isinstance(item, dict):
            raise ClientError(f"`{param}` must be an object that describes a tool.", param=param)
        if field == "tools" and _is_hosted(item):
            refuse_client_side(str(item["type"]), param, "parameters")
            dropped.append(str(item["type"]))
            continue
        try:
            tool = Tool.of(item)
        except ValueError:
            raise ClientError(f"`{param}` has no name: give the tool a `name`, a string.", param=param) from None
        tools[tool.name] = tool
    return tuple(tools.values()), tuple(dict.fromkeys(dropped))


def _is_hosted(item: Mapping[str, Json]) -> bool:
    """A type of its own, and nothing that a model could call by name and schema."""
    return item.get("type") not in (None, "function", "custom") and not any(
        isinstance(item.get(key), dict) for key in ("function", "parameters", "input_schema")
    )


def _read_choice(raw: Json, field: str) -> ToolChoice:
    match raw:
        case None | "auto":
            return AUTO
        case "none":
            return ToolChoice("none")
        case "required" | "any":
            return ToolChoice("required")
        case {"type": "auto" | "none" | "required" | "any" as mode}:
            return _read_choice(mode, field)
        case {"type": "allowed_tools", "allowed_tools": {"tools": list(allowed), **rest}}:
            return _allowed(allowed, rest.get("mode"), field)
        case {"type": "allowed_tools", "tools": list(allowed), **rest}:
            return _allowed(allowed, rest.get("mode"), field)
        case {"function": {"name": str(name)}} | {"custom": {"name": str(name)}} | {"name": str(name)}:
            return ToolChoice("named", name)
        case {"type": str(kind)} if kind not in ("function", "custom", "tool", "allowed_tools"):
            raise ClientError(
                f"`{field}` asks for the hosted tool type {kind!r}, which this server cannot run. "
                "Offer a function tool, or choose 'auto'.",
                param=field,
            )
    raise ClientError(
        f"`{field}` must be 'auto', 'none', 'required' or an object that names a tool, such as "
        '{"type": "function", "function": {"name": "get_weather"}}.',
        param=field,
    )


def _allowed(items: list[Json], mode: Json, field: str) -> ToolChoice:
    names: list[str] = []
    for item in items:
        match item:
            case {"function": {"name": str(name)}} | {"custom": {"name": str(name)}} | {"name": str(name)}:
                names.append(name)
            case {"type": str(kind)} if kind not in ("function", "custom"):
                pass  # a hosted tool: it is not offered either
            case _:
                raise ClientError(f"`{field}` has an allowed tool without a name.", param=field)
    return ToolChoice("required" if mode in ("required", "any") else "auto", allowed=frozenset(names))

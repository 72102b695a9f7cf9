"""The tools of a Responses request, under the names that the model sees, and what may be done with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from msgspec import Struct

from proxy.core.errors import ClientError
from proxy.core.model import AUTO, NOTHING, Json, Tool, ToolChoice
from proxy.wire.bodies import text
from proxy.wire.choices import check_choice, refuse_client_side
from proxy.wire.openai_responses.builtins import BUILTINS

DEFAULT_NAMESPACE = "functions"
"""The name space that stands for none: some versions of codex put all their functions into it."""

_SHAPE = 'such as {"type": "function", "name": "get_weather"}'


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool as the client knows it. ``kind`` is ``function``, ``custom``, or a type of ``BUILTINS``."""

    kind: str
    name: str
    namespace: str | None = None


class Offer(Struct, frozen=True):
    """What a request offers.

    ``known`` has the client's view of each tool by the name that the model sees. ``notes`` are the descriptions of
    name spaces. ``dropped`` are the types of hosted tools that were left out.
    """

    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = AUTO
    known: Mapping[str, ClientTool] = NOTHING
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def visible_name(name: str, namespace: Json = None) -> str:
    """The name that the model sees. Clients match calls by both parts, so both are told apart again in the answer."""
    if not isinstance(namespace, str) or namespace in ("", DEFAULT_NAMESPACE):
        return name
    return f"{namespace.removesuffix('__')}__{name}"


def read_offer(body: Mapping[str, Json], found: Iterable[Json] = ()) -> Offer:
    """Read ``tools`` and ``tool_choice``. ``found`` are definitions that came in the history: they join the others at
    the end, so that what a server has read of the prompt stays as it was.

    Of two tools with one name in ``tools`` the later counts. Types that only OpenAI's servers can run (``web_search``
    …) are left out and reported: agents offer them always and do without. Raises ``ClientError``.
    """
    raw = body.get("tools")
    if raw is None:
        raw = []
    if not isinstance(raw, list):
        raise ClientError("`tools` must be a list.", param="tools")
    reading, later = _Reading(), _Reading()
    for index, item in enumerate(raw):
        param = f"tools[{index}]"
        if not isinstance(item, dict):
            raise ClientError(f"`{param}` must be an object that describes a tool.", param=param)
        reading.add(item, param)
    for item in found:
        if isinstance(item, dict):
            with suppress(ClientError):  # the past makes no request fail
                later.add(item, "input")
    reading.join(later)
    choice = _read_choice(body.get("tool_choice"), reading.known)
    check_choice(choice, reading.tools, "tool_choice")
    return Offer(
        tuple(reading.tools.values()),
        choice,
        reading.known,
        tuple(dict.fromkeys(reading.notes)),
        tuple(dict.fromkeys(reading.dropped)),
    )


class _Reading:
    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.known: dict[str, ClientTool] = {}
        self.notes: list[str] = []
        self.dropped: list[str] = []

    def add(self, item: Mapping[str, Json], param: str, namespace: str | None = None) -> None:
        kind = text(item.get("type")) or "function"
        if kind == "namespace" and namespace is None:
            self._add_namespace(item, param)
        elif kind in BUILTINS and not _runs_elsewhere(item):
            schema, words = item.get("parameters"), text(item.get("description"))
            row = BUILTINS[kind].tool
            row = replace(row, parameters=schema if isinstance(schema, dict) else row.parameters)
            self._keep(replace(row, description=words or row.description), kind, None)
        elif kind in ("function", "custom") or (kind not in BUILTINS and isinstance(item.get("parameters"), dict)):
            try:
                tool = Tool.of(item)
            except ValueError:
                raise ClientError(f"`{param}` has no name: give the tool a `name`, a string.", param=param) from None
            self._keep(_with_grammar(tool), "custom" if tool.custom else "function", namespace)
        else:
            refuse_client_side(kind, param, "parameters")
            self.dropped.append(kind)

    def join(self, other: _Reading) -> None:
        """Add what ``other`` has beside."""
        self.tools = self.tools | {name: tool for name, tool in other.tools.items() if name not in self.tools}
        self.known = other.known | self.known
        self.notes += other.notes
        self.dropped += other.dropped

    def _add_namespace(self, item: Mapping[str, Json], param: str) -> None:
        name, members = item.get("name"), item.get("tools")
        if not isinstance(name, str) or not name or not isinstance(members, list):
            raise ClientError(f"`{param}` is a name space: it needs a `name` and a list of `tools`.", param=param)
        for index, member in enumerate(members):
            if not isinstance(member, dict):
                inner = f"{param}.tools[{index}]"
                raise ClientError(f"`{inner}` must be an object that describes a tool.", param=inner)
            self.add(member, f"{param}.tools[{index}]", name)
        words = text(item.get("description")).strip()
        if words and members and name != DEFAULT_NAMESPACE:
            self.notes.append(f"About the tools whose names begin with {visible_name('', name)}: {words}")

    def _keep(self, tool: Tool, kind: str, namespace: str | None) -> None:
        name = visible_name(tool.name, namespace)
        self.known[name] = ClientTool(kind, tool.name, namespace)
        self.tools[name] = replace(tool, name=name)


def _runs_elsewhere(item: Mapping[str, Json]) -> bool:
    """A shell in a container of OpenAI's, or a search of tools that their servers make."""
    environment = item.get("environment")
    kind = environment.get("type") if isinstance(environment, dict) else None
    if item.get("type") == "tool_search":
        return item.get("execution") != "client"
    return isinstance(kind, str) and kind.startswith("container")


def _with_grammar(tool: Tool) -> Tool:
    """A custom tool whose description says what its input must look like. Nothing enforces it."""
    match tool.extra.get("format"):
        case {"type": "grammar", "definition": str(definition), **rest}:
            words = f"The input must follow this {rest.get('syntax') or ''} grammar:".replace("  ", " ")
            return replace(tool, description=f"{tool.description}\n\n{words}\n{definition}".lstrip())
    return tool


def _read_choice(raw: Json, known: Mapping[str, ClientTool]) -> ToolChoice:
    match raw:
        case None | "auto":
            return AUTO
        case "none":
            return ToolChoice("none")
        case "required":
            return ToolChoice("required")
        case {"type": "auto" | "none" | "required" as mode}:
            return _read_choice(mode, known)
        case {"type": "allowed_tools", "tools": list(allowed), **rest}:
            names = frozenset(name for item in allowed for name in _allowed(item, known))
            return ToolChoice("required" if rest.get("mode") == "required" else "auto", allowed=names)
        case {"type": "function" | "custom", "function": dict(body)} | {"type": "custom", "custom": dict(body)}:
            return _read_choice({"type": "function", "name": body.get("name")}, known)
        case {"type": "function" | "custom", "name": str(name), **rest}:
            return ToolChoice("named", _find(name, rest.get("namespace"), known))
        case {"type": str(kind)} if kind in known and known[kind].kind == kind:
            return ToolChoice("named", kind)
        case {"type": str(kind)} if kind not in ("function", "custom", "allowed_tools"):
            raise ClientError(
                f"`tool_choice` asks for the hosted tool type {kind!r}, which this server cannot run. "
                "Offer a function tool, or choose 'auto'.",
                param="tool_choice",
            )
    raise ClientError(
        f"`tool_choice` must be 'auto', 'none', 'required' or an object that names a tool, {_SHAPE}.",
        param="tool_choice",
    )


def _allowed(item: Json, known: Mapping[str, ClientTool]) -> Iterable[str]:
    match item:
        case {"type": "namespace", "name": str(name)}:
            yield from (visible for visible, tool in known.items() if tool.namespace == name)
        case {"type": "mcp"}:
            return  # it has a name, but of a tool that is not offered
        case {"name": str(name), **rest}:
            yield _find(name, rest.get("namespace"), known)
        case {"type": str(kind)} if kind in known and known[kind].kind == kind:
            yield kind
        case {"type": str(kind)} if kind not in ("function", "custom"):
            return  # a hosted tool: it is not offered either
        case _:
            raise ClientError(f"`tool_choice` has an allowed tool without a name, {_SHAPE}.", param="tool_choice")


def _find(name: str, namespace: Json, known: Mapping[str, ClientTool]) -> str:
    """The name that the model sees for a tool that the client names, with or without its name space."""
    exact = visible_name(name, namespace)
    if exact in known or namespace:
        return exact
    inside = [visible for visible, tool in known.items() if tool.name == name]
    return inside[0] if len(inside) == 1 else name

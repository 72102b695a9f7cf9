"""The values that pass between surfaces, dispatchers and backends: one request, in no vendor's words.

Everything is frozen. ``extra`` keeps the fields that we do not know, so that nothing a client says is lost.
What each request, reply or token makes anew is a ``msgspec.Struct``, here and in other modules: making one takes a
fifth of what a frozen dataclass takes.
JSON values are plain Python ones (``dict``, ``list``, ``str``, ``int``, ``float``, ``bool``, ``None``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Json: TypeAlias = Any
"""A decoded JSON value."""

NOTHING: Mapping[str, Json] = MappingProxyType({})


def nothing() -> Mapping[str, Json]:
    """The empty mapping, as the default of a field."""
    return NOTHING


Role = Literal["system", "user", "assistant", "tool"]
"""``developer`` is read as ``system``, ``function`` as ``tool``."""


class TextPart(Struct, frozen=True):
    """A piece of text."""

    text: str


class ImagePart(Struct, frozen=True):
    """An image by URL (``https:`` or ``data:``). ``detail`` is OpenAI's hint, None if not given."""

    url: str
    detail: str | None = None


class OtherPart(Struct, frozen=True):
    """A content part of another type (audio, file …), kept as the client sent it."""

    raw: Mapping[str, Json]


Part: TypeAlias = TextPart | ImagePart | OtherPart


class ToolCall(Struct, frozen=True):
    """A call made by the assistant. ``arguments`` is JSON text, exactly as the client replayed it (maybe invalid).

    ``custom`` calls (OpenAI's free-text tools) carry their ``input`` string as ``{"input": …}``.
    """

    id: str
    name: str
    arguments: str = "{}"
    custom: bool = False


def new_call_id() -> str:
    """A random call id of the shape that OpenAI uses."""
    return "call_" + os.urandom(12).hex()


class ToolResult(Struct, frozen=True):
    """The answer to a call. ``name`` only where the client gave one (legacy functions); the history pairs them."""

    call_id: str
    content: tuple[Part, ...] = ()
    name: str | None = None
    is_error: bool = False


class Message(Struct, frozen=True):
    """One turn entry. ``results`` come before ``content`` (an Anthropic user turn may hold both)."""

    role: Role
    content: tuple[Part, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    reasoning: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """The text parts joined, without a separator."""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client offers. ``parameters`` is its JSON Schema, None if the client gave none.

    ``custom`` marks OpenAI's free-text tools: one string argument called ``input``.
    """

    name: str
    description: str = ""
    parameters: Json = None
    strict: bool | None = None
    custom: bool = False
    extra: Mapping[str, Json] = field(default_factory=nothing, compare=False)

    @classmethod
    def of(cls, raw: Tool | Mapping[str, Json]) -> Tool:
        """A tool from OpenAI's shape (wrapped in ``function`` / ``custom`` or flat) or Anthropic's ``input_schema``.

        Lenient: a missing description or schema is fine. Raises ``ValueError`` when there is no name.
        """
        if isinstance(raw, Tool):
            return raw
        kind = raw.get("type")
        wrapped = raw.get("function") or raw.get("custom")
        body: Mapping[str, Json] = wrapped if isinstance(wrapped, Mapping) else raw
        name = body.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError("a tool needs a name")
        custom = kind == "custom" and "input_schema" not in body
        description = body.get("description")
        parameters = body.get("parameters", body.get("input_schema"))
        if custom:
            parameters = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
        strict = body.get("strict")
        known = {"name", "description", "parameters", "input_schema", "strict", "type", "function", "custom"}
        return cls(
            name=name,
            description=description if isinstance(description, str) else "",
            parameters=parameters,
            strict=strict if isinstance(strict, bool) else None,
            custom=custom,
            extra={key: value for key, value in body.items() if key not in known},
        )


class KeptTools(tuple[Tool, ...]):
    """Tools, none too large, that are kept for further requests that offer them. So may be what is made of them.

    Two of them are equal only if they are the same, so that what is kept of one is found without a look at its tools.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


class ToolChoice(Struct, frozen=True):
    """What the client allows. ``named`` needs ``name``. ``allowed`` filters the tools (OpenAI's ``allowed_tools``)."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None
    allowed: frozenset[str] | None = None

    @property
    def forced(self) -> bool:
        """A call must come."""
        return self.mode in ("required", "named")


AUTO = ToolChoice()


class Request(Struct, frozen=True):
    """A chat request. ``extra`` holds every other top-level field (sampling, ``stop`` …) as the client sent it."""

    messages: tuple[Message, ...]
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = AUTO
    parallel: bool = True
    stream: bool = False
    include_usage: bool = False
    response_format: Mapping[str, Json] | None = None
    extra: Mapping[str, Json] = NOTHING

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools that may be called in this turn: none for ``none``, one for ``named``, filtered by ``allowed``."""
        choice = self.tool_choice
        if choice.mode == "none":
            return ()
        if choice.mode == "named":
            return tuple(tool for tool in self.tools if tool.name == choice.name)
        if choice.allowed is not None:
            return tuple(tool for tool in self.tools if tool.name in choice.allowed)
        return self.tools

    @property
    def has_tool_history(self) -> bool:
        """Earlier turns hold calls or results."""
        return any(message.calls or message.results for message in self.messages)

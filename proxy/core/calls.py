"""From a call as the model wrote it to one as the client gets it: name matched, arguments typed and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial

from msgspec import Struct

from proxy.core.arguments.jsontext import dumps
from proxy.core.arguments.names import Names
from proxy.core.arguments.schema import ToolSchema
from proxy.core.bodies.base import Begun, RawCall, Value
from proxy.core.events import Problem, shorten
from proxy.core.model import Json, KeptTools, Tool

_LARGEST_KEPT = 32_768  # characters of a schema; with the number of those kept, a bound on memory
_MOST_NAMED = 50  # tools that are named for each call of an unknown one: the prompt has all of them


class Resolved(Struct, frozen=True):
    """A call that can be sent. ``declared``: the tool is offered; ``valid``: its schema accepts the arguments."""

    name: str
    arguments: str
    problems: tuple[Problem, ...]
    declared: bool
    valid: bool


class ToolSet:
    """The tools that a reply may call. Schemas are compiled when the first call of their tool arrives."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._names = Names(self._tools)
        self._schemas: dict[str, ToolSchema] = {}

    @classmethod
    def of(cls, tools: Iterable[Tool | Mapping[str, Json]]) -> ToolSet:
        """The set of ``tools``; of tools that are kept, one for all requests. Raises as :meth:`Tool.of` does."""
        return _set_of(tools) if isinstance(tools, KeptTools) else cls(map(Tool.of, tools))

    def __bool__(self) -> bool:
        return bool(self._tools)

    def declares(self, name: str) -> str | None:
        """The declared name that ``name`` stands for, None if there is none or more than one."""
        return name if name in self._tools else self._names.match(name)

    def knows_values(self, call: RawCall) -> bool:
        """Whether the tool is declared and names each parameter that ``call`` gives."""
        name = self.declares(call.name)
        schema = self.schema(name) if name is not None else None
        return schema is not None and all(
            isinstance(value, Value) and schema.names(value.key) for value in call.arguments
        )

    def schema(self, name: str) -> ToolSchema | None:
        """The compiled schema of the declared tool ``name``."""
        tool = self._tools.get(name)
        if tool is None:
            return None
        if name not in self._schemas:
            self._schemas[name] = compiled(tool.parameters)
        return self._schemas[name]

    def begun(self, call: Begun) -> str | None:
        """The JSON text of the arguments so far, of which those to come are a continuation; None of an unknown tool."""
        name = self.declares(call.name)
        schema = self.schema(name) if name is not None else None
        if schema is None:
            return None
        text = "{" + ", ".join(map(partial(_member, schema), call.values))
        last = call.last
        if last is not None and schema.is_text(last.key, last.string):
            text += f"{', ' if call.values else ''}{dumps(last.key)}: {dumps(last.text)[:-1]}"
        return text

    def resolve(self, raw: RawCall, index: int) -> Resolved:
        """Match, type, coerce and validate ``raw`` as the call number ``index``. Never raises."""
        problems = [Problem("repaired", repair, index, _shown(raw)) for repair in raw.repairs]
        name = self.declares(raw.name)
        if name is None:
            if self._tools:
                offered = ", ".join(sorted(self._tools)[:_MOST_NAMED])
                if len(self._tools) > _MOST_NAMED:
                    offered += f" and {len(self._tools) - _MOST_NAMED} more"
                problems.append(Problem("unknown_tool", f"There is no tool {raw.name!r}; there are: {offered}.", index))
            return Resolved(raw.name, _arguments(raw, ToolSchema(None)), tuple(problems), declared=False, valid=False)
        if name != raw.name:
            problems.append(Problem("renamed", f"{raw.name!r} was taken for the tool {name!r}.", index))
        schema = self.schema(name)
        assert schema is not None  # noqa: S101 (the name is declared)
        text = _arguments(raw, schema)
        if schema.problem is not None:
            problems.append(schema.problem)
        if schema.accepts(text):
            return Resolved(name, text, tuple(problems), declared=True, valid=True)
        text, coerced = schema.coerce(text)
        invalid = schema.validate(text)
        problems.extend(_about(index, coerced))
        problems.extend(_about(index, invalid))
        return Resolved(name, text, tuple(problems), declared=True, valid=not invalid)


@lru_cache(maxsize=64)
def _set_of(tools: KeptTools) -> ToolSet:
    return ToolSet(tools)


def compiled(parameters: Json) -> ToolSchema:
    """The compiled schema of a tool. Clients send the same tools with every request, so recent ones are kept."""
    try:
        text = json.dumps(parameters)
    except (TypeError, ValueError, RecursionError):
        return ToolSchema(parameters)
    return _kept(text) if len(text) <= _LARGEST_KEPT else ToolSchema(parameters)


@lru_cache(maxsize=512)
def _kept(text: str) -> ToolSchema:
    return ToolSchema(json.loads(text))


def _arguments(raw: RawCall, schema: ToolSchema) -> str:
    """The arguments as the text of an object; raw values are typed by ``schema``."""
    if isinstance(raw.arguments, str):
        return raw.arguments
    return "{" + ", ".join(map(partial(_member, schema), raw.arguments)) + "}"


def _member(schema: ToolSchema, value: Value) -> str:
    return f"{dumps(value.key)}: {schema.typed(value.key, value.text, value.string)}"


def _about(index: int, problems: Iterable[Problem]) -> list[Problem]:
    return [Problem(problem.kind, problem.message, index, problem.detail) for problem in problems]


def _shown(raw: RawCall) -> str:
    return shorten(raw.arguments if isinstance(raw.arguments, str) else raw.name)

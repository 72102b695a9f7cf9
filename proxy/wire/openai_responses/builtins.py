"""Tools that have a type instead of a schema and that the client runs by itself: served as functions.

The model sees a function whose arguments are the members of the call's action; the client gets the call as the item
that it knows. https://platform.openai.com/docs/guides/tools
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from proxy.core.arguments.schema import ToolSchema
from proxy.core.model import Json, Tool, ToolCall, nothing
from proxy.wire import jsonio
from proxy.wire.arguments import read_arguments

MILLISECONDS = {"type": "integer", "description": "Milliseconds that it may take."}


@dataclass(frozen=True, slots=True)
class Builtin:
    """One type. Its call is an item of type ``item`` whose ``member`` holds the arguments, beside ``always``.

    ``defaults`` are members of the action that the model is not asked for. ``shape`` is what the action must be for
    clients to read it, ``lists`` how a text is read where it wants a list. The result comes as an item of type ``item``
    with ``_output``.
    """

    tool: Tool
    item: str
    prefix: str
    member: str
    defaults: Mapping[str, Json] = field(default_factory=nothing)
    always: Mapping[str, Json] = field(default_factory=nothing)
    shape: ToolSchema = field(default_factory=lambda: ToolSchema(None))
    lists: Mapping[str, Callable[[str], list[str]]] = field(default_factory=nothing)

    def call_item(self, call: ToolCall, item_id: str) -> dict[str, Json] | None:
        """The item for a call of the model, None if its arguments do not fit the item and are not read as such."""
        try:
            action = self._action(call.arguments)
        except ValueError:
            return None
        return {
            "type": self.item,
            "id": item_id,
            "call_id": call.id,
            self.member: action,
            "status": "completed",
            **self.always,
        }

    def _action(self, arguments: str) -> Json:
        given = jsonio.loads(arguments)
        if not isinstance(given, dict):
            raise ValueError("no object")
        said = {key: self._list(key, value) for key, value in given.items() if value is not None}
        text, _ = self.shape.coerce(jsonio.dumps({**self.defaults, **said}).decode())
        action = jsonio.loads(text)
        without_nulls = {key: value for key, value in action.items() if value is not None}
        if self.shape.validate(jsonio.dumps(without_nulls).decode()):
            raise ValueError("another shape")
        return action

    def _list(self, key: str, value: Json) -> Json:
        if key not in self.lists or not isinstance(value, str) or not value.strip():
            return value
        with suppress(ValueError):
            if isinstance(written := jsonio.loads(value), list):
                return written
        return self.lists[key](value)

    def arguments(self, item: Mapping[str, Json]) -> str:
        """The arguments of a call that the client replays, without what the model was not asked for."""
        action = item.get(self.member)
        if not isinstance(action, dict):
            return read_arguments(action)
        kept = {key: value for key, value in action.items() if value is not None and self.defaults.get(key) != value}
        return jsonio.dumps(kept).decode()


def _tool(name: str, description: str, required: list[str], **properties: Json) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required}
    return Tool(name, description, schema)


def _shape(required: list[str], **properties: Json) -> ToolSchema:
    return ToolSchema({"type": "object", "properties": properties, "required": required})


_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}

BUILTINS: Mapping[str, Builtin] = {
    "local_shell": Builtin(
        _tool(
            "local_shell",
            "Run a command on the user's computer and get its output.",
            ["command"],
            command={"type": "array", "items": {"type": "string"}, "description": "The program and its arguments."},
            working_directory={"type": "string"},
            timeout_ms=MILLISECONDS,
            env={"type": "object", "additionalProperties": {"type": "string"}},
        ),
        "local_shell_call",
        "lsh",
        "action",
        {"type": "exec", "env": {}},
        shape=_shape(
            ["command"],
            type={"const": "exec"},
            command=_TEXTS,
            env={"type": "object", "additionalProperties": {"type": "string"}},
            timeout_ms={"type": "integer"},
            user={"type": "string"},
            working_directory={"type": "string"},
        ),
        lists={"command": shlex.split},
    ),
    "shell": Builtin(
        _tool(
            "shell",
            "Run shell commands one after another on the user's computer and get their output.",
            ["commands"],
            commands={"type": "array", "items": {"type": "string"}},
            timeout_ms=MILLISECONDS,
            max_output_length={"type": "integer", "description": "Characters of output to keep."},
        ),
        "shell_call",
        "sh",
        "action",
        {"timeout_ms": None, "max_output_length": None},
        shape=_shape(
            ["commands"], commands=_TEXTS, timeout_ms={"type": "integer"}, max_output_length={"type": "integer"}
        ),
        lists={"commands": lambda text: [text]},
    ),
    "apply_patch": Builtin(
        _tool(
            "apply_patch",
            "Create, change or delete one file.",
            ["type", "path"],
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path={"type": "string"},
            diff={
                "type": "string",
                "description": "Not for delete_file. For create_file every line of the file with + before it. For "
                "update_file hunks: a line @@, then lines with a space (kept), - (removed) or + (added) before them.",
            },
        ),
        "apply_patch_call",
        "apc",
        "operation",
        shape=ToolSchema(
            {
                "type": "object",
                "properties": {"path": {"type": "string"}, "diff": {"type": "string"}},
                "required": ["type", "path"],
                "anyOf": [
                    {"properties": {"type": {"const": "delete_file"}}},
                    {"properties": {"type": {"enum": ["create_file", "update_file"]}}, "required": ["diff"]},
                ],
            }
        ),
    ),
    "tool_search": Builtin(
        _tool(
            "tool_search",
            "Find more tools. Those that are found can be called from then on.",
            ["query"],
            query={"type": "string", "description": "What the tool should do."},
        ),
        "tool_search_call",
        "tsc",
        "arguments",
        always={"execution": "client"},
    ),
}
"""By the type of the tool, which is also the name that the model sees."""

CALLS: Mapping[str, Builtin] = {row.item: row for row in BUILTINS.values()}
RESULTS: Mapping[str, Builtin] = {f"{row.item}_output": row for row in BUILTINS.values()} | {
    "tool_search_output": BUILTINS["tool_search"]
}
"""By the type of an item in the history."""

"""The input of a Responses request as messages.

OpenAI keeps a flat list of items (a thought, a message, a call, a result …); here they are turns, and neighbouring
items of the assistant are one message. The past is read leniently, since one odd item must not make every later request
of a conversation fail; but what an item only refers to, or only OpenAI can read, is a 400: the answer depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from proxy.core.errors import ClientError
from proxy.core.model import Json, Message, Part, Role, TextPart, ToolCall, ToolResult
from proxy.wire import jsonio
from proxy.wire.arguments import custom_arguments, read_arguments
from proxy.wire.bodies import text
from proxy.wire.openai_responses.builtins import BUILTINS, CALLS, RESULTS
from proxy.wire.openai_responses.parts import read_parts
from proxy.wire.openai_responses.tools import visible_name

ROLES: Mapping[Json, Role] = {"system": "system", "developer": "system", "assistant": "assistant"}
"""Every other role is a user's."""

OPAQUE = frozenset({"compaction", "compaction_summary", "compaction_trigger", "context_compaction"})
"""Items about a history that OpenAI's servers have shortened or are to shorten."""

NOT_TOLD = frozenset({"id", "type", "status", "result", "encrypted_content", "fingerprint"})
"""Members of items that mean nothing to a model, or that may be images in base64."""

SILENT = frozenset({"configuration_update", "mcp_list_tools", "ghost_snapshot"})
"""Items that say nothing of the conversation."""


@dataclass(frozen=True, slots=True)
class History:
    """``tools`` are definitions of tools that came as items, as they came."""

    messages: tuple[Message, ...]
    tools: tuple[Json, ...] = ()


def read_input(raw: Json, recall: Callable[[str], Json] = lambda _: None) -> History:
    """Read ``input``, a text or a list of items. ``recall`` gives the item that an id refers to, None if unknown.

    Raises ``ClientError`` naming the item at fault.
    """
    if isinstance(raw, str):
        return History((Message("user", (TextPart(raw),)),))
    if not isinstance(raw, list) or not raw:
        raise ClientError("`input` must be a text or a list with at least one item.", param="input")
    reading = _Reading(recall)
    spoke = max((index for index, item in enumerate(raw) if _is_assistants(item)), default=-1)
    for index, item in enumerate(raw):
        param = f"input[{index}]"
        reading.present = index > spoke
        if isinstance(item, dict):
            reading.add(item, param)
        elif reading.present:
            raise ClientError(f"`{param}` must be an object.", param=param)
        elif item is not None:
            reading.add({"content": item}, param)
    reading.end_turn()
    return History(tuple(reading.messages), tuple(reading.tools))


@dataclass(slots=True)
class _Reading:
    recall: Callable[[str], Json]
    present: bool = True  # the item is of what is to be answered now
    messages: list[Message] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    said: list[Part] = field(default_factory=list)  # these three: the assistant's turn so far
    calls: list[ToolCall] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)

    def add(self, item: Mapping[str, Json], param: str) -> None:
        kind = text(item.get("type"))
        unknown = not kind and "role" not in item and "content" not in item
        if unknown and not self.present and not text(item.get("id")):
            if item:
                self._other("item", item, param)
            return
        if unknown or kind == "item_reference":
            item = self._referred(item, param)
            kind = text(item.get("type"))
        call_id = text(item.get("call_id")) or text(item.get("id"))
        if kind in ("message", ""):
            self._say(ROLES.get(text(item.get("role")), "user"), self._parts(item.get("content"), param))
        elif kind == "reasoning":
            self._think(item, param)
        elif kind == "function_call":
            self._call(item, call_id, read_arguments(item.get("arguments")))
        elif kind == "custom_tool_call":
            self._call(item, call_id, custom_arguments(text(item.get("input"))), custom=True)
        elif kind in ("function_call_output", "custom_tool_call_output", "computer_call_output"):
            self._result(item, call_id, param)
        elif kind in CALLS:
            row = CALLS[kind]
            self.calls.append(ToolCall(call_id, row.tool.name, row.arguments(item)))
        elif kind in RESULTS:
            self._builtin_result(kind, item, call_id, param)
        elif kind == "additional_tools":
            self._find_tools(item)
        elif kind in OPAQUE:
            raise ClientError(
                f"`{param}` is of the type {kind!r}, which only OpenAI's servers can read. Send the conversation "
                "itself, or a summary of it as a message.",
                param=param,
            )
        elif kind not in SILENT:
            self._other(kind, item, param)

    def end_turn(self) -> None:
        """End the assistant's turn. One that was only thought through is no turn."""
        if self.said or self.calls:
            reasoning = "\n\n".join(self.thoughts) or None
            self.messages.append(Message("assistant", tuple(self.said), tuple(self.calls), reasoning=reasoning))
        self.said, self.calls, self.thoughts = [], [], []

    def _parts(self, raw: Json, param: str) -> tuple[Part, ...]:
        return read_parts(raw, param, present=self.present)

    def _referred(self, item: Mapping[str, Json], param: str) -> Mapping[str, Json]:
        item_id = text(item.get("id"))
        found = self.recall(item_id) if item_id else None
        if isinstance(found, dict):
            return found
        if not item_id:
            raise ClientError(f"`{param}` needs a `type`, or a `role` and `content`.", param=param)
        raise ClientError(
            f"`{param}` refers to the item {item_id!r}, which is not kept here. Send the item itself, and `store: "
            "false`, which tells client libraries to do so.",
            code="item_not_found",
            param=param,
        )

    def _say(self, role: Role, parts: tuple[Part, ...]) -> None:
        if role != "assistant":
            self.end_turn()
            self.messages.append(Message(role, parts))
        elif parts:
            self.said += (TextPart("\n\n"), *parts) if self.said else parts

    def _think(self, item: Mapping[str, Json], param: str) -> None:
        for member in ("content", "summary"):
            parts = self._parts(item.get(member), param)
            words = "\n\n".join(part.text for part in parts if isinstance(part, TextPart))
            if words:
                self.thoughts.append(words)
                return

    def _call(self, item: Mapping[str, Json], call_id: str, arguments: str, *, custom: bool = False) -> None:
        name = visible_name(text(item.get("name")), item.get("namespace"))
        self.calls.append(ToolCall(call_id, name, arguments, custom))

    def _result(self, item: Mapping[str, Json], call_id: str, param: str) -> None:
        output, failed = item.get("output"), item.get("status") == "failed"
        if isinstance(output, dict) and "content" in output:  # how older versions of codex tell a failure
            failed = failed or output.get("success") is False
            output = output["content"]
        named = text(item.get("name"))
        name = visible_name(named, item.get("namespace")) if named else None
        self._answer(ToolResult(call_id, self._parts(output, param), name, failed))

    def _builtin_result(self, kind: str, item: Mapping[str, Json], call_id: str, param: str) -> None:
        if RESULTS[kind] is BUILTINS["tool_search"]:
            names = self._find_tools(item)
            words = f"Found: {', '.join(names)}." if names else "Nothing was found."
            self._answer(ToolResult(call_id, (TextPart(words),)))
        else:
            self._result(item, call_id, param)

    def _answer(self, result: ToolResult) -> None:
        self.end_turn()
        self.messages.append(Message("tool", results=(result,)))

    def _find_tools(self, item: Mapping[str, Json]) -> list[str]:
        """The names of the tools that an item defines."""
        tools = item.get("tools")
        found = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        self.tools += found
        names = []
        for tool in found:
            members = tool.get("tools")
            if tool.get("type") == "namespace" and isinstance(members, list):
                inner = [text(member.get("name")) for member in members if isinstance(member, dict)]
                names += [visible_name(name, tool.get("name")) for name in inner]
            else:
                names.append(text(tool.get("name")) or text(tool.get("type")))
        return names

    def _other(self, kind: str, item: Mapping[str, Json], param: str) -> None:
        """An item of a hosted tool, or of a type that is not known: its content, or a line that says what it was."""
        if "content" in item:
            self._say(ROLES.get(text(item.get("role")), "user"), self._parts(item.get("content"), param))
            return
        rest = {key: _words(value) for key, value in item.items() if key not in NOT_TOLD and value is not None}
        words = f"[{kind} {jsonio.dumps(rest).decode()}]" if rest else f"[{kind}]"
        output = kind.endswith(("_output", "_response"))
        self._say("user" if output else "assistant", (TextPart(words),))


def _is_assistants(item: Json) -> bool:
    if not isinstance(item, dict):
        return False
    kind = text(item.get("type"))
    return item.get("role") == "assistant" or kind in CALLS or kind in ("function_call", "custom_tool_call")


def _words(value: Json) -> Json:
    """``value`` without the data of images."""
    match value:
        case dict():
            return {key: _words(inner) for key, inner in value.items()}
        case list():
            return [_words(inner) for inner in value]
        case str() if value.startswith("data:"):
            return "[data left out]"
    return value

"""Recorded replies: what a model wrote and what was read out of it, as the inspector's page gives them to download."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proxy.core.collect import Reply
from proxy.core.grammar import AUTO
from proxy.core.model import Json, Tool
from proxy.core.parser import Parser, parse
from proxy.testing.streams import assert_stream_equals_whole, difference, essence

SUFFIX = ".toolgraft.json"
"""How the names of files end that hold a recorded reply."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded reply.

    ``text`` is what the model wrote, ``calls`` (each a ``name`` and decoded ``arguments``), ``content`` and
    ``reasoning`` what was read out of it. The rest is how: ``tools`` are those that were offered, None when nobody
    noted that, and the others mean what they mean to ``parse``.
    """

    name: str
    text: str
    calls: tuple[Mapping[str, Json], ...] = ()
    content: str = ""
    reasoning: str = ""
    tools: tuple[Tool, ...] | None = None
    dialect: str = AUTO
    model: str | None = None
    starts_in_reasoning: bool = False
    parallel: bool = True
    finish_reason: str | None = "stop"

    def __str__(self) -> str:
        return self.name

    @classmethod
    def load(cls, path: Path) -> Recording:
        """The recording in a file. Raises ``ValueError`` where there is none in it, ``OSError`` where no file is."""
        try:
            made = json.loads(path.read_bytes())
            tools = made.get("tools")
            return cls(
                path.name.removesuffix(SUFFIX),
                _text(made, "text"),
                tuple({"name": call["name"], "arguments": call["arguments"]} for call in made.get("calls", ())),
                _text(made, "content", ""),
                _text(made, "reasoning", ""),
                None if tools is None else tuple(Tool.of(tool) for tool in tools),
                _text(made, "dialect", AUTO),
                made.get("model"),
                made.get("starts_in_reasoning", False) is True,
                made.get("parallel", True) is True,
                made.get("finish_reason", "stop"),
            )
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"{path} holds no recorded reply: {error}") from error

    def parser(self) -> Parser:
        """A parser that reads as was read then."""
        return Parser(
            self.tools or (),
            dialect=self.dialect,
            model=self.model,
            starts_in_reasoning=self.starts_in_reasoning,
            read_calls=self._read_calls,
            parallel=self.parallel,
            stream_arguments_after=None,
        )

    def read(self) -> Reply:
        """What is read out of the text now."""
        return parse(
            self.text,
            self.tools or (),
            finish_reason=self.finish_reason,
            dialect=self.dialect,
            model=self.model,
            starts_in_reasoning=self.starts_in_reasoning,
            read_calls=self._read_calls,
            parallel=self.parallel,
        )

    def check(self) -> None:
        """Raise ``AssertionError`` unless the text means what it meant then, whole and in pieces."""
        reply = self.read()
        found = {
            "content": reply.content,
            "reasoning": reply.reasoning,
            "calls": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reply.calls],
        }
        right = {"content": self.content, "reasoning": self.reasoning, "calls": list(self.calls)}
        if found != right:
            said = difference(right, found, ("recorded", "read now"))
            raise AssertionError(f"{self.name} is not read as it was recorded:\n{said}")
        whole = essence(reply)
        assert_stream_equals_whole(self.text, self.parser, whole=lambda text: whole, ending=(self.finish_reason,))

    @property
    def _read_calls(self) -> bool:
        return self.tools is None or bool(self.tools)


def recordings(folder: str | Path) -> list[Recording]:
    """The recordings in the files ``*.toolgraft.json`` of a folder and those in it, by their names.

    Raises ``ValueError`` when there are none: a test over none would prove nothing.
    """
    found = sorted(Path(folder).rglob(f"*{SUFFIX}"))
    if not found:
        raise ValueError(f"there are no files *{SUFFIX} in {folder}")
    return [Recording.load(path) for path in found]


def _text(made: Json, key: str, default: str | None = None) -> str:
    value = made.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"`{key}` must be a text")
    return value

"""``toolgraft parse``: what the reader makes of a text, offline."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from proxy.core.collect import Reply
from proxy.core.errors import ConfigError
from proxy.core.grammar import AUTO, grammar
from proxy.core.model import Json, Tool
from proxy.core.parser import parse as read_reply

_REASONS = click.Choice(["stop", "length", "content_filter"])


@click.command()
@click.option(
    "--tools",
    "tools_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON file with the tools that the client offered: a list, or a request with `tools`.",
)
@click.option("--dialect", default=AUTO, show_default=True, help="Read one model family's way of writing calls only.")
@click.option("--model", metavar="NAME", help="The model's name: calls as its family writes them need not be valid.")
@click.option("--finish-reason", type=_REASONS, default="stop", show_default=True, help="Why the model stopped.")
@click.option("--starts-in-reasoning", is_flag=True, help="The prompt already ended in an opening think mark.")
@click.option("--explain", is_flag=True, help="List every repair, conversion and refusal as well.")
def parse(
    tools_file: Path | None,
    dialect: str,
    model: str | None,
    finish_reason: str,
    starts_in_reasoning: bool,
    explain: bool,
) -> None:
    """Read a model's text from standard input; write the reply as JSON: text, reasoning, tool calls."""
    try:
        grammar(dialect)
    except ValueError as error:
        raise ConfigError(f"--dialect: {error}") from None
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    reply = read_reply(
        text,
        _tools(tools_file),
        finish_reason=finish_reason,
        dialect=dialect,
        model=model,
        starts_in_reasoning=starts_in_reasoning,
    )
    click.echo(json.dumps(_shown(reply, explain=explain), indent=2))


def _tools(file: Path | None) -> tuple[Tool, ...]:
    if file is None:
        return ()
    try:
        raw = json.loads(file.read_bytes())
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON: {error}.") from None
    if isinstance(raw, dict):
        raw = raw.get("tools")
    if not isinstance(raw, list):
        raise ConfigError(f"{file} holds no list of tools; give a JSON list, or an object with a list `tools`.")
    try:
        return tuple(Tool.of(tool) for tool in raw)
    except (ValueError, AttributeError):
        raise ConfigError(f"{file} holds a tool without a name.") from None


def _shown(reply: Reply, *, explain: bool) -> Json:
    """``reply`` in the words of a chat completion's choice, with the findings behind it if they are asked for."""
    shown: dict[str, Json] = {
        "content": reply.content or (None if reply.calls else ""),
        "reasoning_content": reply.reasoning or None,
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls
        ],
        "finish_reason": reply.finish,
    }
    if explain:
        shown["problems"] = [
            {"kind": problem.kind, "message": problem.message, "call": problem.call, "detail": problem.detail}
            for problem in reply.problems
        ]
    return shown

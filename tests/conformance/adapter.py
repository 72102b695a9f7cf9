"""The reader as an engine of the public conformance suite ``canitoolcall``.

It has no tokenizer: its units are characters, which is the hardest way a stream can be cut. Run it with::

    canitoolcall run --engine tests.conformance.adapter:ToolgraftAdapter --env PYTHONPATH=.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from canitoolcall.adapters.base import Adapter, ReplayInput, Support, ToolSpec
from canitoolcall.chunking import TokensPerStep
from canitoolcall.results import ParsedToolCall, ParseResult

from proxy.core.collect import Reply, collect
from proxy.core.grammar import grammar
from proxy.core.parser import Parser, parse


class ToolgraftAdapter(Adapter):
    """Replays raw model output through :class:`~proxy.core.parser.Parser`."""

    name: ClassVar[str] = "toolgraft"
    pinned_version: ClassVar[str] = version("toolgraft")
    supports_text_deltas: ClassVar[bool] = True
    tokens_per_step: ClassVar[TokensPerStep] = "many"

    def version(self) -> str:
        return self.pinned_version

    def supports(self, family: str, model: str) -> Support:
        return Support(True)

    def parser_config(self, raw: ReplayInput) -> dict[str, Any]:
        """What the reader is told: nothing of the model, only how its prompt ends."""
        return {
            "dialect": "auto",
            "starts_in_reasoning": (raw.generation_prompt or "").rstrip().endswith(_think_openers()),
            "stream_arguments_after": None,
        }

    def units(self, raw: ReplayInput) -> list[int]:
        return [ord(char) for char in raw.text]

    def special_token_ids(self, raw: ReplayInput) -> Collection[int] | None:
        return {ord("<"), ord("|"), ord("｜"), ord("["), ord("{")}

    def parse(self, raw: ReplayInput, tools: Sequence[ToolSpec]) -> ParseResult:
        config = self.parser_config(raw)
        del config["stream_arguments_after"]
        return _result(parse(raw.text, tools, finish_reason=_finish(raw), **config))

    def parse_stream(self, raw: ReplayInput, chunks: Sequence[Sequence[int]], tools: Sequence[ToolSpec]) -> ParseResult:
        return self.parse_stream_text(raw, ["".join(map(chr, chunk)) for chunk in chunks], tools)

    def parse_stream_text(self, raw: ReplayInput, deltas: Sequence[str], tools: Sequence[ToolSpec]) -> ParseResult:
        parser = Parser(tools, **self.parser_config(raw))
        events = [event for delta in deltas for event in parser.feed(delta)]
        return _result(collect([*events, *parser.close(_finish(raw))]))


def _think_openers() -> tuple[str, ...]:
    return tuple(grammar().closers_of)


def _finish(raw: ReplayInput) -> str:
    return "length" if raw.truncated else "stop"


def _result(reply: Reply) -> ParseResult:
    return ParseResult(
        content=reply.content or None,
        reasoning_content=reply.reasoning or None,
        tool_calls=tuple(ParsedToolCall(call.name, call.arguments) for call in reply.calls),
        exception=reply.message,
    )

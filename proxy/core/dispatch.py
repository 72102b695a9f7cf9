"""How a request reaches a backend and how its reply is read: in the XML protocol, or with the backend's own calls.

A dispatcher makes the request that goes upstream and a reader for one reply to it. No wire shapes are known here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from proxy.core.callrules import CallRules
from proxy.core.content import text_of
from proxy.core.errors import ClientError
from proxy.core.events import Event, FinishReason
from proxy.core.history import HistoryOptions, render_history
from proxy.core.model import Json, OtherPart, Request, new_call_id
from proxy.core.parser import Parser
from proxy.core.prompt import DEFAULT, PromptOptions, render_choice, render_format, render_past, render_prompt
from proxy.core.readers import NativeReader, XmlReader
from proxy.core.replay import mended

NOT_SENT = frozenset(
    {
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "functions",
        "function_call",
        "store",
        "metadata",
        "service_tier",
        "user",
        "prompt_cache_key",
        "reasoning_effort",
        "grammar",
        "json_schema",
        "logprobs",
        "top_logprobs",
    }
)
"""Top-level fields that stay here in xml mode: what the protocol replaces, what backends without it may refuse,
grammars, which would make calls impossible (and of which some abort a llama.cpp server), and what an answer that is
made of events has no place for."""


class Reader(Protocol):
    """An event filter for one reply: the upstream's events in, the client's out."""

    @property
    def done(self) -> bool:
        """Whether nothing that follows counts, so that the upstream can be closed (then :meth:`close`)."""

    def feed(self, event: Event) -> list[Event]:
        """Take one event. ``Finish`` ends the reply; only ``Usage`` may follow."""

    def close(self, finish_reason: FinishReason | None = None) -> list[Event]:
        """End a reply whose ``Finish`` never came (``error``: its stream broke). Nothing, if it did come."""


class Dispatcher(Protocol):
    """One way to give a backend tools."""

    @property
    def mode(self) -> Literal["xml", "native"]:
        """Its name in configuration."""

    def prepare(self, request: Request) -> Request:
        """The request to send upstream. Raises ``ClientError`` for what cannot be said to the backend."""

    def reader(self, request: Request) -> Reader:
        """A reader for the reply to ``request`` (the client's own, not the prepared one)."""


class XmlDispatcher(Struct, frozen=True):
    """Tools as a system prompt, calls as text.

    ``options`` say what the backend's template takes, ``prompt`` how the model is told of its tools. ``model`` is what
    it is called, if that is known better than from the request. The others are settings of the
    :class:`~proxy.core.parser.Parser`.
    """

    mode: ClassVar[Literal["xml"]] = "xml"

    options: HistoryOptions = HistoryOptions()
    prompt: PromptOptions = DEFAULT
    dialect: str = "auto"
    model: str | None = None
    starts_in_reasoning: bool = False
    stream_arguments_after: int | None = 8192
    new_id: Callable[[], str] = new_call_id

    def prepare(self, request: Request) -> Request:
        """``request`` as system, user and assistant turns, without tools.

        Where nothing of tools is in play there is no protocol, and the text passes as it is. A ``response_format`` goes
        on as it is unless tools are offered: a grammar for the answer would make calls impossible.
        Raises ``ClientError`` when several choices are asked for, when what is to be answered holds a part that cannot
        be shown as text (in earlier turns a word says that it was left out), and as the prompt does.
        """
        if _choices(request) > 1:
            raise ClientError(
                "`n` must be 1 when tools are in play: this model calls tools in text, and one reply is read at a "
                "time. Send the request several times instead.",
                param="n",
            )
        offered = bool(request.offered)
        system = closing = ""
        if offered:
            described = (render_prompt(request, self.prompt), render_format(request.response_format))
            system = "\n\n".join([text for text in described if text])
            closing = render_choice(request)
        elif request.has_tool_history:
            system = render_past()
        if system:
            _refuse_unshown(request)
        return Request(
            render_history(
                request.messages,
                system=system,
                closing=closing,
                options=self.options,
                neutral=bool(system),
            ),
            request.model,
            stream=request.stream,
            include_usage=request.include_usage,
            response_format=None if offered else request.response_format,
            extra={key: value for key, value in request.extra.items() if _is_sent(key, value)},
        )

    def reader(self, request: Request) -> Reader:
        """Reads calls where tools are offered, else tells reasoning from text."""
        choice, offered = request.tool_choice, request.offered
        parser = Parser(
            offered,
            dialect=self.dialect,
            model=self.model or request.model,
            starts_in_reasoning=self.starts_in_reasoning,
            read_calls=bool(offered),
            parallel=reads_several(request),
            stream_arguments_after=self.stream_arguments_after,
            whole=not request.stream,
            new_id=self.new_id,
        )
        limited = choice.forced or choice.allowed is not None or not offered
        rules = CallRules(
            names=frozenset([tool.name for tool in offered]) if limited else None,
            forced=choice.forced and bool(offered),
            single=not request.parallel,
        )
        return XmlReader(parser, rules)


class NativeDispatcher(Struct, frozen=True):
    """The backend's own tool calling: the past is made good on the way there, nothing is changed on the way back."""

    mode: ClassVar[Literal["native"]] = "native"

    def prepare(self, request: Request) -> Request:
        """``request`` with a past that no backend refuses."""
        return replace(request, messages=mended(request.messages))

    def reader(self, request: Request) -> Reader:
        """Passes all events."""
        return NativeReader()


def _refuse_unshown(request: Request) -> None:
    last = request.messages[-1] if request.messages else None
    for part in last.content if last is not None and last.role == "user" else ():
        if isinstance(part, OtherPart) and text_of(part) is None:
            raise ClientError(
                f"A part of type {part.raw.get('type')!r} cannot be shown to this model while it has tools, since it "
                "reads text only. Send what the part says as text.",
                param="messages",
            )


def reads_several(request: Request) -> bool:
    """Whether more than one call of a reply is read. Not all of them need count: a call of another tool must not use up
    the one call that a named choice allows.
    """
    return request.parallel or request.tool_choice.mode == "named"


def goes_untouched(request: Request) -> bool:
    """Whether nothing of tools is in play in ``request``, and it asks for what events do not hold: several choices, or
    the tokens' probabilities. It goes to any backend in the client's own bytes then, whatever the dispatcher.
    """
    in_play = bool(request.offered) or request.has_tool_history
    return not in_play and (_choices(request) > 1 or bool(request.extra.get("logprobs")))


def _choices(request: Request) -> int:
    count = request.extra.get("n")
    return count if isinstance(count, int) else 1


def _is_sent(name: str, value: Json) -> bool:
    """Nulls and an empty ``stop`` say nothing, and some backends refuse them."""
    return name not in NOT_SENT and value is not None and not (name == "stop" and not value)

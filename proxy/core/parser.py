"""The reader of model output: text in, in pieces or whole; events out. It never raises on any text.

The reader is always in one mode, and a mode is one method that uses up some of the pending text:

    head        before the first visible character: white space, an opening think mark
    reasoning   between think marks
    text        the answer: looks for marks
    quoting     at a call behind a think mark that stands within a line of the answer
    fence       behind the opening line of a code fence: a call may follow
    choose      behind the opener of a call: which kind of body is it?
    body        inside a call: a body reader decides where it ends
    tentative   behind a call that only counts if nothing else follows (inside code, or without any tag)
    over        nothing that follows counts

What a mode cannot decide yet stays pending and is given again with the next piece. In text it is never longer than a
mark. A call is held back until it is complete, so nothing that went out is ever taken back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from proxy.core.bare import begins_bare
from proxy.core.bodies.base import RawCall
from proxy.core.bodies.jsonbody import JsonReader
from proxy.core.calls import ToolSet
from proxy.core.code import TICKS
from proxy.core.collect import Reply, collect
from proxy.core.events import Event, Finish, FinishReason, TextDelta, ToolArgumentsDelta, ToolCallStart
from proxy.core.grammar import AUTO, grammar
from proxy.core.machine import Step
from proxy.core.model import Json, Tool, new_call_id
from proxy.core.protocol import RESULT_MARKS, RESULTS_LINE
from proxy.core.regions import Tentative
from proxy.core.thinking import ReasoningModes

_SPACE = re.compile(r"\s*")


class Parser(ReasoningModes):
    """Reads one reply. Raises ``ValueError`` for an unknown ``dialect`` or a tool without a name, never for a text.

    ``tools``
        What the client offers: :class:`~proxy.core.model.Tool` values or OpenAI / Anthropic tool objects. Names are
        matched and arguments typed, coerced and validated against them. Without tools every name is taken as it is.
    ``dialect``
        ``"auto"`` or the name of one row of :data:`~proxy.core.dialects.DIALECTS`.
    ``model``
        The model's name, as far as it is known. In ``"auto"``, calls in the way of another family must be valid ones of
        declared tools; with a model of that family by its name they need not be.
    ``starts_in_reasoning``
        The prompt already ended in an opening think mark.
    ``read_calls``
        False: nothing is a call, only reasoning is told from text.
    ``parallel``
        False: only the first call counts; then :attr:`done` is true.
    ``stream_arguments_after``
        Characters of one call after which its arguments go out in fragments, while they are still being written.
        0: at once; None: never, a call goes out when it is complete.
    ``whole``
        Nothing is returned before :meth:`close`, so that a lone closing think mark can still make what stands before it
        reasoning. Joined deltas are otherwise the same.
    ``new_id``
        Makes call ids.
    """

    __slots__ = ("_finished", "_whole")

    def __init__(
        self,
        tools: Iterable[Tool | Mapping[str, Json]] = (),
        *,
        dialect: str = AUTO,
        model: str | None = None,
        starts_in_reasoning: bool = False,
        read_calls: bool = True,
        parallel: bool = True,
        stream_arguments_after: int | None = 8192,
        whole: bool = False,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._whole = whole
        self._finished = False
        super().__init__(
            ToolSet.of(tools),
            grammar(dialect, model),
            starts_in_reasoning=starts_in_reasoning,
            read_calls=read_calls,
            parallel=parallel,
            stream_after=None if whole else stream_arguments_after,
            new_id=new_id,
        )

    # ---- in and out

    @property
    def inside_call(self) -> bool:
        """Whether a call has been opened and is not complete."""
        return self._region is not None and not (isinstance(self._body, JsonReader) and self._body.whole)

    def feed(self, text: str) -> list[Event]:
        """Read a piece of the reply's text; the events that are certain by now."""
        if text and not self._finished:
            if not self._had_reasoning and not self._out.taken:
                self._source.append(text)
            self._take_in(text)
        return [] if self._whole else self._out.take()

    def feed_reasoning(self, text: str) -> list[Event]:
        """Take a piece of reasoning that the backend told apart by itself; the events that are certain by now."""
        if text and not self._finished:
            self._had_reasoning = True
            self._source.clear()
            self._out.reason(text)
        return [] if self._whole else self._out.take()

    def close(self, finish_reason: str | None = "stop") -> list[Event]:
        """The reply is over; the remaining events, ``Finish`` last.

        ``finish_reason`` is the backend's (``stop``, ``length``, ``tool_calls``, ``content_filter``), ``"error"`` for a
        broken stream, None when it gave none (inside a call this means that the reply was cut).
        """
        if self._finished:
            return []
        if finish_reason is None:
            finish_reason = "length" if self.inside_call else "stop"
        self._closing = finish_reason
        self._run(final=True)
        self._promote()
        self._finished = True
        if self._failure is not None:
            self._out.event(Finish("error", self._failure))
        else:
            self._out.event(Finish(self._finish_reason(finish_reason)))
        return self._out.take()

    def _finish_reason(self, given: str) -> FinishReason:
        if given in ("length", "content_filter", "error"):
            return given  # type: ignore[return-value]  # all three are finish reasons
        return "tool_calls" if self._out.calls else "stop"

    # ---- mode: text

    def _text(self, text: str, at: int, final: bool) -> Step:
        marks = self._grammar.marks if self._read_calls else self._grammar.plain_marks
        end, found = marks.split(text, at, final=final)
        self._show(text[at:end])
        return (end, False) if found is None else self._mark(found.mark, text, end, final)

    def _mark(self, mark: str, text: str, at: int, final: bool) -> Step:
        """What the mark at ``at`` means here. In code only calls, fences and a lone think closer mean anything."""
        table = self._grammar
        end = at + len(mark)
        if mark in ("`", "~~~"):
            return self._ticks(text, at, final)
        if mark in ("{", "["):
            return self._maybe_bare(text, at, final)
        if mark in table.forms:
            if self._literal_think and self._code.outside:
                self._mode = type(self)._quoting
                return at, True
            return self._open(mark, at)
        if mark in table.lone_closers and not self._had_reasoning and not self._code.inline:
            if self._literal_think:
                self._literal_think = ""
                self._show(mark)
            else:
                self._late_reasoning(mark, end)
        elif not self._code.outside:
            self._show(mark)
        elif mark in table.anywhere:
            self._open_reasoning(mark)
        elif mark in table.closers_of:
            if self._code.line_start or self._out.behind_call:
                self._out.reason("\n\n")
                self._open_reasoning(mark)
            else:
                self._literal_think = mark
                self._show(mark)
        elif mark in table.terminators:
            self._out.terminator(mark)
        elif mark in table.think_closers.marks:
            if self._out.has_text and mark not in table.wrappers:
                self._show(mark)
        elif mark in RESULT_MARKS or mark == RESULTS_LINE:
            return self._result(mark, text, at, final)
        elif mark in table.stray_closers or (mark in table.late_closers and self._out.calls):
            self._out.problem("dropped_markup", f"A closing {mark} stood outside of any call.", mark)
        elif mark in table.late_closers:
            self._show(mark)
        return end, True

    def _result(self, mark: str, text: str, at: int, final: bool) -> Step:
        """The model writes a tool's result by itself: behind a call or as the first thing, the rest is made up."""
        if not self._out.calls and self._out.has_text:
            self._show(mark)
            return at + len(mark), True
        if mark == RESULTS_LINE:  # only if a result follows
            here = _SPACE.match(text, at + len(mark)).end()  # type: ignore[union-attr]
            if not final and (here == len(text) or self._grammar.results.may_start(text, here)):
                return at, False
            if self._grammar.results.at(text, here) is None:
                self._show(mark)
                return at + len(mark), True
        self._out.problem("fabricated_result", "The model wrote a tool result by itself; what follows was dropped.")
        self._mode = type(self)._over
        return at, True

    # ---- modes: code

    def _ticks(self, text: str, at: int, final: bool) -> Step:
        """A run of backticks or tildes: a fence at the start of a line, else inline code."""
        end = TICKS.match(text, at).end()  # type: ignore[union-attr]  # the mark says so
        if end == len(text) and not final:
            return at, False
        line = self._code.opens_fence(text, at, end, final=final)
        if line is None:
            return at, False
        if line:
            self._code.fence = text[at:end]
            self._fence_line = text[at:line]
            if len(text[end:line].split()) > 1:  # words, and so no part of a call
                self._show(self._fence_line)
                self._fence_line = ""
            self._mode = type(self)._fence
            return line, True
        self._code.run(text[at:end])
        self._show(text[at:end])
        return end, True

    def _fence(self, text: str, at: int, final: bool) -> Step:
        """Behind the line that opens a fence: if a call is the first thing in it, the line belongs to the call."""
        here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        self._fence_line += text[at:here]
        if here == len(text) and not final:
            return here, False
        opener = self._grammar.openers.at(text, here) if self._read_calls else None
        if opener is None and not final and self._read_calls and self._grammar.openers.may_start(text, here):
            return here, False
        if self._read_calls and self._out.empty and not self._headed and self._tentative is None:
            bare = begins_bare(self._tools, text, here, final=final)
            if bare is None:
                return here, False
            if bare:
                self._tentative = Tentative("whole", [self._fence_line])
                return self._open_bare(here, (self._code.fence,))
        self._mode = type(self)._text
        if opener is None:
            self._as_text(self._fence_line)
            return here, True
        if self._tentative is None:
            self._tentative = Tentative("fence", [])
        self._tentative.raw.append(self._fence_line)
        self._tentative.closed = False
        return self._open(opener, here)

    # ---- the end

    def _promote(self) -> None:
        """Complete, valid calls to declared tools that end the reasoning, when nothing else came, are calls."""
        reasoning = "".join(self._out.reasoning)
        wanted = self._read_calls and self._tools and not self._cut and self._failure is None
        if not wanted or not self._out.empty or not self._grammar.openers.find(reasoning):
            return
        if self._grammar.think_closers.find(reasoning):  # of another family: what stands behind it may be the answer
            return
        for call in self._trailing_calls(reasoning):
            resolved = self._tools.resolve(call, self._out.calls)
            if resolved.valid and not (self._out.calls and not self._parallel):
                self._out.problem("promoted", "The only call stood at the end of the reasoning.", call.name)
                self._out.call(resolved)

    def _trailing_calls(self, text: str) -> list[RawCall]:
        """The calls that ``text`` ends in."""
        inner = Parser(whole=True)
        inner._grammar, inner._tools, inner._had_reasoning = self._grammar, self._tools, True
        inner._mode = type(inner)._text
        tail: list[RawCall] = []
        name = ""
        for event in [*inner.feed(text), *inner.close("stop")]:
            if isinstance(event, TextDelta):
                tail = []
            elif isinstance(event, ToolCallStart):
                name = event.name
            elif isinstance(event, ToolArgumentsDelta):
                tail.append(RawCall(name, event.text))
        return tail


def parse(
    text: str,
    tools: Iterable[Tool | Mapping[str, Json]] = (),
    *,
    finish_reason: str | None = "stop",
    dialect: str = AUTO,
    model: str | None = None,
    starts_in_reasoning: bool = False,
    read_calls: bool = True,
    parallel: bool = True,
    new_id: Callable[[], str] = new_call_id,
) -> Reply:
    """Read a whole reply: what :class:`Parser` says of ``text``, folded.

    The arguments are those of :class:`Parser`, ``finish_reason`` is that of :meth:`Parser.close`. Raises as the former
    does, and never for a ``text``.
    """
    parser = Parser(
        tools,
        dialect=dialect,
        model=model,
        starts_in_reasoning=starts_in_reasoning,
        read_calls=read_calls,
        parallel=parallel,
        whole=True,
        new_id=new_id,
    )
    return collect([*parser.feed(text), *parser.close(finish_reason)])

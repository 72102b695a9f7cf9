"""The reader of model output: text in, in pieces or whole; events out. It never raises on any text.

The reader is always in one mode, and a mode is one method that uses up some of the pending text:

    head        before the first visible character: white space, an opening think mark
    reasoning   between think marks
    text        the answer: looks for marks
    fence       behind the opening line of a code fence: a call may follow
    choose      behind the opener of a call: which kind of body is it?
    body        inside a call: a body reader decides where it ends
    tentative   behind a call that only counts if nothing else follows (inside code, or without any tag)
    over        nothing that follows counts

What a mode cannot decide yet stays pending and is given again with the next piece; it is never longer than a mark or a
tag. A call is held back until it is complete, so nothing that went out is ever taken back.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from proxy.core.bare import begins_bare
from proxy.core.bodies import reader_for
from proxy.core.bodies.base import Body, Leftover, RawCall, Status
from proxy.core.bodies.jsonbody import JsonReader
from proxy.core.calls import ToolSet
from proxy.core.code import TICKS, Code
from proxy.core.collect import Reply, collect
from proxy.core.dialects import JSON, RESULT_MARKS, RESULTS_LINE, Form
from proxy.core.events import Event, Finish, FinishReason, TextDelta, ToolArgumentsDelta, ToolCallStart
from proxy.core.fragments import ArgumentStream
from proxy.core.grammar import AUTO, Grammar, grammar
from proxy.core.model import Json, Tool
from proxy.core.output import Output
from proxy.core.scanner import Marks

_SPACE = re.compile(r"\s*")
_MOST_RECOVERIES = 32  # times that a broken call is read again as text, so that a hostile reply costs a bounded number
_MOST_CLOSERS = 16  # closers tried as the end of a call that never ended
_LONG_PENDING = 512
_LONGEST_CODE_LINE = 2_000

Rule = Literal["fence", "inline", "whole"]
"""Why a call is tentative: it stands in a code fence, in inline code, or has no tag at all."""


@dataclass(slots=True)
class _Region:
    """A call being read. ``raw`` is all of its text so far, the opener included."""

    opener: str
    form: Form
    raw: list[str] = field(default_factory=list)
    size: int = 0
    bare: bool = False
    stream: ArgumentStream | None = None
    look_again: int = 0  # the size at which to see whether arguments can flow

    def use(self, text: str) -> None:
        """``text`` belongs to the call."""
        self.raw.append(text)
        self.size += len(text)


@dataclass(slots=True)
class _Tentative:
    """Calls that count only if what follows allows it; else ``raw`` is text."""

    rule: Rule
    raw: list[str]
    calls: list[RawCall] = field(default_factory=list)
    closed: bool = False  # the fence around it has been closed
    orphan: bool = False  # bare JSON that is not the whole reply: only a closer behind it makes it a call


def new_call_id() -> str:
    """A random call id of the shape that OpenAI uses."""
    return "call_" + secrets.token_hex(12)


class Parser:
    """Reads one reply.

    ``tools``
        What the client offers: :class:`~proxy.core.model.Tool` values or OpenAI / Anthropic tool objects. Names are
        matched and arguments typed, coerced and validated against them. Without tools every name is taken as it is.
    ``dialect``
        ``"auto"`` or the name of one row of :data:`~proxy.core.dialects.DIALECTS`; ``ValueError`` for another name.
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

    def __init__(
        self,
        tools: Iterable[Tool | Mapping[str, Json]] = (),
        *,
        dialect: str = AUTO,
        starts_in_reasoning: bool = False,
        read_calls: bool = True,
        parallel: bool = True,
        stream_arguments_after: int | None = 8192,
        whole: bool = False,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._tools = ToolSet(map(Tool.of, tools))
        self._grammar: Grammar = grammar(dialect)
        self._read_calls = read_calls
        self._parallel = parallel
        self._stream_after = None if whole else stream_arguments_after
        self._whole = whole
        self._new_id = new_id
        self._starts_in_reasoning = starts_in_reasoning
        self._source: list[str] = []  # all text so far, while a lone think closer could still claim it
        self._pending = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._closing: str | None = None
        self._failure: str | None = None
        self._recoveries = 0
        self._finished = False
        self._begin()
        self._mode = self._head

    def _begin(self) -> None:
        """Nothing has been read, or what was is reasoning after all."""
        self._out = Output(self._new_id)
        self._code = Code()
        self._had_reasoning = False
        self._literal_think = False  # an opening think mark stands in the answer, so its closer belongs there too
        self._think_closers = Marks(())
        self._fence_line = ""
        self._region: _Region | None = None
        self._body: Body | None = None
        self._tentative: _Tentative | None = None

    # ---- in and out

    @property
    def done(self) -> bool:
        """Whether nothing that follows counts: the upstream can be closed."""
        return self._mode == self._over

    @property
    def inside_call(self) -> bool:
        """Whether a call has been opened and is not complete."""
        return self._region is not None

    def feed(self, text: str) -> list[Event]:
        """Read a piece of the reply's text; the events that are certain by now."""
        if text and not self._finished:
            if not self._had_reasoning and not self._out.taken:
                self._source.append(text)
            self._waiting.append(text)
            self._waiting_size += len(text)
            if self._waiting_size >= len(self._pending) or len(self._pending) < _LONG_PENDING:
                self._run(final=False)
        return self._take()

    def feed_reasoning(self, text: str) -> list[Event]:
        """Take a piece of reasoning that the backend told apart by itself."""
        if text and not self._finished:
            self._had_reasoning = True
            self._source.clear()
            self._out.reason(text)
        return self._take()

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

    def _take(self) -> list[Event]:
        return [] if self._whole else self._out.take()

    def _finish_reason(self, given: str) -> FinishReason:
        if given in ("length", "content_filter", "error"):
            return given  # type: ignore[return-value]  # all three are finish reasons
        return "tool_calls" if self._out.calls else "stop"

    @property
    def _cut(self) -> bool:
        return self._closing in ("length", "error")

    def _run(self, *, final: bool) -> None:
        """Let the modes use up the pending text. A mode returns the index it used, and whether to go on from there.

        When much stays pending, the next look waits until as much again has come: all looks together stay linear.
        """
        self._pending += "".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        at = 0
        while True:
            at, go_on = self._mode(self._pending, at, final)
            if not go_on:
                self._pending = self._pending[at:]
                return

    def _show(self, text: str) -> None:
        """``text`` is part of the answer."""
        if text:
            self._code.advance(text)
            self._out.text(text)

    # ---- modes: head, reasoning

    def _head(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at == len(text):
            return at, False
        mark = self._grammar.think_openers.at(text, at)
        if mark:
            self._open_reasoning(mark)
            return at + len(mark), True
        if not final and self._grammar.think_openers.may_start(text, at):
            return at, False
        if self._starts_in_reasoning:
            self._think_closers = self._grammar.think_closers
            self._had_reasoning = True
            self._mode = self._reasoning
        else:
            self._mode = self._text
        return at, True

    def _open_reasoning(self, mark: str) -> None:
        self._think_closers = Marks(self._grammar.closers_of[mark])
        self._had_reasoning = True
        self._source.clear()
        self._mode = self._reasoning

    def _reasoning(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        found = self._think_closers.find(text, at, final=final)
        if found:
            self._out.reason(text[at : found.start])
            self._mode = self._text
            return found.end, True
        hold = len(text) if final else self._think_closers.hold(text, at)
        self._out.reason(text[at:hold])
        return hold, False

    def _late_reasoning(self, mark: str, end: int) -> None:
        """A closing think mark without its opener: what stands before it was reasoning, if that can still be said."""
        if self._out.taken:
            self._had_reasoning = True
            self._out.problem(
                "late_reasoning",
                f"The reply closed its reasoning with {mark} but never opened it; what came before went out as text. "
                "Set starts_in_reasoning for this model.",
            )
            return
        source = "".join(self._source)
        behind = len(self._pending) - end
        self._begin()
        self._had_reasoning = True
        self._source.clear()
        self._out.reason(source[: len(source) - behind].removesuffix(mark))

    # ---- mode: text

    def _text(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        marks = self._grammar.marks if self._read_calls else self._grammar.plain_marks
        found = marks.find(text, at, final=final)
        if found is None:
            hold = len(text) if final else marks.hold(text, at)
            self._show(text[at:hold])
            return hold, False
        self._show(text[at : found.start])
        return self._mark(found.mark, text, found.start, final)

    def _mark(self, mark: str, text: str, at: int, final: bool) -> tuple[int, bool]:
        """What the mark at ``at`` means here. In code only calls, fences and a lone think closer mean anything."""
        table = self._grammar
        end = at + len(mark)
        if mark in ("`", "~~~"):
            return self._ticks(text, at, final)
        if mark in ("{", "["):
            return self._maybe_bare(text, at, final)
        if mark in table.forms:
            return self._open(mark, at)
        if mark in table.think_closers.marks and not self._had_reasoning and not self._code.inline:
            if self._literal_think:
                self._literal_think = False
                self._show(mark)
            else:
                self._late_reasoning(mark, end)
        elif not self._code.outside:
            self._show(mark)
        elif mark in table.anywhere:
            self._open_reasoning(mark)
        elif mark in table.closers_of:
            self._literal_think = True
            self._show(mark)
        elif mark in table.think_closers.marks:
            if self._out.has_text:
                self._show(mark)
        elif mark in table.terminators:
            self._out.terminator(mark)
        elif mark in RESULT_MARKS or mark == RESULTS_LINE:
            return self._result(mark, text, at, final)
        elif mark in table.stray_closers:
            self._out.problem("dropped_markup", f"A closing {mark} stood outside of any call.", mark)
        return end, True

    def _result(self, mark: str, text: str, at: int, final: bool) -> tuple[int, bool]:
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
        self._mode = self._over
        return at, True

    def _over(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        return len(text), False

    # ---- modes: code

    def _ticks(self, text: str, at: int, final: bool) -> tuple[int, bool]:
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
            self._mode = self._fence
            return line, True
        self._code.run(text[at:end])
        self._show(text[at:end])
        return end, True

    def _fence(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Behind the line that opens a fence: if a call is the first thing in it, the line belongs to the call."""
        here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        self._fence_line += text[at:here]
        if here == len(text) and not final:
            return here, False
        opener = self._grammar.openers.at(text, here) if self._read_calls else None
        if opener is None and not final and self._read_calls and self._grammar.openers.may_start(text, here):
            return here, False
        if self._read_calls and self._out.empty:
            bare = begins_bare(self._tools, text, here, final=final)
            if bare is None:
                return here, False
            if bare:
                self._tentative = _Tentative("whole", [self._fence_line])
                return self._open_bare(here, (self._code.fence,))
        self._mode = self._text
        if opener is None:
            self._show(self._fence_line)
            return here, True
        self._tentative = _Tentative("fence", [self._fence_line])
        return self._open(opener, here)

    # ---- modes: choose, body

    def _open(self, mark: str, at: int) -> tuple[int, bool]:
        form = self._grammar.forms[mark]
        if self._tentative is None and not self._code.outside:
            self._tentative = _Tentative("fence" if self._code.fence else "inline", [])
        self._region = _Region(mark, form, look_again=self._stream_after or 0)
        self._mode = self._choose
        if form.kept:
            return at, True
        self._region.use(mark)
        return at + len(mark), True

    def _choose(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Which kind of body begins here?"""
        region = self._region
        assert region is not None  # noqa: S101 (a call was opened)
        rest = text[at:]
        for spec in region.form.bodies:
            reader = reader_for(spec)
            fits = reader.fits(spec, rest, final=final)
            if fits is None:
                return at, False
            if fits:
                self._body = reader(spec, Marks(region.form.closers), self._grammar.openers)
                self._mode = self._in_body
                return at, True
        self._region = None
        if final and self._cut and not rest.strip():
            self._out.problem("cut", "The reply ended inside a call.", region.opener)
            return len(text), False
        kept = region.opener if region.form.kept else ""
        self._as_text(region.opener)
        return at + len(kept), True

    def _in_body(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        region, body = self._region, self._body
        assert region is not None  # noqa: S101 (a body was chosen)
        assert body is not None  # noqa: S101
        end, status = body.take(text, at, final=final)
        region.use(text[at:end])
        if status is Status.DONE:
            self._complete(region, body)
            return end, True
        if status is Status.NOT:
            return self._reread(region, text[end:], len(region.opener))
        if not final:
            self._flow(region, body, text[at:end])
            return end, False
        return self._incomplete(region, body)

    def _flow(self, region: _Region, body: Body, piece: str) -> None:
        """Let the arguments of a long call go out while they are written."""
        if region.stream is not None:
            if isinstance(body, JsonReader) and not body.broken:
                self._out.arguments(region.stream.feed(piece))
            return
        if self._stream_after is None or region.size < region.look_again or self._tentative is not None:
            return
        region.look_again = 2 * region.size
        if region.opener in self._grammar.foreign or not isinstance(body, JsonReader):
            return
        begun = body.open_arguments()
        if begun is None or (self._out.calls and not self._parallel):
            return
        written, arguments = begun
        name = self._tools.declares(written) if self._tools else written
        if name is None:
            return
        region.stream = ArgumentStream(self._tools.schema(name))
        self._out.start(name)
        self._out.arguments(region.stream.feed(arguments))

    def _complete(self, region: _Region, body: Body) -> None:
        """The body has ended: its calls go out, or wait, or all of it is text."""
        self._region = self._body = None
        calls = body.reading.calls
        if self._tentative is not None:
            if calls and len(calls) == len(body.reading.items) and self._may_wait(region, calls):
                self._tentative.raw.extend(region.raw)
                self._tentative.calls.extend(calls)
                self._mode = self._tentatively
            else:
                self._as_text("".join(region.raw))
            return
        self._mode = self._text
        if not calls or (region.opener in self._grammar.foreign and not self._all_valid(calls)):
            self._unreadable(region, "What looked like a call could not be read as one.")
            return
        if body.reading.dropped:
            self._out.problem("dropped_text", "Text between a call and its closer was dropped.", body.reading.dropped)
        stream = region.stream
        for item in body.reading.items:
            if self.done:
                break
            if isinstance(item, Leftover):
                self._out.problem("unreadable", "A part of a call could not be read.", item.text)
                self._show(item.text)
            elif stream is not None:
                self._end_stream(stream, item)
                stream = None
            else:
                self._send(item)
        self._code.line_start = False

    def _unreadable(self, region: _Region, message: str) -> None:
        raw = "".join(region.raw)
        self._out.problem("unreadable", message, raw)
        if region.stream is not None:
            self._fail("A tool call whose arguments had begun to flow could not be read to its end.")
        else:
            self._show(raw)

    def _send(self, raw: RawCall) -> None:
        if self._out.calls and not self._parallel:
            self._out.problem("extra_call", "Only one call was allowed; the others were dropped.", raw.name)
            return
        self._out.call(self._tools.resolve(raw, self._out.calls))
        if not self._parallel:
            self._mode = self._over

    def _end_stream(self, stream: ArgumentStream, raw: RawCall) -> None:
        call = self._tools.resolve(raw, self._out.calls)
        if not self._out.finish_call(call, stream.sent):
            self._fail("The end of a tool call did not fit the arguments that had already gone out.")
        elif not self._parallel:
            self._mode = self._over

    def _fail(self, message: str) -> None:
        self._failure = message
        self._mode = self._over

    def _may_wait(self, region: _Region, calls: list[RawCall]) -> bool:
        """A call without a tag must name a declared tool and have arguments; one in code must validate as well."""
        if region.bare:
            return all(call.explicit and self._tools.declares(call.name) for call in calls)
        return self._all_valid(calls)

    def _all_valid(self, calls: list[RawCall]) -> bool:
        return not self._tools or all(self._tools.resolve(call, 0).valid for call in calls)

    def _as_text(self, raw: str) -> None:
        """``raw``, and what was held back in front of it, is text after all."""
        held = self._tentative
        self._tentative = None
        self._mode = self._text
        if held is not None:
            self._show("".join(held.raw))
            if held.rule == "fence" and held.closed:
                self._code.fence = ""
        self._show(raw)

    def _reread(self, region: _Region, rest: str, shown: int) -> tuple[int, bool]:
        """The first ``shown`` characters of ``region`` are text; what follows is read again."""
        raw = "".join(region.raw)
        self._region = self._body = None
        if region.stream is not None:
            self._fail("A tool call whose arguments had begun to flow was never completed.")
            return 0, True
        self._recoveries += 1
        if self._recoveries > _MOST_RECOVERIES:
            shown = len(raw)
        self._as_text(raw[:shown])
        self._pending = raw[shown:] + rest
        return 0, True

    def _incomplete(self, region: _Region, body: Body) -> tuple[int, bool]:
        """The reply has ended inside a call."""
        raw = "".join(region.raw)
        if self._cut:
            self._region = self._body = None
            self._mode = self._text
            for call in body.reading.calls:
                self._send(call)
            self._out.problem("cut", "The reply ended inside a call.", raw)
            return len(self._pending), False
        start = 0 if region.form.kept else len(region.opener)
        closers = Marks(region.form.closers)
        at = start
        for _ in range(_MOST_CLOSERS):
            found = closers.find(raw, at)
            if found is None or region.bare:
                break
            again = self._again(region, raw[start : found.end])
            if again is not None:
                ended = _Region(region.opener, region.form, [raw[: found.end]], stream=region.stream)
                self._complete(ended, again)
                self._pending = raw[found.end :]
                return 0, True
            at = found.end
        self._out.problem("unreadable", "A call was opened and never completed.", raw)
        first = self._grammar.ends.find(raw, max(start, 1))
        shown = len(raw) if first is None else first.start if first.mark in self._grammar.forms else first.end
        return self._reread(region, "", shown)

    def _again(self, region: _Region, text: str) -> Body | None:
        """A fresh reading of a body that is taken to end with ``text``; None if it does not."""
        for spec in region.form.bodies:
            reader = reader_for(spec)
            if reader.fits(spec, text, final=True):
                body: Body = reader(spec, Marks(region.form.closers), self._grammar.openers)
                end, status = body.take(text, 0, final=True)
                return body if status is Status.DONE and end == len(text) and body.reading.calls else None
        return None

    # ---- mode: tentative, and calls without a tag

    def _maybe_bare(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """A brace at the start of a line: JSON of a declared tool is a call if it is all, or if a closer follows."""
        head = self._out.empty
        bare: bool | None = False
        if self._code.line_start and self._code.outside and (head or text[at] == "{"):
            bare = begins_bare(self._tools, text, at, final=final)
        if bare is None:
            return at, False
        if not bare:
            self._show(text[at])
            return at + 1, True
        self._tentative = _Tentative("whole", [], orphan=not head)
        return self._open_bare(at, ())

    def _open_bare(self, at: int, closers: tuple[str, ...]) -> tuple[int, bool]:
        self._region = _Region("", Form("", (JSON,), closers), bare=True)
        self._mode = self._choose
        return at, True

    def _tentatively(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Behind tentative calls: white space and terminators decide nothing; the end of the reply, or text, does."""
        held = self._tentative
        assert held is not None  # noqa: S101 (the mode says so)
        if held.rule == "inline":
            return self._inline_ends(held, text, at, final)
        here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        while mark := self._grammar.terminator_marks.at(text, here):
            here = _SPACE.match(text, here + len(mark)).end()  # type: ignore[union-attr]
        held.raw.append(text[at:here])
        if here == len(text):
            if not final:
                return here, False
            if held.orphan:
                self._as_text("")
            else:
                self._accept(held)
            return here, True
        if held.rule == "fence" and not held.closed and text.startswith(self._code.fence, here):
            held.closed = True
            held.raw.append(self._code.fence)
            return here + len(self._code.fence), True
        closers, openers = self._grammar.closers, self._grammar.openers
        if held.rule == "whole" and (mark := closers.at(text, here)):
            self._accept(held)
            return here + len(mark), True
        if held.rule == "fence" and not held.closed and (mark := openers.at(text, here)):
            return self._open(mark, here)
        undecided = (closers, openers, self._grammar.terminator_marks, Marks((self._code.fence or "`",)))
        if not final and any(marks.may_start(text, here) for marks in undecided):
            return here, False
        self._as_text("")
        return here, True

    def _inline_ends(self, held: _Tentative, text: str, at: int, final: bool) -> tuple[int, bool]:
        """A call in inline code is text; if the code never closes on its line, it was no code."""
        line = text.find("\n", at)
        for run in TICKS.finditer(text, at, line if line >= 0 else len(text)):
            if run.end() == len(text) and not final:
                return at, False
            if run[0] == "`" * self._code.inline:
                self._as_text("")
                return at, True
        if line >= 0 or final or len(text) - at > _LONGEST_CODE_LINE:
            self._code.inline = 0
            self._accept(held)
            return at, True
        return at, False

    def _accept(self, held: _Tentative) -> None:
        self._tentative = None
        self._code.fence = ""
        self._mode = self._text
        for call in held.calls:
            if not self.done:
                self._send(call)

    # ---- the end

    def _promote(self) -> None:
        """Complete, valid calls to declared tools that end the reasoning, when nothing else came, are calls."""
        reasoning = "".join(self._out.reasoning)
        wanted = self._read_calls and self._tools and not self._cut and self._failure is None
        if not wanted or not self._out.empty or not self._grammar.openers.find(reasoning):
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
        inner._mode = inner._text
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
    starts_in_reasoning: bool = False,
    read_calls: bool = True,
    parallel: bool = True,
    new_id: Callable[[], str] = new_call_id,
) -> Reply:
    """Read a whole reply: what :class:`Parser` says of ``text``, folded. Never raises on any ``text``."""
    parser = Parser(
        tools,
        dialect=dialect,
        starts_in_reasoning=starts_in_reasoning,
        read_calls=read_calls,
        parallel=parallel,
        whole=True,
        new_id=new_id,
    )
    return collect([*parser.feed(text), *parser.close(finish_reason)])

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

from proxy.core.bodies import reader_for
from proxy.core.bodies.base import Body, Leftover, RawCall, Status
from proxy.core.bodies.shapes import FIRST_KEYS
from proxy.core.calls import Resolved, ToolSet
from proxy.core.collect import Reply, collect
from proxy.core.dialects import JSON, RESULT_MARKS, RESULTS_LINE, Form
from proxy.core.events import (
    Event,
    Finish,
    FinishReason,
    Problem,
    ProblemKind,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from proxy.core.grammar import AUTO, Grammar, grammar
from proxy.core.model import Json, Tool
from proxy.core.scanner import Marks
from proxy.core.visible import Visible

_SPACE = re.compile(r"\s*")
_TICKS = re.compile(r"`+|~+")
_BARE = re.compile(
    r"""[{\[]\s*(?:\{\s*)?(?P<quote>["'])(?P<key>\w*)(?P=quote)\s*:\s*(?P<rest>["'][^"']*["']?|[^"'\s]?)"""
)
_BARE_SO_FAR = re.compile(r"""[{\[]\s*(?:\{\s*)?(?:["']\w{0,20}(?:["']\s*(?::\s*(?:["'][^"']{0,100})?)?)?)?""")
_NAME_KEYS = frozenset({"name", "tool_name", "function_name", "tool"})
_LONGEST_FENCE_LINE = 100
_MOST_RECOVERIES = 32
_LONG_PENDING = 512
_LONGEST_CODE_LINE = 2_000
_SHOWN = 200

Rule = Literal["fence", "inline", "whole"]
"""Why a call is tentative: it stands in a code fence, in inline code, or has no tag at all."""


@dataclass(slots=True)
class _Region:
    """A call being read. ``raw`` is all of its text so far, the opener included."""

    opener: str
    form: Form
    raw: list[str] = field(default_factory=list)
    bare: bool = False


@dataclass(slots=True)
class _Tentative:
    """Calls that count only if what follows allows it; else ``raw`` is text."""

    rule: Rule
    raw: list[str]
    calls: list[RawCall] = field(default_factory=list)
    ticks: int = 0
    closed: bool = False
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
        ``"auto"`` or the name of one row of :data:`~proxy.core.dialects.DIALECTS`.
    ``starts_in_reasoning``
        The prompt already ended in an opening think mark.
    ``read_calls``
        False: nothing is a call, only reasoning is told from text.
    ``parallel``
        False: only the first call counts; then :attr:`done` is true.
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
        whole: bool = False,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._tools = ToolSet(map(Tool.of, tools))
        self._grammar: Grammar = grammar(dialect)
        self._read_calls = read_calls
        self._parallel = parallel
        self._whole = whole
        self._new_id = new_id
        self._starts_in_reasoning = starts_in_reasoning
        self._source: list[str] = []  # all text so far, while a lone think closer could still claim it
        self._closing: str | None = None
        self._recoveries = 0
        self._reset()
        self._mode = self._head

    def _reset(self) -> None:
        self._events: list[Event] = []
        self._returned = False
        self._pending = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._visible = Visible()
        self._reasoned = Visible()
        self._reasoning_text: list[str] = []
        self._had_reasoning = False
        self._closers = Marks(())
        self._calls = 0
        self._blank_line = True  # only white space since the last line break
        self._inline = 0  # length of the run of backticks that opened inline code
        self._code_fence = ""
        self._fence_line = ""
        self._region: _Region | None = None
        self._body: Body | None = None
        self._tentative: _Tentative | None = None
        self._finished = False

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
            if not self._had_reasoning and not self._returned:
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
            self._reason(text)
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
        self._events.append(Finish(self._finish_reason(finish_reason)))
        return self._take(last=True)

    def _take(self, *, last: bool = False) -> list[Event]:
        if self._whole and not last:
            return []
        events, self._events = self._events, []
        self._returned = self._returned or bool(events)
        return _merged(events)

    def _finish_reason(self, given: str) -> FinishReason:
        if given in ("length", "content_filter", "error"):
            return given  # type: ignore[return-value]  # all three are finish reasons
        return "tool_calls" if self._calls else "stop"

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

    # ---- what goes out

    def _problem(self, kind: ProblemKind, message: str, detail: str = "") -> None:
        shown = detail if len(detail) <= _SHOWN else detail[:_SHOWN] + "…"
        self._events.append(Problem(kind, message, None, shown))

    def _show(self, text: str) -> None:
        """``text`` is part of the answer."""
        if not text:
            return
        line = text.rfind("\n")
        if line >= 0:
            self._inline = 0
            self._blank_line = not text[line + 1 :].strip()
        elif self._blank_line:
            self._blank_line = not text.strip()
        out = self._visible.take(text)
        if out:
            self._events.append(TextDelta(out))

    def _reason(self, text: str) -> None:
        if text:
            self._reasoning_text.append(text)
            out = self._reasoned.take(text)
            if out:
                self._events.append(ReasoningDelta(out))

    def _send(self, raw: RawCall) -> None:
        """``raw`` is a call. Names and arguments are made ready here, so that indices count what was sent."""
        if self.done:
            return
        if self._calls and not self._parallel:
            self._problem("extra_call", "Only one call was allowed; the others were dropped.", raw.name)
            return
        self._put(self._tools.resolve(raw, self._calls))

    def _put(self, call: Resolved) -> None:
        index = self._calls
        self._calls += 1
        self._events.extend(call.problems)
        self._events.append(ToolCallStart(index, self._new_id(), call.name))
        self._events.append(ToolArgumentsDelta(index, call.arguments))
        self._events.append(ToolCallEnd(index))
        if not self._parallel:
            self._mode = self._over

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
            self._closers = self._grammar.think_closers
            self._had_reasoning = True
            self._mode = self._reasoning
        else:
            self._mode = self._text
        return at, True

    def _open_reasoning(self, mark: str) -> None:
        self._closers = Marks(self._grammar.closers_of[mark])
        self._had_reasoning = True
        self._source.clear()
        self._mode = self._reasoning

    def _reasoning(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        found = self._closers.find(text, at, final=final)
        if found:
            self._reason(text[at : found.start])
            self._mode = self._text
            return found.end, True
        hold = len(text) if final else self._closers.hold(text, at)
        self._reason(text[at:hold])
        return hold, False

    def _late_reasoning(self, mark: str, at: int) -> None:
        """A closing think mark without its opener: what stands before it was reasoning, if that can still be said."""
        if self._returned:
            self._problem(
                "late_reasoning",
                f"The reply closed its reasoning with {mark} but never opened it; what came before went out as text. "
                "Set starts_in_reasoning for this model.",
            )
            self._had_reasoning = True
            return
        before = "".join(self._source)[: -len(self._pending[at:]) or None].removesuffix(mark)
        pending = self._pending
        self._reset()
        self._pending = pending
        self._had_reasoning = True
        self._source.clear()
        self._reason(before)
        self._mode = self._text

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
        """What the mark at ``at`` means here. In code only calls and fences mean anything."""
        table = self._grammar
        end = at + len(mark)
        if mark in ("`", "~~~"):
            return self._ticks(text, at, final)
        if mark in ("{", "["):
            return self._maybe_bare(text, at, final)
        if mark in table.forms:
            return self._open(mark, text, at, final)
        lone = mark in table.think_closers.marks and not self._had_reasoning and not self._inline
        if (self._code_fence or self._inline) and not lone:
            self._show(mark)
        elif lone:
            self._late_reasoning(mark, end)
        elif mark in table.anywhere:
            self._open_reasoning(mark)
        elif mark in table.think_closers.marks:
            if self._visible.started:
                self._show(mark)
        elif mark in table.terminators:
            self._visible.hold(mark)
        elif mark in RESULT_MARKS or mark == RESULTS_LINE:
            return self._result(mark, text, at, final)
        elif mark in table.stray_closers:
            self._problem("dropped_markup", f"A closing {mark} stood outside of any call.", mark)
        return end, True

    def _result(self, mark: str, text: str, at: int, final: bool) -> tuple[int, bool]:
        """The model writes a tool's result by itself: behind a call or as the first thing, the rest is made up."""
        if self._calls == 0 and self._visible.started:
            self._show(mark)
            return at + len(mark), True
        if mark == RESULTS_LINE:  # only if a result follows
            here = _SPACE.match(text, at + len(mark)).end()  # type: ignore[union-attr]
            if not final and (here == len(text) or self._grammar.results.may_start(text, here)):
                return at, False
            if self._grammar.results.at(text, here) is None:
                self._show(mark)
                return at + len(mark), True
        self._problem("fabricated_result", "The model wrote a tool result by itself; what follows was dropped.")
        self._mode = self._over
        return at, True

    def _over(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        return len(text), False

    # ---- modes: code

    def _ticks(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """A run of backticks or tildes: a fence at the start of a line, else inline code."""
        run = _TICKS.match(text, at)
        assert run is not None  # noqa: S101 (the mark says so)
        if run.end() == len(text) and not final:
            return at, False
        ticks = run[0]
        if self._code_fence:
            if self._blank_line and ticks.startswith(self._code_fence):
                self._code_fence = ""
        elif self._blank_line and len(ticks) >= 3:
            line = text.find("\n", run.end())
            if line < 0 and not final and len(text) - at < _LONGEST_FENCE_LINE:
                return at, False
            if line >= 0 and "`" not in text[run.end() : line]:
                self._code_fence = ticks
                self._fence_line = text[at : line + 1]
                self._mode = self._fence
                return line + 1, True
        elif ticks[0] == "`" and not self._inline:
            self._inline = len(ticks)
        elif len(ticks) == self._inline:
            self._inline = 0
        self._show(ticks)
        return run.end(), True

    def _fence(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """Behind the line that opens a fence: if a call is the first thing in it, the line belongs to the call."""
        here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if here == len(text) and not final:
            return at, False
        held = self._fence_line + text[at:here]
        opener = self._grammar.openers.at(text, here) if self._read_calls else None
        if opener is None and not final and self._grammar.openers.may_start(text, here):
            return at, False
        if self._read_calls and not self._visible.started and not self._calls:
            decided = self._bare_begins(text, here, final)
            if decided is None:
                return at, False
            if decided:
                self._tentative = _Tentative("whole", [held], closed=False)
                self._code_fence = ""
                return self._open_bare(here, ("```", "~~~"))
        self._mode = self._text
        if opener is None:
            self._show(held)
            return here, True
        self._tentative = _Tentative("fence", [held])
        return self._open(opener, text, here, final)

    # ---- modes: choose, body

    def _open(self, mark: str, text: str, at: int, final: bool) -> tuple[int, bool]:
        form = self._grammar.forms[mark]
        if self._tentative is None and self._code_fence:
            self._tentative = _Tentative("fence", [])
        elif self._tentative is None and self._inline:
            self._tentative = _Tentative("inline", [], ticks=self._inline)
        self._region = _Region(mark, form)
        self._mode = self._choose
        if form.kept:
            return at, True
        self._region.raw.append(mark)
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
        if final and self._cut:
            self._problem("cut", "The reply ended inside a call.", region.opener)
            return len(text), True
        self._as_text(region.opener)
        return at + (len(region.opener) if region.form.kept else 0), True

    @property
    def _cut(self) -> bool:
        return self._closing in ("length", "error")

    def _in_body(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        region, body = self._region, self._body
        assert region is not None  # noqa: S101 (a body was chosen)
        assert body is not None  # noqa: S101
        end, status = body.take(text, at, final=final)
        region.raw.append(text[at:end])
        if status is Status.DONE:
            self._complete(region, body)
            return end, True
        if status is Status.NOT:
            return self._refeed(region, text[end:], len(region.opener))
        if not final:
            return end, False
        return self._incomplete(region, body)

    def _complete(self, region: _Region, body: Body) -> None:
        """The body has ended: its calls go out, or wait, or all of it is text."""
        self._region = self._body = None
        calls = body.reading.calls
        if self._tentative is not None:
            if calls and len(calls) == len(body.reading.items) and self._may_be_tentative(region, calls):
                self._tentative.raw.extend(region.raw)
                self._tentative.calls.extend(calls)
                self._mode = self._tentatively
            else:
                self._as_text("".join(region.raw))
            return
        self._mode = self._text
        if not calls or (region.opener in self._grammar.foreign and not self._all_valid(calls)):
            raw = "".join(region.raw)
            self._problem("unreadable", "What looked like a call could not be read as one.", raw)
            self._show(raw)
            return
        if body.reading.dropped:
            self._problem("dropped_text", "Text between a call and its closer was dropped.", body.reading.dropped)
        for item in body.reading.items:
            if self.done:
                break
            if isinstance(item, Leftover):
                self._problem("unreadable", "A part of a call could not be read.", item.text)
                self._show(item.text)
            else:
                self._send(item)
        self._blank_line = False

    def _may_be_tentative(self, region: _Region, calls: list[RawCall]) -> bool:
        """A call without a tag must name a declared tool and its arguments; one in code must validate as well."""
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
        self._show(raw)

    def _refeed(self, region: _Region, rest: str, shown: int) -> tuple[int, bool]:
        """The first ``shown`` characters of ``region`` are text; what follows is read again."""
        raw = "".join(region.raw)
        self._region = self._body = None
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
            self._problem("cut", "The reply ended inside a call.", raw)
            return len(self._pending), True
        start = 0 if region.form.kept else len(region.opener)
        closers = Marks(region.form.closers)
        at = start
        for _ in range(16):
            found = closers.find(raw, at)
            if found is None or region.bare:
                break
            again = self._again(region, raw[start : found.end])
            if again is not None:
                self._complete(_Region(region.opener, region.form, [raw[: found.end]]), again)
                self._pending = raw[found.end :]
                return 0, True
            at = found.end
        first = self._grammar.ends.find(raw, max(start, 1))
        self._problem("unreadable", "A call was opened and never completed.", raw)
        shown = len(raw) if first is None else first.start if first.mark in self._grammar.forms else first.end
        return self._refeed(region, "", shown)

    def _again(self, region: _Region, text: str) -> Body | None:
        """A fresh reading of a body that is taken to end with ``text``; None if it does not."""
        for spec in region.form.bodies:
            reader = reader_for(spec)
            if reader.fits(spec, text, final=True):
                body = reader(spec, Marks(region.form.closers), self._grammar.openers)
                end, status = body.take(text, 0, final=True)
                return body if status is Status.DONE and end == len(text) and body.reading.calls else None
        return None

    # ---- mode: tentative, and calls without a tag

    def _maybe_bare(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        """A brace at the start of a line: JSON of a declared tool is a call if it is all, or if a closer follows."""
        if not self._blank_line or self._code_fence or self._inline:
            self._show(text[at])
            return at + 1, True
        head = not self._visible.started and not self._calls
        decided = self._bare_begins(text, at, final) if head or text[at] == "{" else False
        if decided is None:
            return at, False
        if not decided:
            self._show(text[at])
            return at + 1, True
        self._tentative = _Tentative("whole", [], orphan=not head)
        return self._open_bare(at, ())

    def _bare_begins(self, text: str, at: int, final: bool) -> bool | None:
        """Whether JSON that may be a call begins at ``at``; None when more is needed to tell."""
        if not self._tools:
            return False
        found = _BARE.match(text, at)
        if not final and _BARE_SO_FAR.fullmatch(text, at):
            return None
        if found is None:
            return False
        if found["key"] not in FIRST_KEYS:
            return False
        value = found["rest"]
        if found["key"] in _NAME_KEYS and value[:1] in ("'", '"'):
            return self._tools.declares(value[1:].rstrip("\"'")) is not None
        return True

    def _open_bare(self, at: int, closers: tuple[str, ...]) -> tuple[int, bool]:
        form = Form("", (JSON,), closers)
        self._region = _Region("", form, bare=True)
        self._mode = self._choose
        return at, True

    def _tentatively(self, text: str, at: int, final: bool) -> tuple[int, bool]:
        held = self._tentative
        assert held is not None  # noqa: S101 (the mode says so)
        if held.rule == "inline":
            return self._inline_ends(held, text, at, final)
        here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        while here < len(text) and (mark := self._grammar.terminator_marks.at(text, here)):
            here = _SPACE.match(text, here + len(mark)).end()  # type: ignore[union-attr]
        if here == len(text):
            if not final:
                return at, False
            if held.orphan:
                self._as_text("")
                return at, True
            self._accept(held)
            return here, True
        if held.rule == "fence" and not held.closed and text.startswith(self._code_fence, here):
            run = _TICKS.match(text, here)
            assert run is not None  # noqa: S101 (a fence is ticks or tildes)
            if run.end() == len(text) and not final:
                return at, False
            held.closed = True
            held.raw.append(text[at : run.end()])
            return run.end(), True
        closers = self._grammar.closers
        mark = closers.at(text, here)
        if mark and held.rule == "whole":
            self._accept(held)
            return here + len(mark), True
        openers = self._grammar.openers
        if held.rule == "fence" and not held.closed and openers.at(text, here):
            held.raw.append(text[at:here])
            return self._open(openers.at(text, here) or "", text, here, final)
        if not final and any(
            marks.may_start(text, here) for marks in (closers, openers, self._grammar.terminator_marks)
        ):
            return at, False
        if held.rule == "fence" and held.closed:
            self._code_fence = ""
        self._as_text("")
        return at, True

    def _inline_ends(self, held: _Tentative, text: str, at: int, final: bool) -> tuple[int, bool]:
        """A call in inline code is text; if the code never closes on its line, it was no code."""
        line = text.find("\n", at)
        for run in _TICKS.finditer(text, at, line if line >= 0 else len(text)):
            if run.end() == len(text) and not final:
                break
            if run[0] == "`" * held.ticks:
                self._as_text("")
                return at, True
        else:
            if line >= 0 or final or len(text) - at > _LONGEST_CODE_LINE:
                self._inline = 0
                self._accept(held)
                return at, True
        return at, False

    def _accept(self, held: _Tentative) -> None:
        self._tentative = None
        self._code_fence = ""
        self._mode = self._text
        for call in held.calls:
            self._send(call)

    # ---- the end

    def _promote(self) -> None:
        """A complete, valid call to a declared tool that ends the reasoning, when nothing else came, is a call."""
        if self._calls or self._visible.started or self._cut or not self._read_calls or not self._tools:
            return
        reasoning = "".join(self._reasoning_text)
        inner = Parser(whole=True)
        inner._tools = self._tools
        inner._grammar = self._grammar
        inner._mode = inner._text
        inner._had_reasoning = True
        if not self._grammar.openers.find(reasoning):
            return
        events = inner.feed(reasoning) + inner.close("stop")
        tail: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                tail = []
            elif isinstance(event, (ToolCallStart, ToolArgumentsDelta, ToolCallEnd)):
                tail.append(event)
        for start, arguments in zip(tail[::3], tail[1::3], strict=True):
            assert isinstance(start, ToolCallStart)  # noqa: S101 (three events a call)
            assert isinstance(arguments, ToolArgumentsDelta)  # noqa: S101
            call = self._tools.resolve(RawCall(start.name, arguments.text), self._calls)
            if call.valid and (self._parallel or not self._calls):
                self._problem("promoted", "The only call stood at the end of the reasoning.", start.name)
                self._put(call)


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


def _merged(events: list[Event]) -> list[Event]:
    """``events`` with neighbouring text deltas joined."""
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            merged[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            merged[-1] = ReasoningDelta(last.text + event.text)
        else:
            merged.append(event)
    return merged

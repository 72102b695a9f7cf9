"""The modes that read calls: which kind of body it is, and the body."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from proxy.core.bodies import reader_for
from proxy.core.bodies.base import Body, RawCall, Status
from proxy.core.bodies.heading import length, stands
from proxy.core.bodies.jsonbody import JsonReader
from proxy.core.bodies.quotes import in_string, stands_in_quotes
from proxy.core.bodies.tagsbody import TagsReader
from proxy.core.calls import ToolSet
from proxy.core.forms import BodySpec, Heading
from proxy.core.fragments import ArgumentStream
from proxy.core.grammar import Grammar
from proxy.core.machine import BLANK, Step
from proxy.core.regions import Region, Tentative, read_again
from proxy.core.scanner import Marks, marks_of
from proxy.core.tentative import TentativeModes

_LONGEST_START = 1_024  # characters by which a kind of body is told
_REREAD_RATIO = 8  # what may be read again, by the length of the reply, so that a hostile one still costs linear time
_REREAD_FREE = 100_000
_LOOK_BEHIND = 64  # characters in front of a closer in which a quote is looked for


class CallModes(TentativeModes):
    """Reads calls from their opener on. ``read_calls``, ``stream_after``: see :class:`~proxy.core.parser.Parser`."""

    __slots__ = ("_body", "_read_calls", "_reread_length", "_stream_after")

    def __init__(
        self,
        tools: ToolSet,
        grammar: Grammar,
        *,
        read_calls: bool,
        parallel: bool,
        stream_after: int | None,
        new_id: Callable[[], str],
    ) -> None:
        self._read_calls = read_calls
        self._stream_after = stream_after
        self._reread_length = 0
        self._body: Body | None = None
        super().__init__(tools, grammar, parallel=parallel, new_id=new_id)

    # ---- modes: choose, body

    def _open(self, mark: str, at: int) -> Step:
        form = self._grammar.forms[mark]
        if self._tentative is None and not self._code.outside:
            self._tentative = Tentative("fence" if self._code.fence else "inline", [])
        self._region = Region(mark, form, look_again=self._stream_after or 0)
        self._mode = type(self)._choose
        if form.kept:
            return at, True
        self._region.start = len(mark)
        self._region.use(mark)
        return at + len(mark), True

    def _choose(self, text: str, at: int, final: bool) -> Step:
        """Which kind of body begins here?"""
        region = self._region
        assert region is not None  # noqa: S101 (a call was opened)
        here = BLANK.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        region.use(text[at:here])
        start = text[here : here + _LONGEST_START]
        whole = (final and not self._cut) or len(start) == _LONGEST_START
        for spec in region.form.bodies:
            if isinstance(spec, Heading):
                fits = self._tentative is None and stands(spec, start, final=whole)
            else:
                fits = self._read_calls and reader_for(spec).fits(spec, start, final=whole)
            if fits is None and final:
                self._region = None
                self._out.problem("cut", "The reply ended inside a call.", region.opener + start)
                return len(text), False
            if fits is None:
                return here, False
            if fits:
                self._effort.position = self._total - len(text) + here
                return here + self._begins(region, spec, start), True
        return self._no_body(region, text, here, final)

    def _begins(self, region: Region, spec: BodySpec | Heading, text: str) -> int:
        """``spec`` stands at the start of ``text``; how much of that is used."""
        if isinstance(spec, Heading):
            self._region = None
            self._heading(spec)
            return length(spec, text)
        closers = marks_of(frozenset(region.form.closers))
        self._body = reader_for(spec)(spec, closers, self._grammar.openers, self._effort)
        self._mode = type(self)._in_body
        return 0

    def _no_body(self, region: Region, text: str, at: int, final: bool) -> Step:
        """No body of a call begins behind the opener: it is text, or a wrapper around calls."""
        if region.opener in self._grammar.wrappers and not region.form.kept:
            if not final and self._grammar.openers.may_start(text, at):
                return at, False
            if mark := self._grammar.openers.at(text, at):
                if self._tentative is not None:
                    self._tentative.raw.append(region.raw)
                return self._open(mark, at)
        if region.form.kept:
            self._region = None
            self._as_text(region.opener)
            return at + len(region.opener), True
        if not final and self._grammar.openers.may_start(text, at):
            return at, False
        if text.startswith(region.opener, at):  # written twice
            region.use(region.opener)
            region.start = region.size
            return at + len(region.opener), True
        if self._closes_the_last(region, region.raw):
            return at, True
        self._region = None
        self._as_text(region.raw)
        return at, True

    def _closes_the_last(self, region: Region, written: str) -> bool:
        """Whether the opener of ``region``, in which there is no call, was written for a closer; it is dropped then."""
        if not self._open_ended or region.opener in self._grammar.foreign:
            return False
        self._open_ended = False
        self._region = self._body = None
        if self._tentative is None:
            self._mode = type(self)._text
            self._out.problem("dropped_markup", f"{region.opener} stood where a call should be closed.", region.opener)
        else:
            self._mode = type(self)._tentatively
            self._tentative.raw.append(written)
        return True

    @abstractmethod
    def _heading(self, heading: Heading) -> None:
        """A heading of a message has been dropped; what it says of the message holds for what comes."""

    def _in_body(self, text: str, at: int, final: bool) -> Step:
        region, body = self._region, self._body
        assert region is not None  # noqa: S101 (a body was chosen)
        assert body is not None  # noqa: S101
        end, status = body.take(text, at, final=final)
        piece = text[at:end]
        region.use(piece)
        if status is Status.DONE:
            self._open_ended = not piece.rstrip().endswith(tuple(region.form.closers))
            self._complete(region, body)
            return end, True
        if status is Status.NOT:
            return self._reread(region, text[end:], region.start or len(region.opener))
        if not final:
            self._flow(region, body, piece)
            return end, False
        return self._incomplete(region, body)

    def _flow(self, region: Region, body: Body, piece: str) -> None:
        """Let the arguments of a long call go out while they are written."""
        if region.stream is not None and isinstance(body, JsonReader):
            if not body.broken:
                self._out.arguments(region.stream.feed(piece))
            return
        if self._stream_after is None or region.size < region.look_again or self._tentative is not None:
            return
        if region.opener in self._grammar.foreign or (self._out.calls and not self._parallel and not region.stream):
            return
        region.look_again = region.size + region.size // 4 + 1  # so that all looks together are linear
        begun = body.open_arguments() if isinstance(body, JsonReader) else None
        if begun is not None:
            self._flow_on(region, *begun)
        elif isinstance(body, TagsReader) and (call := body.begun()):
            text = self._tools.begun(call)
            if text is not None and text.startswith(region.written):
                more, region.written = text[len(region.written) :], text
                self._flow_on(region, call.name, more)

    def _flow_on(self, region: Region, written: str, arguments: str) -> None:
        """Let ``arguments`` go out, and the call of the tool ``written`` begin with them."""
        if region.stream is None:
            name = self._tools.declares(written) if self._tools else written
            if name is None:
                return
            region.stream = ArgumentStream(self._tools.schema(name))
            self._out.start(name)
        self._out.arguments(region.stream.feed(arguments))

    def _complete(self, region: Region, body: Body) -> None:
        """The body has ended: its calls go out, or wait, or all of it is text."""
        self._region = self._body = None
        calls = body.reading.calls
        if self._tentative is not None:
            if calls and len(calls) == len(body.reading.items) and self._may_wait(region, calls):
                self._tentative.raw.append(region.raw)
                self._tentative.calls.extend(calls)
                self._mode = type(self)._tentatively
            else:
                self._as_text(region.raw)
            return
        self._mode = type(self)._text
        apart = len(calls) < len(body.reading.items) and not all(call.explicit for call in calls)
        if not calls or apart or not self._believable(region, calls):
            self._unreadable(region, "What looked like a call could not be read as one.")
            return
        if body.reading.dropped:
            self._out.problem("dropped_text", "Text between a call and its closer was dropped.", body.reading.dropped)
        stream = region.stream
        for item in body.reading.items:
            if self.done:
                break
            if not isinstance(item, RawCall):
                self._out.problem("unreadable", "A part of a call could not be read.", item.text)
                self._show(item.text)
            elif stream is not None:
                self._end_stream(stream, item)
                stream = None
            else:
                self._send(item)
        self._code.line_start = False

    def _unreadable(self, region: Region, message: str) -> None:
        raw = region.raw
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
            self._mode = type(self)._over

    def _end_stream(self, stream: ArgumentStream, raw: RawCall) -> None:
        call = self._tools.resolve(raw, self._out.calls)
        if not self._out.finish_call(call, stream.sent):
            self._fail("The end of a tool call did not fit the arguments that had already gone out.")
        elif not self._parallel:
            self._mode = type(self)._over

    def _may_wait(self, region: Region, calls: list[RawCall]) -> bool:
        """A call without a tag must name a declared tool and have arguments; one in code must validate as well."""
        if region.bare:
            return all(call.explicit and self._tools.declares(call.name) for call in calls)
        return self._all_valid(calls)

    def _believable(self, region: Region, calls: list[RawCall]) -> bool:
        """A call in the way of another family must be valid; one that is but a name must be declared."""
        if region.bare:
            return self._may_wait(region, calls)
        if region.opener in self._grammar.foreign:
            return self._all_valid(calls)
        strict = region.form.declared
        for call in calls:
            if call.guessed and not self._tools.knows_values(call):
                return not self._tools
            if (strict or call.loose) and self._tools and not self._tools.declares(call.name):
                return False
        return True

    def _all_valid(self, calls: list[RawCall]) -> bool:
        return not self._tools or all(self._tools.resolve(call, 0).valid for call in calls)

    def _reread(self, region: Region, rest: str, shown: int) -> Step:
        """The first ``shown`` characters of ``region`` are text; what follows is read again."""
        raw = region.raw
        self._region = self._body = None
        if region.stream is not None:
            self._fail("A tool call whose arguments had begun to flow was never completed.")
            return 0, True
        self._reread_length += len(raw) - shown
        if self._reread_length > _REREAD_FREE + _REREAD_RATIO * self._total:
            shown = len(raw)
        self._as_text(raw[:shown])
        self._pending = raw[shown:] + rest
        return 0, True

    def _incomplete(self, region: Region, body: Body) -> Step:
        """The reply has ended inside a call."""
        raw = region.raw
        rest = body.salvage() if isinstance(body, JsonReader) and region.stream is None else None
        if rest is not None and not self._cut:
            whole = Region(region.opener, region.form, bare=region.bare)
            whole.use(raw[: len(raw) - rest])
            self._complete(whole, body)
            self._pending = raw[len(raw) - rest :]
            return 0, True
        if self._cut and region.bare and not self._begins_call(body):
            self._region = self._body = None
            self._as_text(raw)
            return len(self._pending), False
        if self._cut:
            self._region = self._body = None
            self._mode = type(self)._text
            for call in body.reading.calls:
                self._send(call)
            self._out.problem("cut", "The reply ended inside a call.", raw)
            return len(self._pending), False
        start = region.start
        begins = BLANK.match(raw, start).end()  # type: ignore[union-attr]  # it always matches
        closers = Marks(region.form.closers)
        at = start
        while not region.bare and (found := closers.find(raw, at)) and self._effort.allows(found.end):
            before = raw[max(0, found.start - _LOOK_BEHIND) : found.start]
            quoted = any(check(before, raw, found.end, final=True) for check in (in_string, stands_in_quotes))
            body_text = raw[begins : found.end]
            again = None if quoted else read_again(region.form, body_text, self._grammar.openers, self._effort)
            if again is not None:
                ended = Region(region.opener, region.form, stream=region.stream)
                ended.use(raw[: found.end])
                self._complete(ended, again)
                self._pending = raw[found.end :]
                return 0, True
            at = found.end
        if region.stream is None and self._closes_the_last(region, raw[:start]):
            self._pending = raw[start:]
            return 0, True
        held = self._tentative
        if held is None or (held.rule == "whole" and not held.orphan):  # elsewhere it may be what the answer is about
            self._out.problem("unreadable", "A call was opened and never completed.", raw)
        return self._reread(region, "", self._shown(region, body))

    def _begins_call(self, body: Body) -> bool:
        """Whether JSON that was cut, and is all of the answer, had named a declared tool."""
        begun = body.open_arguments() if isinstance(body, JsonReader) else None
        alone = self._tentative is None or not self._tentative.orphan
        return alone and begun is not None and self._tools.declares(begun[0]) is not None

    def _shown(self, region: Region, body: Body) -> int:
        """How much of a call that cannot be read is text for certain: up to its closer, or the next opener.

        An opener within a value is no call, nor is what stands before the closer that belongs to the outer one.
        """
        raw, at = region.raw, max(region.start, 1)
        first = self._grammar.ends.find(raw, at)
        if first is None or first.mark not in self._grammar.forms:
            return len(raw) if first is None else first.end
        if not body.in_value(raw[region.start : first.start]):
            return first.start
        pairs, depth = Marks({region.opener, *region.form.closers} - {""}), 1
        while depth and (found := pairs.find(raw, at)):
            depth += 1 if found.mark == region.opener else -1
            at = found.end
        return len(raw) if depth else at

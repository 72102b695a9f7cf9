"""Bodies of markup: a tag that names the tool, then one element a parameter whose text is the value.

Nothing escapes a value here, so what ends it is decided by what follows: a closer counts where the markup goes on
behind it. A value that is never closed ends at the first place where the call could have ended.
"""

from __future__ import annotations

import re

from proxy.core.bodies.base import RawCall, Reading, Status, Value
from proxy.core.dialects import TagsBody
from proxy.core.scanner import Marks

_SPACE = re.compile(r"\s*")
_LONGEST_TAG = 300


class TagsReader:
    """Reads one :class:`TagsBody`. ``closers`` end the body; without any it ends with its first call."""

    def __init__(self, spec: TagsBody, closers: Marks, openers: Marks) -> None:
        self.reading = Reading()
        self._spec = spec
        self._closers = closers
        self._openers = openers
        ends = set(closers.marks)
        if spec.call_end:
            ends.add(spec.call_end)
        self._ends = Marks(ends)
        self._single = not closers.marks
        self._name: str | None = None
        self._values: list[Value] = []
        self._key: str | None = None
        self._string: bool | None = None
        self._pieces: list[str] = []
        self._value_marks = self._ends
        self._candidates: list[tuple[int, str]] = []  # where the open value may have ended: length so far, the mark
        self._length = 0

    @staticmethod
    def fits(spec: TagsBody, text: str, *, final: bool) -> bool | None:
        """Whether ``text`` begins such a body; None when more of it is needed to tell."""
        text = text.lstrip()
        if not text:
            return None if not final else False
        if not text.startswith(spec.lead):
            return None if spec.lead.startswith(text) and not final else False
        if spec.call.match(text) and (final or spec.call.match(text + "x")):
            return True
        if final or len(text) >= _LONGEST_TAG:
            return bool(spec.call.match(text))
        return None if _may_grow(spec, text) else False

    def take(self, text: str, at: int, *, final: bool) -> tuple[int, Status]:
        """See :class:`~proxy.core.bodies.base.Body`."""
        while True:
            if self._key is not None:
                at, go_on = self._value(text, at, final=final)
                if not go_on:
                    return at, Status.MORE
                continue
            here = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            if here == len(text):
                if final and self._name is None and self.reading.items:
                    return here, Status.DONE
                return at, Status.MORE
            at, status = self._tag(text, here, final=final)
            if status is not None:
                return at, status

    def _tag(self, text: str, at: int, *, final: bool) -> tuple[int, Status | None]:
        """Between values: the next parameter, the end of the call, the next call, the closer."""
        closer = self._closers.at(text, at)
        if closer:
            self._end_call()
            return at + len(closer), Status.DONE
        call_end = self._spec.call_end
        if call_end and text.startswith(call_end, at) and self._name is not None:
            self._end_call()
            at += len(call_end)
            return at, Status.DONE if self._single else None
        if self._name is not None:
            found = self._spec.parameter.match(text, at)
            if found:
                self._open_value(found)
                return found.end(), None
        if self._name is None or self._spec.lead:
            found = self._spec.call.match(text, at)
            if found and (final or found.end() < len(text) or text[found.end() - 1] == ">"):
                self._end_call()
                self._name, self._values = found["name"].strip(), []
                return found.end(), None
        if not final and len(text) - at < _LONGEST_TAG and self._may_be_tag(text, at):
            return at, Status.MORE
        if self._openers.at(text, at) and self._name is None and self.reading.items:
            return at, Status.DONE
        if self._name is None and self.reading.items:
            return at, Status.DONE  # complete calls, then something else: the missing closer is forgiven
        return at, Status.NOT

    def _may_be_tag(self, text: str, at: int) -> bool:
        rest = text[at:]
        return rest[0] in "<]" if self._name is not None or self.reading.items else True

    def _open_value(self, found: re.Match[str]) -> None:
        groups = found.groupdict()
        self._key = found["key"].strip()
        self._string = {"true": True, "false": False}.get(groups.get("string") or "")
        self._pieces, self._length, self._candidates = [], 0, []
        end = self._spec.parameter_end.format(key=self._key)
        self._value_marks = Marks({end, *self._ends.marks})
        self._value_end = end

    def _use(self, piece: str) -> None:
        self._pieces.append(piece)
        self._length += len(piece)

    def _value(self, text: str, at: int, *, final: bool) -> tuple[int, bool]:
        """Inside a value. Returns the index used, and whether the value ended (or more can be read)."""
        marks = self._value_marks
        while found := marks.find(text, at, final=final):
            if found.mark == self._value_end:
                goes_on = self._goes_on(text, found.end, final=final)
                if goes_on is None:
                    self._use(text[at : found.start])
                    return found.start, False
                if goes_on:
                    self._use(text[at : found.start])
                    self._end_value()
                    return found.end, True
            else:
                ended = self._unclosed(text, found.start, final=final)
                if ended is None:
                    self._use(text[at : found.start])
                    return found.start, False
                if ended:
                    self._use(text[at : found.start])
                    self._end_value()
                    return found.start, True
            self._use(text[at : found.end])
            at = found.end
        hold = len(text) if final else marks.hold(text, at)
        self._use(text[at:hold])
        return hold, False

    def _goes_on(self, text: str, at: int, *, final: bool) -> bool | None:
        """Whether markup of the call goes on at ``at``, behind a value's closer; None when more is needed to tell."""
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if at == len(text):
            return True if final else None
        if self._ends.at(text, at) or self._spec.parameter.match(text, at) or self._openers.at(text, at):
            return True
        if self._spec.lead and self._spec.call.match(text, at):
            return True
        if not final and (self._ends.may_start(text, at) or (text[at] in "<]" and len(text) - at < _LONGEST_TAG)):
            return None if ">" not in text[at:] or self._ends.may_start(text, at) else self._grows(text, at)
        return False

    def _grows(self, text: str, at: int) -> bool | None:
        """Whether a parameter's opener of several tags (``<arg_key>k</arg_key><arg_value>``) may still be coming."""
        pattern_start = self._spec.parameter.pattern[:4].replace("\\", "")
        return None if text.startswith(pattern_start, at) and text.count(">", at) < 4 else False

    def _unclosed(self, text: str, at: int, *, final: bool) -> bool | None:
        """Whether an unclosed value ends at the call's own end: only where the reply goes on as if it did."""
        here = at
        while mark := self._ends.at(text, here):
            here = _SPACE.match(text, here + len(mark)).end()  # type: ignore[union-attr]
        if here == len(text):
            return True if final else None
        if not final and self._ends.may_start(text, here):
            return None
        return self._openers.at(text, here) is not None

    def _end_value(self) -> None:
        assert self._key is not None  # noqa: S101 (a value is open)
        text = "".join(self._pieces)
        if text.startswith("\n"):
            text = text[1:]
            text = text.removesuffix("\n")
        self._values.append(Value(self._key, text, self._string))
        self._key = None

    def _end_call(self) -> None:
        if self._name is not None:
            self.reading.items.append(RawCall(self._name, tuple(self._values)))
            self._name = None


def _may_grow(spec: TagsBody, text: str) -> bool:
    """Whether more text may turn ``text`` into the tag of a call."""
    if spec.lead:
        return ">" not in text
    return re.fullmatch(r"[\w.:/<-]*", text) is not None

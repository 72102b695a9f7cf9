"""Bodies of JSON: one call object, a list of them, several one after another, or a header and the arguments.

The end is found by a strict automaton, so nothing inside a string can end a call. Where the text stops being JSON,
every closer since then may be the end, and the first one for which a repair has exactly one reading is.
"""

from __future__ import annotations

import re
from functools import cached_property
from io import StringIO

from msgspec.structs import replace

from proxy.core.arguments.jsontext import scan
from proxy.core.arguments.repair import repair
from proxy.core.bodies.automaton import JsonAutomaton, State
from proxy.core.bodies.base import LONGEST_HEAD, Effort, Item, Leftover, RawCall, Reading, Status, reaches
from proxy.core.bodies.quotes import LONGEST_GAP, stands_in_quotes
from proxy.core.bodies.shapes import calls_in, open_arguments, unfence, usual_call
from proxy.core.forms import JsonBody
from proxy.core.scanner import Marks, marks_of

_SPACE = re.compile(r"\s*")
_FENCE_OPEN = re.compile(r"\s*```\w*[ \t]*\n\s*")
_FENCE_CLOSE = re.compile(r"\s*```")
_BETWEEN = re.compile(r"[\s,;]*")
_ANOTHER = re.compile(r"\{|\[\s*\{?")  # the next call, or a list of calls
_BRACKETS = re.compile(r"[\s\]}`]*")
_UNESCAPED_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
_NO_REMARK = re.compile(r"\{|<tool_res|\[Tool results\]")  # the next call, or a result that the model makes up
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_LONGEST_REMARK = 200  # characters of talk between the JSON and its closer; more than that is an answer


class JsonReader:
    """Reads one :class:`JsonBody`. ``closers`` end it; ``openers`` begin the next call and so end this one as well."""

    def __init__(self, spec: JsonBody, closers: Marks, openers: Marks, effort: Effort | None = None) -> None:
        self.reading = Reading()
        self._spec = spec
        self._closers = closers
        self._openers = openers
        self._text = StringIO()
        self._length = 0
        self._name: str | None = None
        self._inside = False  # in a value, which begins at:
        self._value_start = 0
        self._automaton: JsonAutomaton | None = None  # reads a value that comes in pieces
        self._values: list[tuple[int, int, RawCall | None]] = []  # where each stands, and the call where it is known
        self.broken = False  # the text stopped being strict JSON
        self._effort = effort or Effort()

    @cached_property
    def _ends(self) -> Marks:
        return marks_of(self._closers.marks | self._openers.marks)

    @staticmethod
    def fits(spec: JsonBody, text: str, *, final: bool) -> bool | None:
        """Whether ``text`` begins such a body; None when more of it is needed to tell."""
        if spec.header is not None:
            seen = reaches(spec.until, text, final=final)
            if not seen:
                return seen
            found = spec.header.match(text)
            if found is None:
                return False
            text = text[found.end() :]
        starts = "{" if spec.header is not None else spec.starts
        rest = text.lstrip()
        if rest.startswith("`"):
            fence = _FENCE_OPEN.match(text)
            if fence is None:
                return None if len(rest) < LONGEST_HEAD and "\n" not in rest and not final else False
            rest = text[fence.end() :]
        if rest:
            return rest[0] in starts
        return None if not final else False

    def take(self, text: str, at: int, *, final: bool) -> tuple[int, Status]:
        """See :class:`~proxy.core.bodies.base.Body`."""
        if not self._inside and not self._values and not self.broken:
            at = self._begin(text, at)
        while True:
            if self.broken:
                return self._search(text, at, final=final)
            if self._inside:
                at, state = self._value(text, at)
                if state is State.OPEN:
                    return at, Status.MORE
                continue
            at, status = self._after(text, at, final=final)
            if status is not None:
                return at, status

    @property
    def whole(self) -> bool:
        """Whether the JSON so far is complete, whatever may follow."""
        return bool(self._values) and not self._inside and not self.broken

    def in_value(self, text: str) -> bool:
        """Whether a string is open behind ``text``: an opener in it is data."""
        return len(_UNESCAPED_QUOTE.findall(text)) % 2 == 1

    def salvage(self) -> int | None:
        """Give up what is not complete; how many characters that is. None: nothing is."""
        if not self._values:
            return None
        self._inside = self.broken = False
        self.reading = Reading()
        self._finish()
        return self._length - self._values[-1][1]

    def open_arguments(self) -> tuple[str, str] | None:
        """The name, and the text so far of the arguments, of the one call that is still being written.

        None when it is not the first in its body, or when its arguments cannot be told yet.
        """
        if self.broken or self._values or not self._inside:
            return None
        value = self._text.getvalue()[self._value_start :]
        if self._name is not None:
            return self._name, value
        begun = open_arguments(value)
        return (begun[0], value[begun[1] :]) if begun else None

    def _use(self, text: str, at: int, end: int) -> int:
        self._text.write(text[at:end])
        self._length += end - at
        return end

    def _begin(self, text: str, at: int) -> int:
        """Past the header and a code fence, to the JSON; ``fits`` has said that it is there."""
        start = at
        if self._spec.header is not None:
            found = self._spec.header.match(text, at)
            assert found is not None  # noqa: S101 (``fits`` matched it)
            self._name, at = found["name"] and found["name"].strip(), found.end()
        fence = _FENCE_OPEN.match(text, at)
        at = fence.end() if fence else _SPACE.match(text, at).end()  # type: ignore[union-attr]
        self._use(text, start, at)
        self._open_value()
        return at

    def _open_value(self) -> None:
        self._inside = True
        self._value_start = self._length
        self._automaton = None

    def _value(self, text: str, at: int) -> tuple[int, State]:
        """Up to the end of the value, to where it breaks, or of ``text``. One that has come whole is read in one go."""
        call: RawCall | None = None
        end: int | None = None
        if self._automaton is None:
            usual = usual_call(text, at) if self._name is None and not self._spec.keyed else None
            call, end = usual or (None, _end_of_value(text, at))
        state = State.DONE
        if end is None:
            self._automaton = self._automaton or JsonAutomaton()
            end = self._automaton.take(text, at)
            state = self._automaton.state
        self._use(text, at, end)
        if state is State.DONE:
            self._values.append((self._value_start, self._length, call))
        self._inside = state is State.OPEN
        self.broken = state is State.FAILED
        return end, state

    def _after(self, text: str, at: int, *, final: bool) -> tuple[int, Status | None]:
        """Behind a complete value: the closer, the next value, the next opener, or talk."""
        here = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        closer = self._closers.at(text, here)
        fence = None if closer else _FENCE_CLOSE.match(text, here)
        if fence:
            here = _SPACE.match(text, fence.end()).end()  # type: ignore[union-attr]
            closer = self._closers.at(text, here)
        if here == len(text) and not final:
            return at, Status.MORE
        if closer:
            self._finish()
            return here + len(closer), Status.DONE
        if final and self._closers.hold(text, here) == here < len(text):  # the reply ends within the closer
            self._finish()
            return len(text), Status.DONE
        if self._openers.at(text, here):
            self._finish()
            return at, Status.DONE
        another = _ANOTHER.match(text, here) if self._name is None and not fence else None
        if another is not None:
            if another.end() == len(text) and another[0] != "{" and not final:
                return at, Status.MORE
            if another[0].endswith("{"):
                here = self._use(text, at, here)
                self._open_value()
                return here, None
        return self._talk(text, at, final=final) if self._closers.marks else self._brackets(text, at, final=final)

    def _brackets(self, text: str, at: int, *, final: bool) -> tuple[int, Status]:
        """Closing brackets too many at the very end are dropped."""
        end = _BRACKETS.match(text, at).end()  # type: ignore[union-attr]  # it always matches
        if end == len(text) and not final:
            return at, Status.MORE
        self._finish()
        if end < len(text):
            return at, Status.DONE
        self.reading.dropped = text[at:].strip()
        return end, Status.DONE

    def _talk(self, text: str, at: int, *, final: bool) -> tuple[int, Status | None]:
        """Words between the JSON and its closer are dropped; without a closer near by they belong to the answer."""
        blank = _BLANK_LINE.search(text, _SPACE.match(text, at).end())  # type: ignore[union-attr]
        limit = min(len(text), at + _LONGEST_REMARK, blank.start() if blank else len(text))
        found = self._ends.find(text, at, final=final)
        if found and found.start <= limit:
            self._finish()
            if found.mark in self._openers.marks or _NO_REMARK.search(text, at, found.start):
                return at, Status.DONE
            self.reading.dropped = text[at : found.start].strip()
            return found.end, Status.DONE
        if not final and self._ends.hold(text, at) <= limit:
            return at, Status.MORE
        return self._brackets(text, at, final=True)

    def _finish(self) -> None:
        body = self._text.getvalue()
        for start, end, call in self._values:
            self.reading.items += self._read(body[start:end], ()) if call is None else [call]

    def _read(self, value: str, repairs: tuple[str, ...]) -> list[Item]:
        if self._name is not None:
            return [RawCall(self._name, value, repairs)]
        try:
            items = calls_in(value, keyed=self._spec.keyed)
        except (ValueError, RecursionError):  # nested more deeply than can be read
            return [Leftover(value)]
        if not repairs:
            return items
        return [
            replace(item, repairs=(*repairs, *item.repairs)) if isinstance(item, RawCall) else item for item in items
        ]

    def _search(self, text: str, at: int, *, final: bool) -> tuple[int, Status]:
        """In text that is no JSON: the first closer, next opener or end at which a repair has one reading."""
        while found := self._ends.find(text, at, final=final):
            at = self._use(text, at, found.start)
            closed = found.mark in self._closers.marks
            quoted = stands_in_quotes(self._end(), text, found.end, final=final) if closed else False
            if quoted is None:
                return at, Status.MORE
            if self._repair(closed=closed, quoted=quoted):
                return (found.end if closed else found.start), Status.DONE
            at = self._use(text, found.start, found.end)
        if final:
            at = self._use(text, at, len(text))
            return at, Status.DONE if self._repair(closed=False) else Status.MORE
        return self._use(text, at, self._ends.hold(text, at)), Status.MORE

    def _end(self) -> str:
        """The last characters of the body so far."""
        self._text.seek(max(0, self._length - LONGEST_GAP))
        return self._text.read()

    def _repair(self, *, closed: bool, quoted: bool = False) -> bool:
        """Whether the body so far has one reading. Without a closer nothing may be added to make it complete, nor with
        one that stands in quotes itself (``quoted``): it may be the inside of a string that goes on.
        """
        if not self._effort.allows(self._length):
            return False
        body = self._text.getvalue()
        if self._name is not None:
            start = self._values[0][0] if self._values else self._value_start
            body = body[start:]
        mended = repair(unfence(body))
        if mended is None or (mended.completed and (quoted or not closed)):
            return False
        items = [item for text in mended.texts for item in self._read(text, mended.repairs)]
        if not any(isinstance(item, RawCall) for item in items):
            return False
        if any(isinstance(item, Leftover) for item in items):
            return False
        self.reading.items = items
        return True


def _end_of_value(text: str, at: int) -> int | None:
    """Where the object or list that begins at ``text[at]`` ends, if all of it has come: one call of a C parser."""
    if text.find("}", at) < 0:
        return None
    try:
        value, end = scan(text, at)
    except ValueError:
        return None
    return end if isinstance(value, dict | list) else None

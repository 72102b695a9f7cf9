"""Bodies of markup: a tag that names the tool, then one element a parameter whose text is the value.

Nothing escapes a value, so two rules say where it ends. Its closing tag counts only where the markup goes on behind it:
with a parameter, the end of the call, or the end of the body. And markup that a value quotes (a whole call, a parameter
on a line of its own) is closed by its own closing tags first. Read forgivingly, a value that is never closed ends where
the next parameter begins or the call ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape

from proxy.core.arguments.jsontext import dumps, members
from proxy.core.arguments.repair import repair
from proxy.core.bodies.base import Begun, Effort, RawCall, Value, reaches
from proxy.core.bodies.quotes import LONGEST_GAP, closing_tags_in_quotes, stands_in_quotes
from proxy.core.bodies.spanbody import SpanReader
from proxy.core.forms import TagsBody
from proxy.core.scanner import Marks

_SPACE = re.compile(r"\s*")
_GLM_SPACE = re.compile(r"(?:\s|\\n)*")  # GLM at times writes its line breaks as two characters
_NAME_SO_FAR = re.compile(r"[\w.:/-]*(?:\s*(?:<[\w/|]*)?|\\)")
_BREAK = re.compile(r"\r?\n")
_DEBRIS = re.compile(r"</?[^\s<>]{0,64}>?\s*")
_ITEM = "item"
_WIDEST_INDENT = 64
_LONGEST_TAG = 300
_LONGEST_OPENING = 32  # characters that may still belong to the tag in front of a value
_DEEPEST = 500
_WIDEST_ELEMENT = 1_000  # characters of one line in which a quoted element is looked for
_MOST_STOPS = 16  # ends of broken JSON that are tried


class TagsReader(SpanReader):
    """Reads one :class:`TagsBody`."""

    def __init__(self, spec: TagsBody, closers: Marks, openers: Marks, effort: Effort | None = None) -> None:
        self._spec = spec
        finals = (spec.call_end or spec.parameter_end).rpartition("}")[2]
        call_end = "" if spec.call_end is None or "{" in spec.call_end else spec.call_end
        super().__init__(closers, openers, effort, own_end=call_end, finals=(finals, "}"), goes_on=spec.lead)

    @staticmethod
    def fits(spec: TagsBody, text: str, *, final: bool) -> bool | None:
        """Whether ``text`` begins such a body; None when more of it is needed to tell."""
        if spec.lead:
            if text.startswith(spec.lead):
                seen = reaches(spec.until, text, final=final)
                return spec.call.match(text) is not None if spec.until and seen else seen
            return None if not final and spec.lead.startswith(text) else False
        if not final and _NAME_SO_FAR.fullmatch(text):
            return None
        return spec.call.match(text) is not None

    def begun(self) -> Begun | None:
        """What is certain by now of the first call; None if nothing is, or if its values are not simply text."""
        try:
            return None if self._spec.nested else _Markup(self._spec, self._text.getvalue()).begun()
        except ValueError:
            return None

    def in_value(self, text: str) -> bool:
        """Whether the last parameter that is opened in ``text`` is not closed in it."""
        opened = list(self._spec.parameter.finditer(text))[-1:]
        return any(self._spec.parameter_end.format(key=last["key"]) not in text[last.end() :] for last in opened)

    def _read(self, text: str, *, closed: bool, forgiving: bool) -> list[RawCall] | None:
        if (not closed and self._spec.call_end is None) or (forgiving and not self._spec.forgiven):
            return None
        try:
            markup = _Markup(self._spec, text, forgiving=forgiving, closed=closed, in_quotes=self._in_quotes)
            return markup.calls()
        except (ValueError, RecursionError):
            return None


@lru_cache(maxsize=256)
def _opener_of(closing: str) -> re.Pattern[str]:
    """What opens the elements that ``closing``, a tag, closes."""
    return re.compile(rf"<{re.escape(closing[2:-1])}(?:[\s=][^<>]*)?(?<!/)>")


class _Markup:
    """One body's text. Everything raises ``ValueError`` where the text is not what it should be."""

    def __init__(
        self, spec: TagsBody, text: str, *, forgiving: bool = False, closed: bool = False, in_quotes: bool = False
    ) -> None:
        self._spec = spec
        self._closed = closed  # the text ends at the closer of what stands around it
        self._in_quotes = in_quotes  # the closer behind the text stands in quotes
        self._text = text
        self._forgiving = forgiving
        self._first = (spec.lead or "<")[0]  # with which every tag begins

    def calls(self) -> list[RawCall]:
        found: list[RawCall] = []
        at = self._space(0)
        while at < len(self._text):
            call, at = self._call(at)
            found.append(call)
            at = self._space(at)
            if not self._spec.lead and at < len(self._text):
                raise ValueError("words behind the call")
        return found

    def begun(self) -> Begun | None:
        """The first call of a text that goes on."""
        opened = self._spec.call.match(self._text, self._space(0))
        if opened is None:
            return None
        name = unescape(opened["name"]).strip()
        end = None if self._spec.call_end is None else self._spec.call_end.format(name=name)
        values: list[Value] = []
        at: int | None = self._space(opened.end())
        while at is not None and (opened := self._spec.parameter.match(self._text, at)):
            if len(self._text) - opened.end() < _LONGEST_OPENING:  # more of it may come
                break
            stop, at = self._certain(opened.end(), opened["key"], end)
            value = self._plain(opened, stop)
            if at is None:
                return Begun(name, tuple(values), value if value.text else None)
            values.append(value)
            at = self._space(at)
        return Begun(name, tuple(values))

    def _certain(self, start: int, key: str, call_end: str | None) -> tuple[int, int | None]:
        """As ``_ends``, of a text that goes on. None: the value may go on too, and up to the first index is certain."""
        certain = start
        quoted: list[str] = []
        for at, past in self._tags(start, key, call_end, quoted):
            certain = certain if quoted else at
            if len(self._text) - at < _LONGEST_TAG:
                return certain, None
            if past is not None:
                return at, past
        return (certain if quoted else len(self._text)), None

    def _plain(self, opened: re.Match[str], stop: int) -> Value:
        """The value behind the tag ``opened``, as text."""
        groups = opened.groupdict()
        text = self._text[opened.end() : stop]
        layout = _BREAK.match(text) if self._spec.trimmed else None
        if layout is not None:
            text = text[layout.end() :].removesuffix("\n").removesuffix(layout[0][:-1])
        string = True if groups.get("string") else False if groups.get("json") else None
        return Value(unescape(opened["key"]).strip(), text, string)

    def _space(self, at: int) -> int:
        space = _GLM_SPACE if self._spec.own_tags else _SPACE
        return space.match(self._text, at).end()  # type: ignore[union-attr]  # it always matches

    def _call(self, at: int) -> tuple[RawCall, int]:
        opened = self._spec.call.match(self._text, at)
        if opened is None:
            raise ValueError("no call")
        name = unescape(opened["name"]).strip()
        if opened[0].endswith("/>"):
            return RawCall(name, "{}"), opened.end()
        end = None if self._spec.call_end is None else self._spec.call_end.format(name=name)
        at = self._space(opened.end())
        if self._text.startswith("{", at):
            call, at = self._json(name, at, end)
            whole = True
        else:
            values, at = self._values(at, end)
            loose = self._spec.loose and not (values and self._spec.own_tags)
            call = RawCall(name, tuple(values), loose=loose, guessed=self._forgiving)
            whole = self._forgiving or self._closed
        if end is None:
            return call, at
        if self._text.startswith(end, at):
            return call, at + len(end)
        if whole and (at == len(self._text) or (self._spec.lead and self._spec.call.match(self._text, at))):
            return call, at
        raise ValueError("the call is not closed")

    def _json(self, name: str, at: int, end: str | None) -> tuple[RawCall, int]:
        """Arguments as one JSON object instead of elements."""
        try:
            behind = members(self._text, at)[1]
            return RawCall(name, self._text[at:behind], loose=self._spec.loose), self._space(behind)
        except ValueError:
            for stop, quoted in self._stops(at, end):
                mended = repair(self._text[at:stop])
                readable = mended is not None and len(mended.texts) == 1 and mended.texts[0].startswith("{")
                if mended is not None and readable and not (quoted and mended.completed):
                    return RawCall(name, mended.texts[0], mended.repairs, loose=self._spec.loose), stop
            raise

    def _stops(self, at: int, end: str | None) -> Iterator[tuple[int, bool]]:
        """Where JSON from ``at`` on, not all of it strict, may end, and whether that stands in quotes."""
        if end is None:
            yield len(self._text), self._in_quotes
            return
        for _ in range(_MOST_STOPS):
            stop = self._text.find(end, at)
            if stop < 0:
                return
            before = self._text[max(0, stop - LONGEST_GAP) : stop]
            at = stop + len(end)
            quoted = stands_in_quotes(before, self._text, at, final=True)
            yield stop, self._in_quotes if at == len(self._text) else bool(quoted)

    def _values(self, at: int, call_end: str | None) -> tuple[list[Value], int]:
        values: dict[str, Value] = {}
        while opened := self._spec.parameter.match(self._text, at):
            stop, at = self._ends(opened.end(), opened["key"], call_end)
            value = self._plain(opened, stop)
            if value.key in values:
                raise ValueError("a parameter is given twice")
            elements = self._elements(value.text) if self._spec.nested else None
            values[value.key] = value if elements is None else Value(value.key, elements, string=False)
            at = self._space(at)
            end = self._spec.parameter_end.format(key=opened["key"])
            while not self._spec.nested and self._text.startswith(end, at):  # written twice
                at = self._space(at + len(end))
        return list(values.values()), at

    def _elements(self, text: str) -> str | None:
        """The JSON text of a value that is made of elements; None if it is plain text."""
        inner = _Markup(self._spec, text)
        at = inner._space(0)
        if self._spec.parameter.match(text, at) is None:
            return None
        found: list[tuple[str, str]] = []
        while opened := self._spec.parameter.match(text, at):
            stop, at = inner._ends(opened.end(), opened["key"], None)
            plain = text[opened.end() : stop]
            found.append((opened["key"], inner._elements(plain) or dumps(plain)))
            at = inner._space(at)
        keys = [key for key, _ in found]
        if at < len(text):
            raise ValueError("text among elements")
        if set(keys) == {_ITEM}:
            return "[" + ", ".join(value for _, value in found) + "]"
        if len(set(keys)) < len(keys):
            raise ValueError("an element is given twice")
        return "{" + ", ".join(f"{dumps(key)}: {value}" for key, value in found) + "}"

    def _ends(self, start: int, key: str, call_end: str | None) -> tuple[int, int]:
        """Where the value that begins at ``start`` ends, and where the text goes on behind its closing tag."""
        for at, past in self._tags(start, key, call_end, []):
            if past is not None:
                return at, past
            if self._forgiving and self._call_goes_on(at, call_end):
                return self._unclosed(start, at)
        if self._forgiving:
            return self._unclosed(start, len(self._text))
        raise ValueError("the value is not closed")

    def _tags(self, start: int, key: str, call_end: str | None, quoted: list[str]) -> Iterator[tuple[int, int | None]]:
        """Where tags may stand from the beginning of a value on, and the index past the one that closes it, else None.

        ``quoted`` has meanwhile the closing tags of the markup that is open inside the value.
        """
        end = self._spec.parameter_end.format(key=key)
        at = self._text.find(self._first, start)
        while at >= 0:
            yield at, at + len(end) if self._closes(at, end, start, quoted, call_end) else None
            at = self._text.find(self._first, self._skip(at, key, quoted, call_end))

    def _unclosed(self, start: int, end: int) -> tuple[int, int]:
        """A value that ends without its tag; one that ends in another tag may have ended before that."""
        last = self._text.rfind("<", max(start, end - _WIDEST_INDENT), end)
        if last >= 0 and _DEBRIS.fullmatch(self._text, last, end):
            raise ValueError("a value ends in a tag that is not its own")
        return end, end

    def _closes(self, at: int, end: str, start: int, quoted: list[str], call_end: str | None) -> bool:
        """Whether the closing tag of the value that begins at ``start`` stands at ``at`` and is one.

        It is where the markup goes on behind it, and where it stands as the templates lay it out, at the end of a line,
        alone there if the value began on a line of its own: what follows is then no part of the value.
        """
        if quoted or not self._text.startswith(end, at) or closing_tags_in_quotes(self._text, at):
            return False
        past = at + len(end)
        if self._goes_on(past, call_end) or self._text.startswith(end, self._space(past)):
            return True
        alone = self._text.startswith("\n", at - 1) or not _BREAK.match(self._text, start)
        return not self._spec.nested and alone and self._ends_line(past)

    def _ends_line(self, at: int) -> bool:
        return self._text[at : at + _WIDEST_INDENT].lstrip(" \t").startswith("\n")

    def _skip(self, at: int, key: str, quoted: list[str], call_end: str | None) -> int:
        """The index behind the tag at ``at`` if it belongs to quoted markup, else the next one."""
        for depth in reversed(range(len(quoted))):
            if self._text.startswith(quoted[depth], at):
                past = at + len(quoted[depth])
                del quoted[depth:]
                return past
        if self._forgiving:
            return at + 1
        if len(quoted) == _DEEPEST:
            raise ValueError("nested too deeply")
        opened = self._spec.call.match(self._text, at) if self._spec.lead and self._spec.call_end else None
        if opened is not None:
            closing = str(self._spec.call_end).format(name=opened["name"])
            if self._call_goes_on(self._space(opened.end()), closing):
                quoted.append(closing)
                return opened.end()
        opened, closing = self._spec.parameter.match(self._text, at), self._spec.parameter_end
        if opened is not None:
            closing = closing.format(key=opened["key"])
        elif closing.startswith("</"):  # another element that the same tag closes
            closing = closing.format(key=key)
            opened = _opener_of(closing).match(self._text, at)
        if opened is None:
            return at + 1
        if quoted or self._spec.nested or self._begins_line(at) or self._on_line(opened.end(), closing, call_end):
            quoted.append(closing)
            return opened.end()
        return at + 1

    def _on_line(self, at: int, closing: str, call_end: str | None) -> bool:
        """Whether ``closing`` follows on the same line, and does not close the value that this is in."""
        line = self._text.find("\n", at, at + _WIDEST_ELEMENT)
        found = self._text.find(closing, at, line if line >= 0 else at + _WIDEST_ELEMENT)
        return found >= 0 and not self._goes_on(found + len(closing), call_end)

    def _begins_line(self, at: int) -> bool:
        return self._text[max(0, at - _WIDEST_INDENT) : at].rstrip(" \t").endswith("\n")

    def _goes_on(self, at: int, call_end: str | None) -> bool:
        """Whether the markup goes on at ``at``, behind the closing tag of a value."""
        at = self._space(at)
        if at == len(self._text) or self._call_goes_on(at, call_end):
            return True
        return call_end is None and (
            self._spec.nested or bool(self._spec.lead and self._spec.call.match(self._text, at))
        )

    def _call_goes_on(self, at: int, call_end: str | None) -> bool:
        if self._spec.parameter.match(self._text, at):
            return True
        return call_end is not None and self._text.startswith(call_end, at)

"""Bodies of Gemma's own notation: ``call:get_weather{city:<|"|>Oslo<|"|>,days:3}``."""

from __future__ import annotations

import re

from proxy.core.bodies.base import Effort, RawCall
from proxy.core.bodies.relaxed import Relaxed
from proxy.core.bodies.spanbody import SpanReader
from proxy.core.forms import SketchBody
from proxy.core.scanner import Marks

_LEAD = "call:"
_CALL = re.compile(r"call:\s*(?P<name>[^\s{}]+)\s*(?={)")


class SketchReader(SpanReader):
    """Reads one :class:`SketchBody`."""

    def __init__(self, spec: SketchBody, closers: Marks, openers: Marks, effort: Effort | None = None) -> None:
        self._quotes = (spec.quote, '"', "'")
        super().__init__(closers, openers, effort, own_end="}", finals=("}",))

    @staticmethod
    def fits(spec: SketchBody, text: str, *, final: bool) -> bool | None:
        """Whether ``text`` begins such a body; None when more of it is needed to tell."""
        if text.startswith(_LEAD):
            return True
        return None if not final and _LEAD.startswith(text) else False

    def _read(self, text: str, *, closed: bool, forgiving: bool) -> list[RawCall] | None:
        literals = Relaxed(text, self._quotes, bare=True, forgiving=forgiving)
        calls: list[RawCall] = []
        at = literals.space(0)
        while at < len(text):
            found = _CALL.match(text, at)
            if found is None:
                return None
            try:
                arguments, at = literals.value(found.end())
            except ValueError:
                return None
            calls.append(RawCall(found["name"], arguments))
            at = literals.space(at)
        return calls

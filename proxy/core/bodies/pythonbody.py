"""Bodies of Python calls: ``[get_weather(city="Oslo"), get_time()]``, with or without the brackets."""

from __future__ import annotations

import re

from proxy.core.arguments.jsontext import dumps
from proxy.core.bodies.base import Effort, RawCall
from proxy.core.bodies.relaxed import PYTHON_QUOTES, Relaxed
from proxy.core.bodies.spanbody import SpanReader
from proxy.core.forms import PythonBody
from proxy.core.scanner import Marks

_NAME = r"[^\W\d][\w.-]*"
_BEGINS = re.compile(rf"\[?\s*{_NAME}\s*\(")
_SO_FAR = re.compile(rf"\[?\s*(?:{_NAME}\s*)?")
_CALL = re.compile(rf"(?P<name>{_NAME})\s*(?=\()")
_KEYWORD = re.compile(r"(?P<key>[^\W\d]\w*)\s*=(?!=)")
_BETWEEN = re.compile(r"[\s,;]*")


class PythonReader(SpanReader):
    """Reads a :class:`PythonBody`. Without closers it is a list in brackets and ends with them."""

    def __init__(self, spec: PythonBody, closers: Marks, openers: Marks, effort: Effort | None = None) -> None:
        self._loose = spec.loose
        super().__init__(closers, openers, effort, own_end=")]", finals=(")", "]"))

    @staticmethod
    def fits(spec: PythonBody, text: str, *, final: bool) -> bool | None:
        """Whether ``text`` begins such a body; None when more of it is needed to tell."""
        if not final and _SO_FAR.fullmatch(text):
            return None
        return _BEGINS.match(text) is not None

    def _read(self, text: str, *, closed: bool, forgiving: bool) -> list[RawCall] | None:
        try:
            return _calls(text, forgiving=forgiving, loose=self._loose)
        except ValueError:
            return None


def _calls(text: str, *, forgiving: bool, loose: bool) -> list[RawCall]:
    literals = Relaxed(text, PYTHON_QUOTES, forgiving=forgiving)
    at = literals.space(0)
    listed = text.startswith("[", at)
    if listed:
        literals.open.append("]")
        at += 1
    calls: list[RawCall] = []
    at = literals.space(at)
    while found := _CALL.match(text, at):
        arguments, at = _arguments(literals, found.end())
        repairs = ("quotes inside a string were not escaped",) if forgiving else ()
        calls.append(RawCall(found["name"], arguments, repairs, loose=loose))
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it always matches
    if listed and text.startswith("]", at):
        at = literals.space(at + 1)
    elif listed:
        raise ValueError("the list is not closed")
    if at < len(text):
        raise ValueError(f"no call at {at}")
    return calls


def _arguments(literals: Relaxed, at: int) -> tuple[str, int]:
    """The JSON text of the arguments in the brackets at ``at``: keywords, or one object."""
    keywords: dict[str, str] = {}
    objects: list[str] = []

    def item(here: int) -> int:
        found = _KEYWORD.match(literals.text, here)
        value, past = literals.value(found.end() if found else here)
        if found is None:
            objects.append(value)
        elif found["key"] in keywords:
            raise ValueError("a keyword is given twice")
        else:
            keywords[found["key"]] = value
        return past

    past = literals.items(at, item)
    if not objects:
        return "{" + ", ".join(f"{dumps(key)}: {value}" for key, value in keywords.items()) + "}", past
    if keywords or len(objects) > 1 or not objects[0].startswith("{"):
        raise ValueError("arguments without a name")
    return objects[0], past

"""Calls that are being read, and calls that wait for what follows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import StringIO
from typing import Literal

from proxy.core.bodies import reader_for
from proxy.core.bodies.base import Body, Effort, RawCall, Status
from proxy.core.forms import Form, Heading
from proxy.core.fragments import ArgumentStream
from proxy.core.scanner import Marks, marks_of

Rule = Literal["fence", "inline", "whole"]
"""Why a call is tentative: it stands in a code fence, in inline code, or has no tag at all."""


@dataclass(slots=True)
class Region:
    """A call being read. :attr:`raw` is all of its text so far, the opener included; the body begins at ``start``."""

    opener: str
    form: Form
    size: int = 0
    bare: bool = False
    stream: ArgumentStream | None = None
    start: int = 0
    look_again: int = 0  # the size at which to see whether arguments can flow
    written: str = ""  # the JSON of what has flowed of a body that is no JSON
    _text: StringIO = field(default_factory=StringIO)

    def use(self, text: str) -> None:
        """``text`` belongs to the call."""
        self._text.write(text)
        self.size += len(text)

    @property
    def raw(self) -> str:
        """All of its text so far."""
        return self._text.getvalue()


@dataclass(slots=True)
class Tentative:
    """Calls that count only if what follows allows it; else ``raw`` is text."""

    rule: Rule
    raw: list[str]
    calls: list[RawCall] = field(default_factory=list)
    closed: bool = False  # the fence around it has been closed
    orphan: bool = False  # bare JSON that is not the whole reply: only a closer behind it makes it a call


def read_again(form: Form, text: str, openers: Marks, effort: Effort) -> Body | None:
    """A fresh reading of a body of ``form`` that is taken to end, closer included, with ``text``; None: it does not."""
    for spec in form.bodies:
        if isinstance(spec, Heading):
            continue
        reader = reader_for(spec)
        if reader.fits(spec, text, final=True):
            body: Body = reader(spec, marks_of(frozenset(form.closers)), openers, effort)
            end, status = body.take(text, 0, final=True)
            return body if status is Status.DONE and end == len(text) and body.reading.calls else None
    return None

"""What the modes of a reader share: the pending text, what goes out, and the loop that lets the modes use text up."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from proxy.core.bodies.base import Effort
from proxy.core.calls import ToolSet
from proxy.core.code import Code
from proxy.core.grammar import Grammar
from proxy.core.output import Output
from proxy.core.regions import Region, Tentative

Step: TypeAlias = tuple[int, bool]
"""The index up to which a mode used the text, and whether to go on from there: False asks for more text."""

Mode: TypeAlias = Callable[[Any, str, int, bool], Step]
"""Uses up the text from an index on, as a method of the reader; the last argument says that nothing comes after it."""

BLANK = re.compile(r"[\s\u200b\u2060\ufeff]*")
"""White space, and characters that take no space: some models begin with a byte order mark, or put one behind a tag."""

_LONG_PENDING = 512


class Machine(ABC):
    """The state of a reader. A mode is a method, and :attr:`_mode` is the one that reads what comes next.

    It is kept unbound: a method that is bound to its reader would keep that until somebody looks for garbage.
    """

    __slots__ = (
        "_closing",
        "_code",
        "_effort",
        "_failure",
        "_fence_line",
        "_grammar",
        "_headed",
        "_mode",
        "_new_id",
        "_open_ended",
        "_out",
        "_parallel",
        "_pending",
        "_region",
        "_tentative",
        "_tools",
        "_total",
        "_waiting",
        "_waiting_size",
    )

    _mode: Mode

    def __init__(self, tools: ToolSet, grammar: Grammar, *, parallel: bool, new_id: Callable[[], str]) -> None:
        self._tools = tools
        self._grammar = grammar
        self._parallel = parallel
        self._new_id = new_id
        self._pending = ""
        self._waiting: list[str] = []
        self._waiting_size = 0
        self._total = 0  # characters that have come
        self._effort = Effort()
        self._closing: str | None = None  # the finish reason, once it is known
        self._failure: str | None = None  # why the reply cannot be completed honestly
        self._headed = False  # messages stand below headings, which say what is a call
        self._begin()

    def _begin(self) -> None:
        """Nothing has been read yet."""
        self._out = Output(self._new_id)
        self._code = Code()
        self._region: Region | None = None
        self._tentative: Tentative | None = None
        self._open_ended = False  # a call has just ended without a closer
        self._fence_line = ""  # the line that opened a code fence, while a call may follow

    def _take_in(self, text: str) -> None:
        """Read ``text``. When much is pending, the next look waits until as much again has come.

        All looks together are so linear in the text, whatever a mode has to wait for.
        """
        self._total += len(text)
        if len(self._pending) < _LONG_PENDING:
            self._pending += text
        else:
            self._waiting.append(text)
            self._waiting_size += len(text)
            if self._waiting_size < len(self._pending):
                return
        self._run(final=False)

    def _run(self, *, final: bool) -> None:
        if self._waiting:
            self._pending += "".join(self._waiting)
            self._waiting.clear()
            self._waiting_size = 0
        at, go_on = 0, True
        while go_on:
            at, go_on = self._step(at, final)
        self._pending = self._pending[at:]

    def _step(self, at: int, final: bool) -> Step:
        return self._mode(self, self._pending, at, final)

    @property
    def done(self) -> bool:
        """Whether nothing that follows counts: the upstream can be closed."""
        return self._mode is Machine._over

    @property
    def _cut(self) -> bool:
        """Whether the reply ended before the model had ended it."""
        return self._closing in ("length", "error")

    def _show(self, text: str) -> None:
        """``text`` is part of the answer."""
        if text:
            self._open_ended = self._open_ended and text.isspace()
            self._code.advance(text)
            self._out.text(text)

    def _fail(self, message: str) -> None:
        self._failure = message
        self._mode = type(self)._over

    @abstractmethod
    def _text(self, text: str, at: int, final: bool) -> Step:
        """The mode of the answer's text, to which every other one returns."""

    def _over(self, text: str, at: int, final: bool) -> Step:
        """Nothing that follows counts."""
        return len(text), False

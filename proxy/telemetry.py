"""The log: one line a request, for people or as JSON, and not a word of what was said unless that is wanted."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections import defaultdict
from functools import lru_cache
from typing import Literal, TextIO, TypeAlias

from msgspec import Struct, field

from proxy.core.events import Problem
from proxy.tape import Tape

logger = logging.getLogger("toolgraft")

REPAIRS = frozenset({"repaired", "coerced", "renamed", "promoted"})
"""The kinds of problem that were mended: the client got a call that the model had not written quite so."""

Fault: TypeAlias = Literal["client", "backend", "proxy"]

CONTEXT_CUT = "context-cut"
"""The warning of a prompt that the backend has silently cut, in the log and in the header of the answer."""

MOST_SHOWN = 200
"""Characters of a value that are shown. Some are what a client sent: the name of a model, say."""

MOST_CONTENT = 64 * 1024
"""Bytes of a request, and of its answer, that are logged where content is."""

_FIELDS = "toolgraft"
_NUMBERS = frozenset({bool, int, float})
_BASE64 = re.compile(r"(data:[^;,\s]{1,100};base64,)[A-Za-z0-9+/=_-]+")


class RequestLog(Struct):
    """What is known about one request, filled in as it becomes known.

    ``surface`` is the route's short name, ``client`` whose key was shown, ``mode`` the dispatcher that served it
    (``xml``, ``native``) or ``bytes`` for a path that is passed on unread, ``dialect`` how the model's calls are read.
    Token counts are None while unknown; ``estimated`` marks counts that the backend did not give. ``problems`` counts
    the reader's findings by kind. ``dropped_tools`` are the types of hosted tools that were left out of the request.
    ``reasks`` is how many times the model was asked again, ``rescued`` how many calls a native backend had left in its
    text. ``warning`` is the short name of what was wrong with an answer that was given all the same, ``error`` that of
    why there was none, and ``fault`` whose that was.

    Times are of ``time.perf_counter``, None while it has not come to that: the request was ``received`` whole, the
    backend was ``asked``, the ``first`` part of its answer was there to be sent on, and it had ``answered`` all.
    ``queued`` is the seconds that the request waited for its turn. ``tape`` keeps what is said, where that is wanted.
    """

    id: str
    surface: str
    client: str | None = None
    model: str | None = None
    backend: str | None = None
    mode: str | None = None
    dialect: str | None = None
    stream: bool = False
    status: int | None = None
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    estimated: bool = False
    problems: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    dropped_tools: str = ""
    reasks: int = 0
    rescued: int = 0
    warning: str | None = None
    error: str | None = None
    fault: Fault | None = None
    started: float = field(default_factory=time.perf_counter)
    received: float | None = None
    queued: float = 0.0
    asked: float | None = None
    first: float | None = None
    answered: float | None = None
    ended: float | None = None
    trace: tuple[tuple[str, str], ...] = ()
    tape: Tape | None = None

    @property
    def seconds(self) -> float:
        """From the request's head to the end of its answer, or up to now."""
        return (self.ended or time.perf_counter()) - self.started

    @property
    def added(self) -> float | None:
        """Seconds for which the client waited for the proxy alone; None if the backend was never asked.

        That is from the last byte of the request to the backend's being asked, the queue left out, and from the end of
        the backend's answer to the end of ours.
        """
        if self.asked is None:
            return None
        before = self.asked - (self.received or self.started) - self.queued
        after = 0.0 if self.answered is None else self.started + self.seconds - self.answered
        return max(0.0, before) + max(0.0, after)

    @property
    def repairs(self) -> int:
        """How many of the problems were mended."""
        return sum([count for kind, count in self.problems.items() if kind in REPAIRS]) if self.problems else 0

    def found(self, problem: Problem) -> None:
        """The reader found a problem in a reply."""
        self.problems[problem.kind] += 1
        self.rescued += problem.kind == "rescued"
        if self.tape is not None:
            self.tape.note(problem)

    def fields(self) -> dict[str, object]:
        """The line's fields in the order they are written; what is unknown or empty is left out."""
        fields: dict[str, object] = {
            "id": self.id,
            "surface": self.surface,
            "client": self.client,
            "model": self.model,
            "backend": self.backend,
            "mode": self.mode,
            "dialect": self.dialect,
            "stream": self.stream or None,
            "status": self.status,
            "calls": self.calls,
            "repairs": self.repairs,
            "problems": dict(self.problems) or None,
            "dropped_tools": self.dropped_tools or None,
            "reasks": self.reasks or None,
            "rescued": self.rescued or None,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "estimated": self.estimated or None,
            "queue_ms": _ms(self.queued) or None,
            "first_ms": None if self.first is None else _ms(self.first - self.started),
            "added_ms": _ms(self.added),
            "ms": _ms(self.seconds),
            "warning": self.warning,
            "error": self.error,
            "fault": self.fault,
        }
        return {
            key: _shortened(value) if type(value) is str and len(value) > MOST_SHOWN else value
            for key, value in fields.items()
            if value is not None
        }

    def write(self) -> None:
        """Write the line: a warning when the answer was a 5xx, else an information."""
        self.ended = self.ended or time.perf_counter()
        level = logging.WARNING if self.status is not None and self.status >= 500 else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "request", extra={_FIELDS: self.fields()})


def write_content(id: str, request: bytes, answer: bytes) -> None:  # noqa: A002
    """Write what a client sent and what it got, the start of each. Images and the like are left out."""
    logger.info("content", extra={_FIELDS: {"id": id, "request": _content(request), "answer": _content(answer)}})


class HumanFormatter(logging.Formatter):
    """``12:30:01 info request id=… model=…``: values that hold white space or control characters are JSON strings."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the values hold; a traceback follows on lines of its own, which are indented."""
        fields: dict[str, object] = getattr(record, _FIELDS, {})
        words = [_clock(int(record.created)), record.levelname.lower(), _one_line(record.getMessage())]
        words += [f"{key}={value if type(value) in _NUMBERS else _plain(value)}" for key, value in fields.items()]
        line = " ".join(words)
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).splitlines()
        return "\n".join([line, *("  " + _one_line(each) for each in trace)])


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``time`` (seconds since the epoch), ``level``, ``message``, then the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON; a traceback is the string ``exception``."""
        entry: dict[str, object] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, _FIELDS, {}),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure(*, as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send the proxy's log to ``stream`` (default: standard error). Calling it again replaces what was set."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else HumanFormatter())
    for name in ("toolgraft", "uvicorn.error"):
        target = logging.getLogger(name)
        target.handlers[:] = [handler]
        target.propagate = False
    # No line tells of these, and to find them out takes half of what a line costs (the logging HOWTO, "Optimization").
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None
    logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


@lru_cache(maxsize=1)
def _clock(second: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(second))


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else int(seconds * 10_000 + 0.5) / 10  # what ``round`` gives, in a third of the work


def _shortened(text: str) -> str:
    return text[:MOST_SHOWN] + "…"


def _content(data: bytes) -> str:
    text = _BASE64.sub(r"\1…", data[:MOST_CONTENT].decode("utf-8", "replace"))
    return text if len(data) <= MOST_CONTENT else text + "…"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ",".join([f"{key}:{count}" for key, count in value.items()])
    text = str(value)
    if text.isidentifier():
        return text
    is_word = text and not (" " in text or "=" in text or '"' in text)
    return _one_line(text) if is_word else json.dumps(text)


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)

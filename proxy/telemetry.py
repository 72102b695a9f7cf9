"""The log: one line a request, for people or as JSON, and never a word of what was said."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TextIO

logger = logging.getLogger("toolgraft")

REPAIRS = frozenset({"repaired", "coerced", "renamed", "promoted"})
"""The kinds of problem that were mended: the client got a call that the model had not written quite so."""

_FIELDS = "toolgraft"


@dataclass(slots=True)
class RequestLog:
    """What is known about one request, filled in as it becomes known.

    ``surface`` is the route's short name, ``mode`` the dispatcher that served it (``xml``, ``native``) or ``bytes`` for
    a path that is passed on unread. Token counts are None while unknown; ``estimated`` marks counts that the backend
    did not give. ``problems`` counts the reader's findings by kind. ``reasks`` is how many times the model was asked
    again, ``rescued`` how many calls a native backend had left in its text. ``warning`` is the short name of what was
    wrong with an answer that was given all the same.
    """

    id: str
    surface: str
    model: str | None = None
    backend: str | None = None
    mode: str | None = None
    stream: bool = False
    status: int | None = None
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    estimated: bool = False
    problems: Counter[str] = field(default_factory=Counter)
    reasks: int = 0
    rescued: int = 0
    warning: str | None = None
    error: str | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def repairs(self) -> int:
        """How many of the problems were mended."""
        return sum(count for kind, count in self.problems.items() if kind in REPAIRS)

    def fields(self) -> dict[str, object]:
        """The line's fields in the order they are written; what is unknown or empty is left out."""
        fields: dict[str, object] = {
            "id": self.id,
            "surface": self.surface,
            "model": self.model,
            "backend": self.backend,
            "mode": self.mode,
            "stream": self.stream or None,
            "status": self.status,
            "calls": self.calls,
            "repairs": self.repairs,
            "problems": dict(self.problems) or None,
            "reasks": self.reasks or None,
            "rescued": self.rescued or None,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "estimated": self.estimated or None,
            "ms": round((time.perf_counter() - self.started) * 1000, 1),
            "warning": self.warning,
            "error": self.error,
        }
        return {key: value for key, value in fields.items() if value is not None}

    def write(self) -> None:
        """Write the line: a warning when the answer was a 5xx, else an information."""
        level = logging.WARNING if self.status is not None and self.status >= 500 else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "request", extra={_FIELDS: self.fields()})


class HumanFormatter(logging.Formatter):
    """``12:30:01 info request id=… model=…``: values that hold white space or control characters are JSON strings."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, whatever the values hold; a traceback follows on lines of its own."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields: dict[str, object] = getattr(record, _FIELDS, {})
        words = [clock, record.levelname.lower(), _one_line(record.getMessage())]
        words += [f"{key}={_plain(value)}" for key, value in fields.items()]
        line = " ".join(words)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


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
    logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{count}" for key, count in value.items())
    text = str(value)
    return text if text and text.isprintable() and not any(char in text for char in ' "=') else json.dumps(text)


def _one_line(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)

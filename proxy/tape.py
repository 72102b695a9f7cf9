"""What is kept of one exchange while it runs: bytes as they pass, up to a bound, without keys and images."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from proxy.core.errors import ToolgraftError
from proxy.core.events import Problem

MOST_KEPT = 1024 * 1024
"""Bytes of one request or of one answer that are kept."""

MOST_LOOKED_AT = 8 * MOST_KEPT
"""Bytes of a request in which images are looked for, so that they leave room for what stands behind them."""

MOST_PROBLEMS = 200
SHORTEST_SECRET = 8
"""Characters: what is shorter is no key (clients that need none send "none", or "unused"), and may be a word."""

HIDDEN = b"[the key]"
Data = TypeVar("Data", bytes, bytearray)
_SHORTEST_RUN = 512
_RUN = rb"((?:[A-Za-z0-9+/=_-]|\\/){%d,}+)" % _SHORTEST_RUN
_BASE64 = (re.compile(rb";base64," + _RUN), re.compile(b'"' + _RUN))  # two: a fixed beginning is what makes them fast


def without_images(data: bytes) -> bytes:
    """``data`` with a marker for each long run of base64 that is one: an image, sound, a file."""
    at = 0  # behind a quote, or at the beginning
    while at + _SHORTEST_RUN <= len(data):
        last_quote = data.rfind(b'"', at, at + _SHORTEST_RUN)
        if last_quote < 0:
            for pattern in _BASE64:
                data = pattern.sub(_marker, data)
            return data
        at = last_quote + 1
    return data  # a quote in each stretch: no run is long enough, as in most requests


def _marker(found: re.Match[bytes]) -> bytes:
    return found[0][: found.start(1) - found.start()] + b"[%d bytes of base64]" % len(found[1])


class Kept:
    """The first bytes of a body. ``size`` is how many it has in all, ``claim`` asks for the room to keep some.

    ``room`` is what was given of that; without secrets the bytes themselves may be fewer. ``cut``: some were not kept.
    """

    __slots__ = ("_claim", "cut", "data", "room", "size")

    def __init__(self, claim: Callable[[int], bool]) -> None:
        self.data = bytearray()
        self.size = 0
        self.room = 0
        self.cut = False
        self._claim = claim

    def whole(self, body: bytes, secrets: Iterable[bytes]) -> None:
        """Keep a body that has come whole."""
        looked_at = without_images(hidden(body[:MOST_LOOKED_AT], secrets))
        self.add(looked_at)
        self.size = len(body)
        self.cut |= len(body) > MOST_LOOKED_AT

    def add(self, piece: bytes) -> None:
        """Keep a piece of it, if there is room."""
        size = len(piece)
        self.size += size
        if self.cut:
            return
        if self.room + size <= MOST_KEPT and self._claim(size):
            self.data += piece
            self.room += size
            return
        part = piece[: MOST_KEPT - len(self.data)]
        if self._claim(len(part)):
            self.data += part
            self.room += len(part)
        self.cut = len(part) < len(piece) or len(self.data) < self.size

    def hide(self, secrets: Iterable[bytes]) -> None:
        """Take ``secrets`` out of what was kept."""
        self.data = hidden(self.data, secrets)


def hidden(data: Data, secrets: Iterable[bytes]) -> Data:
    """``data`` without ``secrets``."""
    for secret in secrets:
        data = data.replace(secret, HIDDEN)
    return data


class Turn(Struct):
    """One request to a backend. ``status`` and ``error`` are None until there is one; ``asked`` is the time of day."""

    url: str
    sent: Kept
    came: Kept
    asked: float
    status: int | None = None
    error: str | None = None
    problems: list[Problem] = field(default_factory=list)


class Settings(NamedTuple):
    """How the model's text was read."""

    dialect: str
    model: str | None
    starts_in_reasoning: bool
    parallel: bool = True


class Tape:
    """One exchange: what the client ``asked`` and was ``told``, and the ``turns`` with backends between the two.

    ``secrets`` are the keys that were shown, and never kept. ``settings`` None: the text was not read for calls.
    """

    def __init__(self, claim: Callable[[int], bool], secrets: Iterable[str] = ()) -> None:
        self._claim = claim
        self._secrets: set[bytes] = set()
        self.conceal(secrets)
        self.asked = Kept(claim)
        self.told = Kept(claim)
        self.turns: list[Turn] = []
        self.settings: Settings | None = None
        self._problems = 0

    @property
    def room(self) -> int:
        """Bytes that were claimed for all of it."""
        return self.asked.room + self.told.room + sum([turn.sent.room + turn.came.room for turn in self.turns])

    def conceal(self, secrets: Iterable[str]) -> None:
        """Keep none of ``secrets``."""
        for secret in secrets:
            found = secret.strip().encode("utf-8", "replace")
            if len(found) >= SHORTEST_SECRET:
                self._secrets.add(found)

    def ask(self, body: bytes) -> None:
        """The client's request is ``body``."""
        self.asked.whole(body, self._secrets)

    def turn(self, url: str, body: bytes) -> Turn:
        """A backend is sent ``body``."""
        turn = Turn(url.partition("?")[0], Kept(self._claim), Kept(self._claim), time.time())  # a query may hold keys
        turn.sent.whole(body, self._secrets)
        self.turns.append(turn)
        return turn

    def fail(self, turn: Turn, error: ToolgraftError) -> None:
        """The backend gave no reply to ``turn``."""
        turn.error = hidden(error.message.encode("utf-8", "replace"), self._secrets).decode()

    def note(self, problem: Problem) -> None:
        """The reader found something in the reply to the last turn."""
        self._problems += 1
        if self.turns and self._problems <= MOST_PROBLEMS:
            self.turns[-1].problems.append(problem)

    def shown(self, kept: Kept) -> bytes:
        """What was kept by now, fit to be shown while the exchange runs."""
        return hidden(bytes(kept.data), self._secrets)

    def end(self) -> None:
        """The exchange is over: from now on not even the secrets to leave out are known."""
        for kept in (self.told, *[turn.came for turn in self.turns]):
            kept.hide(self._secrets)
        self._secrets.clear()

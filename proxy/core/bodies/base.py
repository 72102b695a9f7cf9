"""What every kind of body has in common: it takes text in pieces until it knows where the call ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct


class Value(Struct, frozen=True):
    """A parameter's value as raw text. ``string`` is what the model itself said of it (None: nothing)."""

    key: str
    text: str
    string: bool | None = None


class RawCall(Struct, frozen=True):
    """A call as the model wrote it: the name unmatched, the arguments as the text of a JSON object or as raw values.

    ``repairs`` are sentences, one for each kind of repair that was needed. ``explicit``: the model wrote arguments.
    ``loose``: nothing but the name makes it a call, so it must be a declared one. ``guessed``: where a value ends was
    told by what looks like the next parameter, so that must be a declared one.
    """

    name: str
    arguments: str | tuple[Value, ...]
    repairs: tuple[str, ...] = ()
    explicit: bool = True
    loose: bool = False
    guessed: bool = False


class Begun(Struct, frozen=True):
    """What is certain of a call whose parameters are still being written: ``values`` are whole, ``last`` so far."""

    name: str
    values: tuple[Value, ...]
    last: Value | None = None


class Leftover(Struct, frozen=True):
    """A piece of a body that is not a readable call: it stays visible."""

    text: str


Item: TypeAlias = RawCall | Leftover


class Status(Enum):
    """What a body knows after a piece."""

    MORE = "more"  # wants more text
    DONE = "done"  # the call or calls end at the returned index; ``reading`` holds them
    NOT = "not"  # this is no body of its kind


@dataclass(slots=True)
class Reading:
    """What a body found. ``dropped`` is text between the body's end and its closer that means nothing."""

    items: list[Item] = field(default_factory=list)
    dropped: str = ""

    @property
    def calls(self) -> list[RawCall]:
        """The readable calls."""
        return [item for item in self.items if isinstance(item, RawCall)]


_FREE = 400_000
_RATIO = 8


@dataclass(slots=True)
class Effort:
    """How many characters of one reply may be read again to find where its calls end.

    It is in proportion to what has come, so that a hostile reply costs linear time; ``position`` is where the body that
    is being read begins. How the reply was cut into pieces makes no difference.
    """

    position: int = 0
    spent: int = 0

    def allows(self, length: int) -> bool:
        """Whether a body of ``length`` characters may be read once more; counts it."""
        self.spent += length
        return self.spent <= _FREE + _RATIO * (self.position + length)


LONGEST_HEAD = 300
"""Characters in which the end of what a body, or a heading, begins with must stand."""


def reaches(until: str, text: str, *, final: bool) -> bool | None:
    """Whether ``until`` stands in the head of ``text``, so that it shows what begins there; None: not known yet."""
    if until in text[:LONGEST_HEAD]:
        return True
    return None if not final and len(text) < LONGEST_HEAD else False


class Body(Protocol):
    """A reader for one body, from behind the opener to behind the closer."""

    reading: Reading

    def take(self, text: str, at: int, *, final: bool) -> tuple[int, Status]:
        """Read ``text`` from ``at``. Returns the index up to which it was used, and what is known.

        What was not used must be given again in front of the next piece. ``final``: nothing comes after ``text``;
        a body that is not complete then answers ``MORE``.
        """
        ...

    def in_value(self, text: str) -> bool:
        """Whether a value is open behind ``text``, the beginning of a body that could not be read."""
        ...

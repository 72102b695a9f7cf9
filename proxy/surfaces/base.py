"""What a client-facing protocol is to the application: how requests are read and how answers and errors are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from proxy.core.collect import Reply
from proxy.core.errors import ToolgraftError
from proxy.core.events import Event
from proxy.core.model import Json, Request

Headers: TypeAlias = Sequence[tuple[str, str]]

MOST_NAMED = 1000
"""Characters of what is named of a request in a header, of which many programs take a few KiB, or in the log."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a surface says that belongs to no one request.

    ``name`` is what the log calls it. ``keep_alive`` fills a silence between two events of a stream. ``encode_error``
    gives the status, the headers and the body of an error response, ``stream_error`` what ends a stream in which
    nothing was said yet.
    """

    name: str
    keep_alive: bytes
    encode_error: Callable[[ToolgraftError], tuple[int, Headers, bytes]]
    stream_error: Callable[[ToolgraftError], bytes]


class Encoder(Protocol):
    """One streamed answer: ``start()``, ``encode()`` any number of times, then ``done()``, or else ``error()``."""

    def start(self) -> bytes:
        """What comes before the first event."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """What shows of ``events``, maybe nothing."""

    def done(self) -> bytes:
        """The end."""

    def error(self, error: ToolgraftError) -> bytes:
        """The end of an answer that fails."""


class Surface(Protocol):
    """One request of a client, made of its body; that raises ``ClientError``.

    ``raw`` is the body as JSON. ``model`` is None if none was named. ``body`` is the request in the format of Chat
    Completions, which backends speak too; None on other surfaces. ``dropped`` are the types of hosted tools that were
    left out; to know them the request is read.
    """

    shape: ClassVar[Shape]
    raw: dict[str, Json]
    model: str | None
    stream: bool
    body: bytes | None

    @property
    def dropped(self) -> Sequence[str]:
        """Raises ``ClientError``."""

    def request(self) -> Request:
        """What is asked for. Raises ``ClientError``."""

    def headers(self) -> Headers:
        """Headers of the answer that say how the request was read."""

    def encoder(self) -> Encoder:
        """The encoder of a streamed answer."""

    def encode(self, reply: Reply) -> bytes:
        """A whole answer. Raises ``UpstreamError`` for a reply that was not completed."""


def dropped_header(types: Sequence[str]) -> list[tuple[str, str]]:
    """The header that names hosted tools that were left out, by their ``types``, if there are any."""
    return [("x-toolgraft-dropped-tools", ascii(", ".join(types))[1:-1][:MOST_NAMED])] if types else []

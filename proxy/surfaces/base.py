"""What a client-facing protocol is to the application: how requests are read and how answers and errors are told."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from proxy.core.collect import Reply
from proxy.core.errors import ToolgraftError
from proxy.core.events import Event
from proxy.core.model import Request
from proxy.wire.bodies import load_body

Headers: TypeAlias = Sequence[tuple[str, str]]

NO_MODEL = "default"
"""The model's name in answers to requests that named none."""

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


class Decoded(Protocol):
    """A request as its codec has read it. ``dropped_tools`` are the types of hosted tools that were left out."""

    @property
    def request(self) -> Request:
        """What is asked for."""

    @property
    def dropped_tools(self) -> tuple[str, ...]:
        """Each type once."""


class Surface(ABC):
    """One request of a client. Its body must be a JSON object, else ``ClientError``; the rest is read when needed.

    ``raw`` is the body as JSON. ``model`` is None if none was named. ``body`` is the request in the format of Chat
    Completions, which backends speak too; None on other surfaces.
    """

    shape: ClassVar[Shape]
    body: bytes | None = None

    def __init__(self, body: bytes) -> None:
        self.raw = load_body(body)
        model = self.raw.get("model")
        self.model = model if isinstance(model, str) and model else None
        self.stream = self.raw.get("stream") is True

    @property
    @abstractmethod
    def _decoded(self) -> Decoded:
        """The request, read once. Raises ``ClientError``."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The types of hosted tools that were left out. Raises ``ClientError``."""
        return self._decoded.dropped_tools

    def request(self) -> Request:
        """What is asked for. Raises ``ClientError``."""
        return self._decoded.request

    def headers(self) -> list[tuple[str, str]]:
        """Headers of the answer that say how the request was read."""
        return dropped_header(self.dropped)

    @abstractmethod
    def encoder(self) -> Encoder:
        """The encoder of a streamed answer."""

    @abstractmethod
    def encode(self, reply: Reply) -> bytes:
        """A whole answer. Raises ``UpstreamError`` for a reply that was not completed."""


def dropped_header(types: Sequence[str]) -> list[tuple[str, str]]:
    """The header that names hosted tools that were left out, by their ``types``, if there are any."""
    return [("x-toolgraft-dropped-tools", ascii(", ".join(types))[1:-1][:MOST_NAMED])] if types else []

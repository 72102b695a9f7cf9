"""What goes into the relay and what comes out of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from proxy.core.errors import UpstreamError
from proxy.core.events import Event
from proxy.core.model import Request

Item = TypeVar("Item")
Headers: TypeAlias = Sequence[tuple[str, str]]


class Begun(Generic[Item]):
    """An async generator whose first item has come; without a ``rest``, that alone. It ends early when closed."""

    def __init__(
        self,
        first: Item | None,
        rest: AsyncGenerator[Item, None] | None = None,
        amend: Callable[[UpstreamError], None] = lambda error: None,
    ) -> None:
        self._first = first
        self._rest = rest
        self._amend = amend
        self._afterwards: list[Callable[[], object]] = []

    @classmethod
    async def wait(
        cls, source: AsyncGenerator[Item, None], amend: Callable[[UpstreamError], None] = lambda error: None
    ) -> Begun[Item]:
        """Wait for the first item of ``source``. Raises what it raises, then and later; ``amend`` sees it first."""
        try:
            return cls(await anext(source, None), source, amend)
        except UpstreamError as error:
            amend(error)
            raise

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._rest is None:
            raise StopAsyncIteration
        try:
            return await anext(self._rest)
        except UpstreamError as error:
            self._amend(error)
            raise

    def afterwards(self, do: Callable[[], object]) -> None:
        """Have ``do`` called when this is closed."""
        self._afterwards.append(do)

    async def aclose(self) -> None:
        """Close the generator, whether it has ended or not."""
        self._first = None
        try:
            if self._rest is not None:
                await self._rest.aclose()
        finally:
            while self._afterwards:
                self._afterwards.pop()()


class ByteReply(Struct, frozen=True):
    """The backend's answer as it came. ``headers`` are fit to be sent on; ``body`` is whole, or to be closed."""

    status: int
    headers: Headers
    body: bytes | Begun[bytes]


class EventReply(Struct, frozen=True):
    """The backend's answer as events, in batches. It is to be closed."""

    batches: Begun[list[Event]]


class Ask(Struct, frozen=True):
    """A generation that a client asks for.

    ``headers`` gives the client's own, names in lower case. ``body`` is the client's request as it came if that is in
    the format that backends speak too, else None: the answer then comes as events. ``decode`` reads the request, which
    is only done where more has to be known of it than its bytes; it may raise ``ClientError``. ``size`` is the bytes
    that the request came in.
    """

    model: str | None
    stream: bool
    headers: Callable[[], Headers]
    body: bytes | None
    decode: Callable[[], Request]
    size: int = 0

"""The last exchanges, newest last: so many at most, and so many bytes of what was said in them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from proxy.inspector.outcome import Outcome, outcome
from proxy.tape import Tape
from proxy.telemetry import RequestLog

_SHOWN = frozenset(
    {
        *(b"accept", b"anthropic-beta", b"anthropic-version", b"content-length", b"content-type", b"host"),
        *(b"openai-beta", b"origin", b"traceparent", b"user-agent"),
    }
)
"""Headers that are kept. The list is closed: any other may hold a secret."""


RUNNING = Outcome("running")


@lru_cache(maxsize=256)
def _is_shown(name: bytes) -> bool:
    return name in _SHOWN or name.startswith(b"x-stainless-")


class Entry(Struct):
    """One exchange. ``began`` is its time of day; ``tape`` is None once there was no more room for what was said.

    ``revision`` grows over all entries, whenever one of them changes.
    """

    number: int
    revision: int
    began: float
    method: str
    path: str
    raw_headers: tuple[tuple[bytes, bytes], ...]
    log: RequestLog
    tape: Tape | None
    outcome: Outcome = RUNNING

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Those of the client's request that are kept."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.raw_headers]

    @property
    def running(self) -> bool:
        """It is not over yet."""
        return self.outcome.word == "running"


class Ring:
    """Keeps ``most`` exchanges and, over all of them, ``most_bytes`` of what was said."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._entries: deque[Entry] = deque()
        self._most = most
        self._most_bytes = most_bytes
        self._held = 0
        self._numbers = 0
        self._revision = 0
        self._changed: asyncio.Event | None = None  # while someone waits

    def begin(
        self,
        log: RequestLog,
        method: str,
        path: str,
        headers: Iterable[tuple[bytes, bytes]],
        secrets: Iterable[str] = (),
    ) -> Entry:
        """An exchange begins. What is said in it goes to ``entry.tape``, and to ``log.tape``, which is the same."""
        self._numbers += 1
        kept = tuple([pair for pair in headers if _is_shown(pair[0])])
        log.tape = Tape(self._claim, secrets)
        entry = Entry(self._numbers, 0, time.time(), method, path, kept, log, log.tape)
        self._entries.append(entry)
        while len(self._entries) > self._most:
            self._forget(self._entries.popleft())
        self._touch(entry)
        return entry

    def end(self, entry: Entry) -> None:
        """The exchange is over."""
        if entry.tape is not None:
            entry.tape.end()
        entry.log.tape = None
        entry.outcome = outcome(entry.log, entry.tape)
        self._touch(entry)

    def get(self, number: int) -> Entry | None:
        """The exchange with that number, if it is still there."""
        return next((entry for entry in self._entries if entry.number == number), None)

    def since(self, revision: int) -> Iterator[Entry]:
        """The entries that changed after that, in the order in which they began."""
        return (entry for entry in tuple(self._entries) if entry.revision > revision)

    @property
    def revision(self) -> int:
        """That of the last change."""
        return self._revision

    @property
    def held(self) -> int:
        """Bytes that are kept now."""
        return self._held

    async def changed(self, revision: int, within: float) -> None:
        """Wait until something has changed after that revision, or for so many seconds."""
        if self._revision > revision:
            return
        self._changed = self._changed or asyncio.Event()
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return

    def _touch(self, entry: Entry) -> None:
        self._revision += 1
        entry.revision = self._revision
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def _claim(self, size: int) -> bool:
        """Make room for so many bytes; of the oldest exchanges only the line stays. Whether there is room."""
        if self._held + size > self._most_bytes:
            for entry in self._entries:
                if self._held + size <= self._most_bytes:
                    break
                if not entry.running:
                    self._forget(entry)
        if self._held + size > self._most_bytes:
            return False
        self._held += size
        return True

    def _forget(self, entry: Entry) -> None:
        tape, entry.tape, entry.log.tape = entry.tape, None, None
        if tape is not None:
            self._held -= tape.room

"""Compressed bodies, in pieces of bounded size: a few bytes on the wire may stand for gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
"""Bytes that one step may yield at most."""

ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""The content codings that are understood. None is ever asked for."""

_SLICE = 4 * 1024
"""Bytes that are fed at once: at the end of every member what follows of them is copied, and a member may be tiny."""

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Inflater:
    """Undoes one gzip or zlib coding."""

    __slots__ = ("_decoder", "_fed")

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._fed = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What ``data`` stands for, as far as it can be told yet, in pieces of at most ``PIECE`` bytes.

        The iteration raises ``zlib.error`` for what is in neither coding.
        """
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def _feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            if self._decoder.eof and data:  # gzip allows several members, one after another
                self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
            self._fed = self._fed or bool(data)
            piece = self._decoder.decompress(data, PIECE)
            data = self._decoder.unused_data if self._decoder.eof else self._decoder.unconsumed_tail
            if piece:
                yield piece
            if not data and len(piece) < PIECE:
                return

    @property
    def complete(self) -> bool:
        """The coding came to its end, or there was no body at all."""
        return self._decoder.eof or not self._fed

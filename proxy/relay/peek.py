"""The model that a request is about which is passed on as bytes, found without holding back more of it than needed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import partial
from typing import TypeAlias

from proxy.apart import apart
from proxy.relay.native import with_model
from proxy.wire import jsonio

Body: TypeAlias = bytes | AsyncIterator[bytes]

MOST_JSON = 16 * 1024 * 1024
"""Bytes of a JSON body that are held back: a batch of texts to embed may stand before the model's name."""

MOST_FORM = 256 * 1024
"""Bytes of a form that are held back: its fields come before its files, with every SDK there is."""

MOST_LOOKS = 64
"""How often a form is looked through while it comes: once for a piece with a boundary in it."""

_FORM = re.compile(r'multipart/form-data\b.*;\s*boundary="?([^";]{1,70})', re.IGNORECASE | re.DOTALL)
_OF_MODEL = re.compile(rb'content-disposition:[^\r\n]*;\s*name="?model"?\s*(?:;|\r\n)', re.IGNORECASE)


class Passing:
    """A body on its way to a backend, which can be looked into first."""

    def __init__(self, body: Body) -> None:
        self._start = body if isinstance(body, bytes) else b""
        self._rest = None if isinstance(body, bytes) else body
        self._place: tuple[int, int] | None = None
        self._begun = False
        self.model: str | None = None
        """What it asks for, as far as ``look`` has found that."""

    @property
    def repeatable(self) -> bool:
        """Whether it can be sent, also after it was sent before."""
        return self._rest is None or not self._begun

    def body(self) -> Body:
        """What to send. An iterator, if it is one, can be read only once."""
        return self._start if self._rest is None else self._pieces(self._rest)

    async def look(self, content_type: str) -> None:
        """Find the model: a member of a JSON object, whatever its type is called, or a field of a form.

        Raises what reading the body raises.
        """
        form = _FORM.match(content_type)
        if form:
            boundary = b"--" + form[1].encode("latin-1", "replace")
            seen = looks = 0
            while len(self._start) < MOST_FORM and looks < MOST_LOOKS:
                if self._start.find(boundary, max(0, seen - len(boundary))) >= 0:
                    looks += 1
                    if self._find_field(boundary):
                        break
                seen = len(self._start)
                if not await self._read(1):
                    break
            return
        while not self._start.strip() and len(self._start) < MOST_FORM and await self._read(1):
            pass
        if self._start.lstrip().startswith(b"{"):
            await self._read(MOST_JSON)
            if self._rest is None:
                await apart(len(self._start), self._find_member)

    async def rename(self, model: str | None) -> int:
        """Ask for another ``model``, if there is one and it was found. Returns how many bytes that adds.

        Raises ``ClientError`` when the body cannot be changed.
        """
        before = len(self._start)
        if model is not None and self.model is not None and model != self.model:
            if self._place is None:
                self._start = await apart(before, partial(with_model, self._start, model))
            else:
                first, end = self._place
                self._start = self._start[:first] + model.encode() + self._start[end:]
        return len(self._start) - before

    async def _read(self, wanted: int) -> bool:
        """Read ``wanted`` bytes more, if there are as many, and not much beyond. Whether any came."""
        pieces: list[bytes] = []
        while self._rest is not None and wanted > 0:
            piece = await anext(self._rest, None)
            if piece is None:
                self._rest = None
            else:
                pieces.append(piece)
                wanted -= len(piece)
        self._start = b"".join([self._start, *pieces])
        return bool(pieces)

    async def _pieces(self, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._begun = True
        if self._start:
            yield self._start
        async for piece in rest:
            yield piece

    def _find_member(self) -> None:
        try:
            value = jsonio.loads(self._start)
        except ValueError:
            return  # the backend will say so
        model = value.get("model") if isinstance(value, dict) else None
        self.model = model if isinstance(model, str) else None

    def _find_field(self, boundary: bytes) -> bool:
        """Find the field whose value has come whole."""
        for part in re.finditer(re.escape(boundary) + rb"\r\n((?:[^\r\n]{1,1000}+\r\n){1,16}+)\r\n", self._start):
            end = self._start.find(b"\r\n" + boundary, part.end())
            if end >= 0 and _OF_MODEL.search(part[1]):
                self._place = part.end(), end
                self.model = self._start[slice(*self._place)].decode("utf-8", "replace")
                return True
        return False

"""HTTP/1.1 with as little as works between the programs of this benchmark: messages that are well formed."""

from __future__ import annotations

import re

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class Message:
    """Takes one message apart as it comes. ``head`` is None until it is there; ``ended`` once all has come."""

    __slots__ = ("_chunked", "_held", "_left", "ended", "head")

    def __init__(self) -> None:
        self.head: bytes | None = None
        self.ended = False
        self._held = b""
        self._left = 0  # of the body, or of the chunk with its line end
        self._chunked = False

    def feed(self, data: bytes) -> bytes:
        """What of the body ``data`` holds. What follows the message's end is lost: nobody here sends it."""
        if self._held:
            data = self._held + data
            self._held = b""
        if self.head is None:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._held = data
                return b""
            self.head = data[: end + 2]
            data = data[end + 4 :]
            length = _LENGTH.search(self.head)
            self._left = int(length[1]) if length else 0
            self._chunked = length is None and _CHUNKED.search(self.head) is not None
        if self._chunked:
            return self._chunks(data)
        self._left -= len(data)
        self.ended = self._left <= 0
        return data

    def _chunks(self, data: bytes) -> bytes:
        found: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                part = data[at : at + self._left]
                at += len(part)
                found.append(part[: max(0, self._left - 2)])
                self._left -= len(part)
                continue
            line = data.find(b"\r\n", at)
            if line < 0:
                self._held = data[at:]
                break
            size = int(data[at:line], 16)
            at = line + 2
            if not size:
                self.ended = True
                break
            self._left = size + 2
        return found[0] if len(found) == 1 else b"".join(found)


def chunk(data: bytes) -> bytes:
    """``data`` as a piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def request(path: bytes, body: bytes) -> bytes:
    """A POST request as SDKs send it."""
    return (
        b"POST %b HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer unused\r\nuser-agent: OpenAI/Python 3.57.0\r\nx-stainless-lang: python\r\n"
        b"x-stainless-package-version: 3.57.0\r\nx-stainless-os: Linux\r\nx-stainless-arch: x64\r\n"
        b"x-stainless-runtime: CPython\r\nx-stainless-runtime-version: 3.11.7\r\nx-stainless-async: false\r\n"
        b"accept-encoding: gzip, deflate\r\nconnection: keep-alive\r\ncontent-length: %d\r\n\r\n%b"
    ) % (path, len(body), body)

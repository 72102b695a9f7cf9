"""Server-sent events: bytes to frames as they arrive, and frames to bytes.

The format is WHATWG's (https://html.spec.whatwg.org/multipage/server-sent-events.html), read with two liberties that
model servers need: the last frame counts although the stream ended without a blank line, and a field called ``error``
(older llama.cpp servers send ``error: {...}``) is a frame of its own kind.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from proxy.core.errors import UpstreamError
from proxy.wire import jsonio

MAX_FRAME = 16 * 1024 * 1024
"""Bytes of one frame that are held in memory. No server sends a megabyte at once; this is a guard, not a format."""

_BOM = b"\xef\xbb\xbf"
_LF = 0x0A
_CR = 0x0D
_EVENT_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")


class Frame(Struct, frozen=True):
    """One event. ``event`` is ``message`` when the server named none; ``data`` is its data lines, joined by ``\\n``."""

    event: str
    data: str


class SseDecoder:
    """Turns the bytes of one event stream into frames, however the network cut them, in linear time.

    A line ends with LF, CR or CRLF. Bytes that are not UTF-8 become U+FFFD. Comments, ``id`` and ``retry`` are ignored.
    ``max_frame`` bounds a line, and the data lines of a frame together, in bytes. ``shortcut`` may read events that it
    knows: it gets the bytes of whole ones, and gives one frame for all of them, or None.
    """

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_data_size",
        "_event",
        "_line",
        "_line_size",
        "_max_frame",
        "_shortcut",
    )

    def __init__(
        self, max_frame: int = MAX_FRAME, *, shortcut: Callable[[bytes], Frame | None] = lambda events: None
    ) -> None:
        self._max_frame = max_frame
        self._shortcut = shortcut
        self._line: list[bytes] = []  # the pieces of the line that has not ended yet, joined only once
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._event = ""
        self._after_cr = False  # a LF that follows belongs to the line end before it
        self._at_start = True

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that ``chunk`` completes. Raises ``UpstreamError`` when a frame grows past ``max_frame``."""
        frames, chunk = self._plain_frames(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if not chunk:
            return frames
        last = chunk[-1]
        self._after_cr = last == _CR
        lines = chunk.splitlines()
        tail = b"" if last in (_LF, _CR) else lines.pop()
        for line in lines:
            self._end_line(line, frames)
        if tail:
            self._line.append(tail)
            self._line_size += len(tail)
            self._check(self._line_size)
        return frames

    def close(self) -> list[Frame]:
        """The frame that the end of the stream cut short of its blank line, if it has any data."""
        frames: list[Frame] = []
        self._end_line(b"", frames)
        self._dispatch(frames)
        return frames

    def _plain_frames(self, chunk: bytes) -> tuple[list[Frame], bytes]:
        """What ``chunk`` begins with, if it is the usual by far: frames of one ``data: …`` line each; and the rest."""
        end = chunk.rfind(b"\n\n") + 2
        if end == 1 or self._data or self._event or self._after_cr or self._line_size + end > self._max_frame:
            return [], chunk
        events = b"".join((*self._line, chunk[:end])) if self._line else chunk[:end]
        known = self._shortcut(events)
        frames = _plain(events) if known is None else [known]
        if not frames:
            return [], chunk
        self._at_start = False
        self._line.clear()
        self._line_size = 0
        return frames, chunk[end:]

    def _end_line(self, rest: bytes, frames: list[Frame]) -> None:
        if self._line:
            line = b"".join((*self._line, rest))
            self._line.clear()
            self._line_size = 0
        else:
            line = rest
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        self._check(len(line))
        if not line:
            self._dispatch(frames)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data" or name == b"error":
            self._data.append(value)
            self._data_size += len(value) + 1  # empty lines count too, or they could go on for ever
            if name == b"error":
                self._event = "error"
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")

    def _dispatch(self, frames: list[Frame]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            frames.append(Frame(self._event or "message", data.decode("utf-8", "replace")))
            self._data.clear()
            self._data_size = 0
        self._event = ""

    def _check(self, line_size: int) -> None:
        if self._data_size + line_size > self._max_frame:
            raise UpstreamError(
                f"The backend sent a stream event of more than {self._max_frame} bytes; the stream was given up.",
                code="backend_event_too_large",
                retryable=False,
            )


def frames_of(stream: bytes, max_frame: int = MAX_FRAME) -> list[Frame]:
    """The frames of a whole stream, or of a part that begins with a frame. Raises as ``SseDecoder.feed``."""
    decoder = SseDecoder(max_frame)
    return [*decoder.feed(stream), *decoder.close()]


def _plain(events: bytes) -> list[Frame]:
    """``events``, which are whole, if they are frames of one ``data: …`` line each."""
    if not events.startswith(b"data: ") or b"\r" in events:
        return []
    texts = events[6:-2].decode("utf-8", "replace").split("\n\ndata: ")
    if events.count(b"\n") != 2 * len(texts):
        return []
    return [Frame("message", text) for text in texts]


class EventCutter:
    """Passes the bytes of an event stream on in whole events: of one that breaks off nothing shows."""

    def __init__(self, max_held: int = MAX_FRAME) -> None:
        self._max_held = max_held
        self._held: list[bytes] = []
        self._size = 0
        self._tail = b""  # the last bytes of what is held

    def close(self) -> bytes:
        """What is held at the end of the stream, if it is an event but for its blank line."""
        rest = b"".join(self._held)
        told = [is_whole(frame) for frame in frames_of(rest, max(len(rest), 1))]
        return rest if all(told) and (told or not rest.strip() or rest.startswith(b":")) else b""

    def feed(self, data: bytes) -> bytes:
        """What goes on now that ``data`` has come. An event of more than ``max_held`` bytes goes on in pieces."""
        if not data or (not self._size and data.endswith(b"\n\n")):
            return data
        joined = self._tail + data
        end = max([joined.rfind(mark) + len(mark) for mark in _EVENT_ENDS if mark in joined], default=0)
        end -= len(self._tail)
        if end <= 0:
            end = 0 if self._size + len(data) <= self._max_held else len(data)
        whole = b""
        if end:
            whole = b"".join([*self._held, data[:end]])
            self._held, self._size = [], 0
        self._held.append(data[end:])
        self._size += len(data) - end
        self._tail = joined[-2:] if end < len(data) else b""
        return whole


def is_whole(frame: Frame) -> bool:
    """Whether the data of a frame are whole: JSON, or the mark of the end. Those that a stream broke off in are not."""
    try:
        return frame.data.strip() == "[DONE]" or jsonio.loads(frame.data) is not None
    except ValueError:
        return False


def frame(data: bytes, event: bytes | None = None) -> bytes:
    """A frame on the wire. ``data`` may hold line ends; ``event`` must not."""
    if b"\n" in data or b"\r" in data:
        data = b"\ndata: ".join(data.splitlines() or [b""])
    if event is None:
        return b"data: " + data + b"\n\n"
    return b"event: " + event + b"\ndata: " + data + b"\n\n"


def comment(text: str) -> bytes:
    """A comment on the wire: clients skip it, idle connections stay open. ``text`` is one line."""
    return b": " + text.encode() + b"\n\n"


DONE = frame(b"[DONE]")
"""The end of a Chat Completions stream."""

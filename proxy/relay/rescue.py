"""Calls that a native backend has left in its text, told as calls within the bytes that came.

A reply without any comes back as it is. In one with some, only what has to change does: the chunks keep the backend's
own id, model and fields, and what is no choice (the tokens' count) passes as bytes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from proxy.core.collect import collect
from proxy.core.errors import UpstreamError
from proxy.core.events import (
    Event,
    Finish,
    FinishReason,
    Problem,
    ReasoningDelta,
    Refusal,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from proxy.core.model import Json
from proxy.core.rescue import Rescue, RescueReader
from proxy.relay.native import Ending, Tally, refuse_error
from proxy.relay.pump import PATIENCE, read_within
from proxy.telemetry import RequestLog
from proxy.transport.upstream import UpstreamReply
from proxy.wire import jsonio
from proxy.wire.sse import Frame, SseDecoder, frame, frames_of, is_whole
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply

_EVENT_END = re.compile(rb"\n(?:\n|\r\n?)|\r\r\n?")
_LONGEST_END = 3
_ONCE = frozenset({"choices", "usage", "timings"})
"""Members of a chunk that others of the same reply do not repeat."""


def rescue_whole(body: bytes, rescue: Rescue, log: RequestLog) -> bytes:
    """A whole reply, with the calls that its text holds as calls; ``body`` itself if there is none."""
    try:
        events = decode_reply(body)
    except UpstreamError:
        return body
    payload = jsonio.loads(body)
    choices = payload["choices"]
    if len(choices) > 1 or not isinstance(choices[0]["message"].get("content"), str):
        return body
    reader = RescueReader(rescue)
    out = [passed for event in events for passed in reader.feed(event)]
    if not note_rescued(out, log):
        return body
    reply = collect(out)
    calls = [_call(call.id, call.name, call.arguments) for call in reply.calls]
    message = {**choices[0]["message"], "content": reply.content or None, "tool_calls": calls}
    choices[0] = {**choices[0], "message": message, "finish_reason": reply.finish}
    return jsonio.dumps(payload)


async def rescue_stream(reply: UpstreamReply, rescue: Rescue, log: RequestLog) -> AsyncGenerator[bytes, None]:
    """The stream of ``reply`` as it comes, but for calls in its text; a piece may be empty, the first is when the
    first event has come.

    Raises ``UpstreamError`` when that event is an error, and when the reply breaks off or ends before it is complete.
    Closes the reply in any case.
    """
    stream, ending = StreamRescue(rescue, log), Ending()
    begun = False
    async with reply:
        try:
            while data := await read_within(reply, PATIENCE if stream.finished else None):
                ending.feed(data)
                passed = stream.feed(data)
                if passed or begun != stream.begun:
                    begun = stream.begun
                    yield passed
        except UpstreamError:
            if not (stream.begun and ending.seen):
                if stream.begun and (rest := stream.close(broken=True)):
                    yield rest
                raise
    log.answered = perf_counter()
    if rest := stream.close(broken=not ending.seen):
        yield rest
    ending.check()


def note_rescued(events: Iterable[Event], log: RequestLog) -> int:
    """Note in ``log`` what was found; how many calls."""
    found = 0
    for event in events:
        if isinstance(event, Problem):
            log.found(event)
            found += event.kind == "rescued"
    log.calls += found
    return found


@dataclass(slots=True)
class _Piece:
    """The bytes of one event as they came; ``text`` is what they say of the reply's."""

    data: list[bytes] = field(default_factory=list)
    text: str = ""

    def frames(self) -> list[Frame]:
        """What they are as frames."""
        return frames_of(b"".join(self.data))


class StreamRescue:
    """The bytes of one stream, in and out. What may be a call is held back, and whatever follows it.

    Events go on as bytes, whole, once their text cannot belong to a call. If the reply ends with calls in what is held,
    the chunks with their text are written anew. ``begun``: the first event has come; if it is an error ``feed`` raises
    that as an ``UpstreamError``.
    """

    def __init__(self, rescue: Rescue, log: RequestLog) -> None:
        self._rescue: Rescue | None = rescue
        self._log = log
        self._decoder = ChunkDecoder()
        self._tally = Tally(log, self._decoder)
        self._sse = SseDecoder(shortcut=self._decoder.shortcut)
        self._finish: FinishReason | None = None
        self._tail = b""  # the last bytes that came: an event may end in them
        self._piece = _Piece()  # the event that has not ended
        self._held: deque[_Piece] = deque()
        self._sent = 0  # characters of the reply's text
        self._last = _Piece()  # the last event with text that was sent
        self.begun = False

    @property
    def finished(self) -> bool:
        """The backend has given a finish reason."""
        return self._decoder.finished

    def feed(self, data: bytes) -> bytes:
        """What goes on now that ``data`` has come."""
        return b"".join([self._take(part, ends=ends) for part, ends in self._parts(data)])

    def close(self, *, broken: bool = False) -> bytes:
        """What is held when the stream has ended, or broken off."""
        if self._rescue is None:
            self._tally.close()
            return b""
        last = [] if broken else self._sse.close()  # it has no blank line behind it: the tokens' count may be cut
        return self._look(list(filter(is_whole, last))) or self._end()

    def _parts(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """``data`` in parts, and whether an event ends with them."""
        if self._rescue is None or (data.find(b"\n") == len(data) - 2 and data.endswith(b"\n\n") and b"\r" not in data):
            self._tail = b""
            yield data, True
            return
        known = len(self._tail)
        joined = self._tail + data
        at = 0
        for found in _EVENT_END.finditer(joined):
            end = found.end() - known
            if end > at:
                yield data[at:end], True
                at = end
        if at < len(data):
            yield data[at:], False
        self._tail = joined[max(known + at, len(joined) - _LONGEST_END + 1) :]

    def _take(self, data: bytes, *, ends: bool) -> bytes:
        if self._rescue is None:
            for each in self._sse.feed(data):
                self._tally.frame(each)
            return data
        self._piece.data.append(data)
        return self._look(self._sse.feed(data)) or (self._next(self._rescue) if ends else b"")

    def _look(self, frames: list[Frame]) -> bytes:
        """Take in what an event says; what goes on if that settles the rest of the reply."""
        if frames and not self.begun:
            refuse_error(frames[0])
            self.begun = True
        events, error = self._decoder.read(frames)
        if error is not None:
            return self._as_it_came()
        self._note(events)
        if any(isinstance(event, ToolCallStart | Refusal) for event in events):
            return self._as_it_came()
        return self._end() if self._decoder.saw_done else b""

    def _note(self, events: list[Event]) -> None:
        self._tally.count(events)
        for event in events:
            if isinstance(event, TextDelta) and self._rescue is not None:
                self._piece.text += event.text
                self._rescue.feed(event.text)
            elif isinstance(event, Finish):
                self._finish = event.reason

    def _next(self, rescue: Rescue) -> bytes:
        """An event has ended: what can go on. The finish reason, and what follows it, waits for the end."""
        self._held.append(self._piece)
        self._piece = _Piece()
        out: list[bytes] = []
        while self._held and not self.finished and self._sent + len(self._held[0].text) <= rescue.clear:
            piece = self._held.popleft()
            self._sent += len(piece.text)
            self._last = piece if piece.text else self._last
            out += piece.data
        return b"".join(out)

    def _as_it_came(self) -> bytes:
        """What is held; all that follows will pass."""
        self._rescue = None
        self._held.append(self._piece)
        return b"".join([data for piece in self._held for data in piece.data])

    def _end(self) -> bytes:
        """What is held, with its calls as calls. A reply that broke off before it was finished is left alone."""
        self._note(self._decoder.close())
        rescue, said = self._rescue, "".join(piece.text for piece in (*self._held, self._piece))
        whole = self._finish != "error" and (self._finish is not None or self._decoder.saw_done)
        events = rescue.close(self._finish) if rescue is not None and whole else None
        if rescue is None or events is None:
            return self._as_it_came()
        note_rescued(events, self._log)
        self._rescue = None
        lead = said[: rescue.clear - self._sent]
        match events:
            case [TextDelta(more), *rest]:
                events = [TextDelta(lead + more), *rest]
            case _ if lead:
                events = [TextDelta(lead), *events]
        return b"".join(self._rewritten(events))

    def _rewritten(self, events: list[Event]) -> Iterator[bytes]:
        """The held events with ``events`` in the place of their text and their finish reason."""
        *said, finish = events
        assert isinstance(finish, Finish)  # noqa: S101 (it is the last)
        template = _chunk(self._last) or {}
        deltas = list(_deltas(said))
        for piece in (*self._held, self._piece):
            chunk = _chunk(piece)
            template = chunk or template
            if chunk is None:
                if deltas and any(each.data.strip() == "[DONE]" for each in piece.frames()):
                    yield from _told(template, deltas, finish, {})
                    deltas = []
                yield from piece.data
                continue
            choice = chunk["choices"][0]
            rest = {key: value for key, value in choice["delta"].items() if key != "content" and value is not None}
            if choice.get("finish_reason") and deltas:
                yield from _told(template, deltas, finish, rest)
                deltas = []
            elif rest:
                yield _written(chunk, rest)
        if deltas:
            yield from _told(template, deltas, finish, {})


def _told(
    chunk: Mapping[str, Json], deltas: Iterable[Mapping[str, Json]], finish: Finish, rest: Mapping[str, Json]
) -> Iterator[bytes]:
    """``deltas`` in chunks like ``chunk``, and that one, which says the finish reason and the ``rest`` that it said."""
    plain = {key: value for key, value in chunk.items() if key not in _ONCE}
    for delta in deltas:
        yield _written(plain, delta)
    yield _written(chunk, rest, finish.reason)


def _written(chunk: Mapping[str, Json], delta: Mapping[str, Json], finish: FinishReason | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return frame(jsonio.dumps({**chunk, "choices": [choice]}))


def _chunk(piece: _Piece) -> dict[str, Json] | None:
    """The chunk of an event, if it has a choice."""
    for each in piece.frames():
        try:
            chunk = jsonio.loads(each.data)
        except ValueError:
            continue
        match chunk:
            case {"choices": [{"delta": dict()}, *_]}:
                return dict(chunk)
    return None


def _deltas(events: Iterable[Event]) -> Iterator[dict[str, Json]]:
    """What a stream says of ``events``; a call at once."""
    for event in events:
        match event:
            case TextDelta(text) if text:
                yield {"content": text}
            case ReasoningDelta(text):
                yield {"reasoning_content": text}
            case ToolCallStart(_, call_id, name):
                arguments: list[str] = []
            case ToolArgumentsDelta(_, text):
                arguments.append(text)
            case ToolCallEnd(index):
                yield {"tool_calls": [{"index": index, **_call(call_id, name, "".join(arguments))}]}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Json]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}

"""A native backend's reply, passed on as the bytes that came. What the log says of it is read beside."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from time import perf_counter

from proxy.core.arguments import jsontext
from proxy.core.errors import ClientError, UpstreamError
from proxy.core.events import Event, ToolCallStart, Usage
from proxy.relay.pump import BROKE_OFF, PATIENCE, read_within
from proxy.telemetry import RequestLog
from proxy.transport.upstream import UpstreamReply
from proxy.wire import jsonio
from proxy.wire.sse import Frame, SseDecoder
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply
from proxy.wire.upstream_errors import event_error, is_error

_FINISH = re.compile(r'"finish_reason"\s*:\s*"')
_END = re.compile(
    rb'"finish_reason"\s{0,8}:\s{0,8}"|(?:^|[\r\n])(?:data: ?\[DONE\]|data: ?\{ ?"error"|error:|event: ?error)'
)
_LONGEST_END = 32


def with_model(body: bytes, model: str) -> bytes:
    """A request body that asks for ``model``; every other byte stays as it is.

    Raises ``ClientError`` for what is no JSON object in UTF-8, or is nested too deeply.
    """
    name = jsonio.dumps(model).decode()
    try:
        text = body.decode()
        start = jsontext.skip_space(text, 0)
        found, _ = jsontext.members(text, start)
    except ValueError as error:
        raise ClientError(f"The model's name cannot be put into the request body: {error}.") from None
    asked = [member for member in found if member.key == "model"]
    if not asked:
        text = f'{text[: start + 1]}"model":{name}{"," if found else ""}{text[start + 1 :]}'
    for member in reversed(asked):
        text = text[: member.value_start] + name + text[member.value_end :]
    return text.encode()


class Tally:
    """Counts the calls and tokens of a reply for the log. Of a stream, what it cannot read it does not count."""

    def __init__(self, log: RequestLog, decoder: ChunkDecoder | None = None) -> None:
        self._log = log
        self._decoder = decoder or ChunkDecoder()

    @property
    def finished(self) -> bool:
        """A finish reason has come in a frame."""
        return self._decoder.finished

    def frame(self, frame: Frame) -> None:
        """Count a frame of a stream. Only those that may hold something to count, or the end, are decoded."""
        if '"tool_calls"' in frame.data or '"usage"' in frame.data or _FINISH.search(frame.data):
            try:
                self.count(self._decoder.feed(frame))
            except UpstreamError:
                return

    def close(self) -> None:
        """The stream has ended."""
        self.count(self._decoder.close())

    def count(self, events: Iterable[Event]) -> None:
        """Count what ``events`` tell of."""
        for event in events:
            if isinstance(event, ToolCallStart):
                self._log.calls += 1
            elif isinstance(event, Usage):
                self._log.prompt_tokens, self._log.completion_tokens = event.prompt_tokens, event.completion_tokens


class Ending:
    """Notices in the bytes of a stream that all is told: a finish reason has come, ``[DONE]``, or an error."""

    def __init__(self) -> None:
        self.seen = False
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """More of the stream has come."""
        if not self.seen:
            joined = self._tail + data
            self.seen = _END.search(joined) is not None
            self._tail = joined[-_LONGEST_END:]

    def check(self) -> None:
        """The stream has ended. Raises ``UpstreamError`` when its reply has not."""
        if not self.seen:
            raise UpstreamError(BROKE_OFF, code="backend_broke_off")


async def pass_whole(reply: UpstreamReply, log: RequestLog) -> bytes:
    """The body of ``reply`` as it is.

    Raises ``UpstreamError`` when it is an error all the same, is no JSON object, or breaks off.
    """
    body = await reply.read()
    log.answered = perf_counter()
    if b'"error"' in body:
        refuse_error(Frame("message", body.decode("utf-8", "replace")))
    try:
        Tally(log).count(decode_reply(body))
    except UpstreamError:
        if not _is_object(body):
            raise
    return body


async def pass_stream(reply: UpstreamReply, log: RequestLog, *, single: bool = False) -> AsyncGenerator[bytes, None]:
    """The stream of ``reply`` as it comes; the first piece holds its first event, whole.

    With a ``single`` choice a stream that says nothing after its finish reason, not even that it has ended, or breaks
    off there, is ended.
    Raises ``UpstreamError`` when that event is an error, so that it can still become the status of the answer, and when
    the reply breaks off, or ends before it is complete. Closes the reply in any case.
    """
    sse, tally, ending = SseDecoder(), Tally(log), Ending()
    held: list[bytes] = []
    begun = False
    async with reply:
        try:
            while data := await read_within(reply, PATIENCE if single and tally.finished else None):
                ending.feed(data)
                frames = sse.feed(data)
                for frame in frames:
                    tally.frame(frame)
                if begun:
                    yield data
                    continue
                held.append(data)
                if frames:
                    refuse_error(frames[0])
                    begun = True
                    yield b"".join(held)
        except UpstreamError:
            if not (single and begun and ending.seen):
                raise
    log.answered = perf_counter()
    tally.close()
    ending.check()
    if held and not begun:
        yield b"".join(held)


def refuse_error(frame: Frame) -> None:
    """Raise ``UpstreamError`` when ``frame`` reports one."""
    try:
        payload = jsonio.loads(frame.data)
    except ValueError:
        payload = frame.data
    if frame.event == "error" or is_error(payload):
        raise event_error(payload)


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(jsonio.loads(body), dict)
    except ValueError:
        return False

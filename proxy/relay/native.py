"""A native backend's reply, passed on as the bytes that came. What the log says of it is read beside."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from proxy.core.arguments import jsontext
from proxy.core.errors import UpstreamError
from proxy.core.events import Event, ToolCallStart, Usage
from proxy.telemetry import RequestLog
from proxy.transport.upstream import UpstreamReply
from proxy.wire import jsonio
from proxy.wire.sse import Frame, SseDecoder
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply
from proxy.wire.upstream_errors import event_error, is_error


def with_model(body: bytes, model: str) -> bytes:
    """A request body that asks for ``model``; every other byte stays as it is.

    Raises ``ValueError`` for what is no JSON object in UTF-8, or is nested too deeply.
    """
    text = body.decode()
    name = jsonio.dumps(model).decode()
    start = jsontext.skip_space(text, 0)
    found, _ = jsontext.members(text, start)
    asked = [member for member in found if member.key == "model"]
    if not asked:
        text = f'{text[: start + 1]}"model":{name}{"," if found else ""}{text[start + 1 :]}'
    for member in reversed(asked):
        text = text[: member.value_start] + name + text[member.value_end :]
    return text.encode()


class Tally:
    """Counts the calls and tokens of a reply for the log. It never fails: what it cannot read it does not count."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log
        self._decoder = ChunkDecoder()

    def whole(self, body: bytes) -> None:
        """Count a whole reply."""
        try:
            self._count(decode_reply(body))
        except UpstreamError:
            return

    def frame(self, frame: Frame) -> None:
        """Count a frame of a stream. Only those that may hold something to count are decoded."""
        if '"tool_calls"' in frame.data or '"usage"' in frame.data:
            try:
                self._count(self._decoder.feed(frame))
            except UpstreamError:
                return

    def close(self) -> None:
        """The stream has ended."""
        self._count(self._decoder.close())

    def _count(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, ToolCallStart):
                self._log.calls += 1
            elif isinstance(event, Usage):
                self._log.prompt_tokens, self._log.completion_tokens = event.prompt_tokens, event.completion_tokens


async def pass_whole(reply: UpstreamReply, log: RequestLog) -> bytes:
    """The body of ``reply`` as it is. Raises ``UpstreamError`` when it is an error all the same, or breaks off."""
    body = await reply.read()
    if b'"error"' in body:
        _refuse_error(Frame("message", body.decode("utf-8", "replace")))
    Tally(log).whole(body)
    return body


async def pass_stream(reply: UpstreamReply, log: RequestLog) -> AsyncGenerator[bytes, None]:
    """The stream of ``reply`` as it comes; the first piece holds its first event, whole.

    Raises ``UpstreamError`` when that event is an error, so that it can still become the status of the answer, and when
    the reply breaks off. Closes the reply in any case.
    """
    sse, tally = SseDecoder(), Tally(log)
    held: list[bytes] = []
    begun = False
    async with reply:
        async for data in reply:
            frames = sse.feed(data)
            for frame in frames:
                tally.frame(frame)
            if begun:
                yield data
                continue
            held.append(data)
            if frames:
                _refuse_error(frames[0])
                begun = True
                yield b"".join(held)
    tally.close()
    if held and not begun:
        yield b"".join(held)


def _refuse_error(frame: Frame) -> None:
    """Raise ``UpstreamError`` when ``frame`` reports one."""
    try:
        payload = jsonio.loads(frame.data)
    except ValueError:
        payload = frame.data
    if frame.event == "error" or is_error(payload):
        raise event_error(payload)

"""A backend's Chat Completions reply as events: whole, or as the chunks of a stream.

The contract of the end, for streamed replies: ``Finish`` and ``Usage`` come when the stream ends (``[DONE]``, or
``close()``), so that nothing sent after a finish reason is lost. If the backend gave no finish reason there is no
``Finish``; ``finished`` and ``saw_done`` then tell a stream that ended without one from a stream that broke.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from proxy.core.errors import UpstreamError
from proxy.core.events import Event, Extra, Finish, FinishReason, ReasoningDelta, Refusal, TextDelta, Usage
from proxy.core.model import Json, new_call_id
from proxy.wire import jsonio
from proxy.wire.chat_content import REASONING_FIELDS, read_content, read_reasoning
from proxy.wire.sse import Frame
from proxy.wire.upstream_chat.calls import NativeCalls
from proxy.wire.upstream_chat.repeats import REPEATED, Repeats
from proxy.wire.upstream_errors import event_error, is_error, shorten

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "error": "error",
    "abort": "error",
}
"""OpenAI's words, Mistral's ``model_length``, vLLM's ``abort`` and ``error``; every other word is ``stop``."""

READ_FIELDS = frozenset({"role", "content", "refusal", "tool_calls", "function_call", *REASONING_FIELDS})
"""Members of a delta or message that become events; others that are not empty go into ``Extra``."""

_TEXT_ALONE = frozenset({"role", "content"})


class ChunkDecoder:
    """Reads the frames of one stream. Only the choice with index 0 is read.

    ``taken``: the ids of calls in the history, so that a call's id stays unique over the conversation.
    """

    def __init__(self, *, new_id: Callable[[], str] = new_call_id, taken: Iterable[str] = ()) -> None:
        self._calls = NativeCalls(new_id, taken)
        self._repeats = Repeats()
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._closed = False
        self.shortcut = self._repeats.read
        """Reads chunks that differ from an earlier one in their text alone, for :class:`~proxy.wire.sse.SseDecoder`."""
        self.saw_done = False
        """The backend said ``[DONE]``. Frames after it are ignored."""

    @property
    def finished(self) -> bool:
        """A finish reason is known: the reply is whole, even if the connection breaks now."""
        return self._finish is not None

    def read(self, frames: Sequence[Frame]) -> tuple[list[Event], UpstreamError | None]:
        """The events of ``frames`` up to the first that is an error event or no chunk, and the error for that."""
        events: list[Event] = []
        for frame in frames:
            if self._closed:
                break
            if frame.event == REPEATED:
                events += self._calls.around(TextDelta(frame.data))
                continue
            try:
                events += self._chunk(frame)
            except UpstreamError as error:
                return events, error
        return events, None

    def feed(self, frame: Frame) -> list[Event]:
        """The events of a frame. Raises ``UpstreamError`` for an error event and for what is not a chunk."""
        events, error = self.read((frame,))
        if error is not None:
            raise error
        return events

    def _chunk(self, frame: Frame) -> list[Event]:
        data = frame.data.strip()
        if not data:
            return []
        if data == "[DONE]":
            self.saw_done = True
            return self._end()
        try:
            chunk = jsonio.loads(data)
            if frame.event != "error" and isinstance(chunk, dict) and not is_error(chunk):
                finish = self._finish
                events = self._read(chunk, _first_choice(chunk), "delta")
                silent = self._finish is finish and not chunk.get("usage")
                if silent and len(events) == 1 and isinstance(events[0], TextDelta):
                    self._repeats.learn(frame.data, events[0].text)
                return events
        except ValueError:
            chunk = data
        if frame.event == "error" or is_error(chunk):
            raise event_error(chunk)
        raise UpstreamError(f"The backend sent a stream event that is not a chunk: {shorten(data)}")

    def close(self) -> list[Event]:
        """The stream has ended: what is left. Without ``[DONE]`` and ``finished`` the reply is broken."""
        return [] if self._closed else self._end()

    def _read(self, payload: Mapping[str, Json], choice: Mapping[str, Json] | None, member: str) -> list[Event]:
        usage = payload.get("usage")
        if isinstance(usage, dict):
            self._usage = _usage(usage)
        if choice is None:
            return []
        said = choice.get(member)
        events = self._say(said, whole=member == "message") if isinstance(said, dict) else []
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish = _finish(reason, choice.get("stop_reason", choice.get("matched_stop")))
        return events

    def _say(self, said: Mapping[str, Json], *, whole: bool) -> list[Event]:
        content = said.get("content")
        if isinstance(content, str) and said.keys() <= _TEXT_ALONE:  # as nearly all deltas and most messages are
            return self._calls.around(TextDelta(content)) if content else []
        events: list[Event] = []
        reasoning = read_reasoning(said)
        if content and not isinstance(content, str):
            parts = read_content(content)
            content, reasoning = parts.text, reasoning or parts.reasoning
        refusal = said.get("refusal")
        if reasoning:
            events += self._calls.around(ReasoningDelta(reasoning))
        if content:
            events += self._calls.around(TextDelta(content))
        if isinstance(refusal, str) and refusal:
            events += self._calls.around(Refusal(refusal))
        entries, legacy = said.get("tool_calls"), said.get("function_call")
        if isinstance(entries, list) and entries:
            events += self._calls.feed(entries, whole=whole)
        elif isinstance(legacy, dict):
            events += self._calls.feed([legacy], whole=whole)
        extra = {
            key: value for key, value in said.items() if key not in READ_FIELDS and value not in (None, "", [], {})
        }
        if extra:
            events += self._calls.around(Extra(extra))
        return events

    def _end(self) -> list[Event]:
        self._closed = True
        events = self._calls.close()
        if self._calls.cut and (self._finish.reason in ("stop", "tool_calls") if self._finish else self.saw_done):
            self._finish = Finish("length")
        events += [event for event in (self._finish, self._usage) if event is not None]
        return events


def decode_reply(body: bytes, *, new_id: Callable[[], str] = new_call_id, taken: Iterable[str] = ()) -> list[Event]:
    """The events of a whole reply; a missing finish reason is ``stop``. Raises ``UpstreamError`` for anything else."""
    try:
        payload = jsonio.loads(body)
        choice = _first_choice(payload) if isinstance(payload, dict) else None
        if choice is not None and isinstance(choice.get("message"), dict) and not is_error(payload):
            decoder = ChunkDecoder(new_id=new_id, taken=taken)
            events = decoder._read(payload, choice, "message")
            decoder._finish = decoder._finish or Finish("stop")
            return events + decoder.close()
    except ValueError:
        payload = None
    if is_error(payload):
        raise event_error(payload)
    said = shorten(body.decode("utf-8", "replace"))
    raise UpstreamError(
        f"The backend's reply is not a chat completion: {said}" if said else "The backend's reply is empty."
    )


def _first_choice(payload: Mapping[str, Json]) -> Mapping[str, Json] | None:
    choices = payload.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and not choice.get("index"):
            return choice
    return None


def _finish(reason: str, stopped_at: Json) -> Finish:
    """``stopped_at`` is what vLLM (``stop_reason``) and SGLang (``matched_stop``) say: a text, or a token's number."""
    known = FINISH_REASONS.get(reason.lower(), "stop")
    message = f"The backend gave up on the reply (finish reason {reason!r})." if known == "error" else None
    return Finish(known, message, stopped_at if isinstance(stopped_at, str) else None)


def _usage(raw: Mapping[str, Json]) -> Usage:
    prompt, completion = raw.get("prompt_tokens"), raw.get("completion_tokens")
    return Usage(
        prompt if isinstance(prompt, int) else None,
        completion if isinstance(completion, int) else None,
        raw,
    )

"""A conversation with calls and results, written as the plain turns that any chat template takes.

What comes out: at most one system message, which is first; then user and assistant messages in strict alternation,
beginning with a user and ending in one (or in an assistant text that the backend continues). Contents are one text;
a user turn with an image is a list of parts. Nothing a client sends makes this fail, and later turns only append.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from proxy.core import markup
from proxy.core.arguments import jsontext
from proxy.core.content import Foreign, flatten, join, merge, words_of
from proxy.core.model import ImagePart, Message, Part, TextPart, ToolCall, ToolResult
from proxy.core.pairing import Ledger, MadeCall
from proxy.core.protocol import RESULTS_LINE

BEGIN = "Begin."
"""The user turn of a conversation that has none to begin with: many templates refuse to go without."""

CONTINUE = "Your answer begins with the text below. Continue exactly after its last character and repeat none of it:"
NO_RESULT = "No result was given for this call."
UNSEEN_IMAGE = "[image left out: the model cannot see images]"
UNKNOWN = "unknown"
"""The name and the id of a result whose call is not in the history."""


class HistoryOptions(Struct, frozen=True):
    """What the backend takes.

    ``system_role``: its template has one; else system text goes into the first user message. ``prefill``: it continues
    a final assistant message. ``vision``: it takes images (None: unknown, so they are sent). ``keep_reasoning``:
    ``turn`` shows the model its own reasoning while it still calls tools for the last user text.
    """

    system_role: bool = True
    prefill: bool = False
    vision: bool | None = None
    keep_reasoning: Literal["none", "turn"] = "none"


DEFAULT = HistoryOptions()


def render_history(
    messages: Iterable[Message],
    *,
    system: str = "",
    closing: str = "",
    options: HistoryOptions = DEFAULT,
    neutral: bool = True,
) -> tuple[Message, ...]:
    """``messages`` as system, user and assistant turns, in which calls and results are text. Never raises.

    There is at most one system turn, which is first; then user and assistant take turns, beginning with the user.
    ``system`` follows the client's own system text; ``closing`` ends the last user message. ``neutral`` keeps what
    users, tools and earlier answers say from forging markup; without it (no protocol is in play) text and parts of
    unknown types go on as they are.
    """
    every = list(messages)
    head = [flatten(message.content) for message in takewhile(_is_system_text, every)]
    preface = "\n\n".join([text for text in (*head, system) if text])
    return _Writer(options, neutral).write(_turns(every[len(head) :]), preface, closing)


def _is_system_text(message: Message) -> bool:
    return message.role == "system" and not message.calls and not message.results


@dataclass(slots=True)
class _Turn:
    """Neighbours of one side. ``results`` come before what is said; only a user turn has them."""

    role: Literal["user", "assistant"]
    said: list[Message] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def calls(self) -> list[ToolCall]:
        return [call for message in self.said for call in message.calls]


def _turns(messages: Iterable[Message]) -> list[_Turn]:
    """Alternating turns, a user's first. Assistant messages without text and calls are left out."""
    turns: list[_Turn] = []
    for message in messages:
        for piece in _pieces(message):
            role: Literal["user", "assistant"] = "assistant" if piece.role == "assistant" else "user"
            if not turns or turns[-1].role != role:
                turns.append(_Turn(role))
            turns[-1].results += piece.results
            if piece.role != "tool":
                turns[-1].said.append(piece)
    if not turns or turns[0].role == "assistant":
        turns.insert(0, _Turn("user", [Message("user", (TextPart(BEGIN),))]))
    if turns[-1].calls:
        turns.append(_Turn("user"))
    return turns


def _pieces(message: Message) -> Iterator[Message]:
    """``message`` as pieces of one kind each: results alone (role ``tool``), user or system text, an assistant's."""
    content, results = message.content, message.results
    if message.role == "tool" and not results:
        content, results = (), (ToolResult("", content, message.name),)
    if results:
        yield Message("tool", results=results)
    if message.role == "assistant":
        if message.calls or flatten(content).strip():
            yield replace(message, results=()) if results else message
        return
    if content or (message.role == "user" and not results):
        yield Message("system" if message.role == "system" else "user", content)
    if message.calls:
        yield Message("assistant", calls=message.calls)


class _Writer:
    """Writes turns for one backend."""

    def __init__(self, options: HistoryOptions, neutral: bool) -> None:
        self._options = options
        self._neutral = neutral
        self._guard: Callable[[str], str] = markup.neutralise if neutral else str

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger()

    def write(self, turns: list[_Turn], preface: str, closing: str) -> tuple[Message, ...]:
        """All turns as messages, with ``preface`` before the first and ``closing`` at the end of the last user turn."""
        last_words = [closing]
        if turns[-1].role == "assistant" and not self._options.prefill:
            last_words.append(f"{CONTINUE}\n{self._assistant(turns.pop(), reasoning=False)}")
        last_user = len(turns) - (1 if turns[-1].role == "user" else 2)  # they alternate
        running = _last_said(turns) if self._options.keep_reasoning == "turn" else len(turns)
        system_role = self._options.system_role
        out = [_message("system", [[TextPart(preface)]])] if preface and system_role else []
        made: list[MadeCall] = []
        for at, turn in enumerate(turns):
            if turn.role == "assistant":
                calls = turn.calls
                kept = at > running and bool(calls)
                out.append(_message("assistant", [[TextPart(self._assistant(turn, reasoning=kept))]]))
                made = self._ledger.add(calls) if calls else []
                continue
            blocks = [] if system_role or at > 0 else _blocks(preface)
            if made or turn.results:
                blocks.append(self._results(turn.results, made))
            blocks += map(self._said, turn.said)
            blocks += _blocks(*last_words) if at == last_user else []
            out.append(_message("user", blocks))
            made = []
        return tuple(out)

    def _assistant(self, turn: _Turn, *, reasoning: bool) -> str:
        blocks = []
        for message in turn.said:
            text = self._guard(flatten(message.content))
            calls = [markup.tool_call(call.name, _arguments(call.arguments)) for call in message.calls]
            block = "\n".join([text, *calls] if text.strip() else calls)
            if reasoning and message.reasoning:
                block = f"<think>\n{self._guard(message.reasoning.strip())}\n</think>\n\n{block}"
            blocks.append(block)
        return "\n\n".join(blocks)

    def _results(self, results: Sequence[ToolResult], made: Sequence[MadeCall]) -> list[Part]:
        """The results of the calls ``made`` in the turn before, in their order, then those of no call in it.

        There is a call or a result.
        """
        strays = self._ledger.pair(results, made)
        images: list[Part] = []
        elements = []
        for entry in made:
            elements += [self._element(entry.call.name, entry.id, result, images) for result in entry.results]
            if not entry.results:
                elements.append(markup.tool_result(entry.call.name, entry.id, NO_RESULT, error=True))
        for stray in strays:
            name = stray.made.call.name if stray.made else stray.result.name
            call_id = stray.made.id if stray.made else stray.result.call_id
            elements.append(self._element(name or UNKNOWN, call_id or UNKNOWN, stray.result, images))
        return [TextPart("\n".join([RESULTS_LINE, *elements])), *images]

    def _element(self, name: str, call_id: str, result: ToolResult, images: list[Part]) -> str:
        """One result as text. Its images join ``images``; the text says which of the message's images they are."""

        def image(part: ImagePart) -> str:
            if self._options.vision is False:
                return UNSEEN_IMAGE
            images.append(part)
            return f"[image {len(images)} of this message]"

        return markup.tool_result(name, call_id, flatten(result.content, image), error=result.is_error)

    def _said(self, message: Message) -> list[Part]:
        """What a user said, or late system text: within a user message it is no safer than the rest."""
        parts = merge(message.content, self._word)
        return [TextPart(self._guard(part.text)) if isinstance(part, TextPart) else part for part in parts]

    def _word(self, part: Foreign) -> str | None:
        if isinstance(part, ImagePart):
            return UNSEEN_IMAGE if self._options.vision is False else None
        return words_of(part) if self._neutral else None


def _last_said(turns: Sequence[_Turn]) -> int:
    """The index of the last turn in which a user says something, 0 if there is none."""
    return max((at for at, turn in enumerate(turns) if turn.role == "user" and turn.said), default=0)


def _arguments(text: str) -> str:
    """``text`` as JSON: the client's own where it is JSON, else as a JSON string.

    Nothing becomes ``{}``. An object that was encoded twice is written once, or the model copies the double encoding.
    """
    text = text.strip()
    if text in ("", "null", '""'):
        return "{}"
    try:
        value = jsontext.loads(text)
    except ValueError:
        return jsontext.dumps(text)
    inner = value.strip() if isinstance(value, str) else ""
    return inner if inner.startswith("{") and _is_json(inner) else text


def _is_json(text: str) -> bool:
    try:
        jsontext.loads(text)
    except ValueError:
        return False
    return True


def _blocks(*texts: str) -> list[list[Part]]:
    return [[TextPart(text)] for text in texts if text]


def _message(role: Literal["system", "user", "assistant"], blocks: Iterable[Sequence[Part]]) -> Message:
    return Message(role, join(blocks))

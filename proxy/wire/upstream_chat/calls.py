"""A backend's native tool calls, put together from fragments: one call after another, each with an id of its own.

What servers do that OpenAI does not: no ``index``, or 0 for every call (ids tell them apart); ``id`` and ``name``
repeated in every fragment (llama-cpp-python) or no id at all; ``arguments`` null, or an object; a whole call in each
entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from proxy.core.events import Event, Problem, ToolArgumentsDelta, ToolCallEnd, ToolCallStart
from proxy.core.model import Json
from proxy.wire import jsonio

_HALF_TOKEN = re.compile(r"[\w.+\\-]{0,6}")
"""What may be left of a number, a literal or an escape where the text ends."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call as far as it came. ``given_id`` is the backend's, ``index`` ours once the call has been announced."""

    state: Literal["new", "open", "waiting", "over"] = "new"
    given_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    sent: int = 0
    index: int | None = None

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_complete(self) -> bool:
        return bool(self.pieces) and self.pieces[-1].rstrip().endswith("}") and _is_json(self.arguments)


class NativeCalls:
    """The calls of one reply. Calls and the events around them come out in order and never interleave.

    Arguments flow as they come. What arrives while a call is open and its arguments are not yet a whole object (a
    fragment of another call, or text) waits for the end of the reply; no server is known to do that.
    ``taken`` are ids used earlier in the conversation; a call with one of them gets a new one (some backends count from
    ``call_0`` in each reply).
    """

    def __init__(self, new_id: Callable[[], str], taken: Iterable[str] = ()) -> None:
        self._new_id = new_id
        self._taken = set(taken)
        self._by_place: dict[int | None, _Call] = {}  # the latest call at each index that the backend gave
        self._by_id: dict[tuple[int | None, str], _Call] = {}
        self._open: _Call | None = None
        self._waiting: list[Event | _Call] = []
        self._count = 0
        self._cut = False

    @property
    def cut(self) -> bool:
        """After ``close()``: the reply ended inside the arguments of a call."""
        return self._cut

    def feed(self, entries: Iterable[Json], *, whole: bool = False) -> list[Event]:
        """Read the entries of ``tool_calls`` in a delta, or (``whole``: each is a call) in a message."""
        out: list[Event] = []
        for entry in entries:
            if isinstance(entry, dict):
                self._read(entry, out, whole)
        return out

    def around(self, event: Event) -> list[Event]:
        """Another event of the reply, in its place among the calls."""
        if self._open is None and not self._waiting:
            return [event]
        out: list[Event] = []
        if self._make_way(out):
            out.append(event)
        else:
            self._waiting.append(event)
        return out

    def close(self) -> list[Event]:
        """The end of the reply. A call whose arguments broke off gets no ``ToolCallEnd``."""
        out: list[Event] = []
        if self._open is not None:
            self._end(self._open, out)
        for item in self._waiting:
            if isinstance(item, _Call):
                self._flow(item, out)
                self._end(item, out)
            else:
                out.append(item)
        self._waiting.clear()
        return out

    def _read(self, entry: Mapping[str, Json], out: list[Event], whole: bool) -> None:
        place, given_id, function = entry.get("index"), entry.get("id"), entry.get("function")
        body = function if isinstance(function, dict) else entry
        name, arguments = body.get("name"), body.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else jsonio.dumps(arguments).decode()
        call = self._find(
            place if isinstance(place, int) else None,
            given_id if isinstance(given_id, str) else "",
            name if isinstance(name, str) else "",
            whole,
        )
        if arguments:
            call.pieces.append(arguments)
        if call.state == "new" and self._make_way(out):
            call.state, self._open = "open", call
        elif call.state == "new":
            call.state = "waiting"
            self._waiting.append(call)
        if call.state == "open":
            self._flow(call, out)

    def _find(self, place: int | None, given_id: str, name: str, whole: bool) -> _Call:
        """The call that a fragment belongs to: a known one, or a new one."""
        call = self._by_id.get((place, given_id)) if given_id else self._by_place.get(place)
        latest = self._by_place.get(place)
        if given_id and call is None and latest is not None and not latest.given_id and not name:
            call = latest  # its id came late
        if call is None or whole or (name and not given_id and call.is_complete()):
            call = self._by_place[place] = _Call()
        if given_id:
            call.given_id = given_id
            self._by_id[place, given_id] = call
        call.name = call.name or name
        return call

    def _make_way(self, out: list[Event]) -> bool:
        """Whether something else may be said now. Ends the open call if it is whole."""
        if self._waiting:
            return False
        if self._open is not None:
            if not self._open.is_complete():
                return False
            self._end(self._open, out)
        return True

    def _flow(self, call: _Call, out: list[Event]) -> None:
        """Say what of a call has not been said; nothing before its name is known."""
        if not call.name:
            return
        if call.index is None:
            call.index = self._count
            self._count += 1
            call_id = call.given_id
            while not call_id or call_id in self._taken:
                call_id = self._new_id()
            self._taken.add(call_id)
            out.append(ToolCallStart(call.index, call_id, call.name))
        out += (ToolArgumentsDelta(call.index, piece) for piece in call.pieces[call.sent :])
        call.sent = len(call.pieces)

    def _end(self, call: _Call, out: list[Event]) -> None:
        call.state, self._open = "over", None
        arguments = call.arguments
        if call.index is None:
            out.append(Problem("unreadable", "The backend sent a tool call without a name.", detail=arguments[:200]))
            return
        if not arguments.strip():
            out.append(ToolArgumentsDelta(call.index, "{}"))
        elif _breaks_off(arguments):
            self._cut = True
            return
        out.append(ToolCallEnd(call.index))


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_int=str)  # an integer may have any number of digits
    except (ValueError, RecursionError):
        return False
    return True


def _breaks_off(text: str) -> bool:
    """JSON that is fine as far as it goes. (What is wrong before its end is the model's doing, and left as it is.)"""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].rstrip()
        return error.msg.startswith("Unterminated string") or _HALF_TOKEN.fullmatch(rest) is not None
    except (ValueError, RecursionError):
        return False
    return False

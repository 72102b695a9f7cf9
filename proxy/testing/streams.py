"""Whether a parser says the same of a text however it is cut."""

from __future__ import annotations

import difflib
import pprint
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

from proxy.core.collect import Reply, collect
from proxy.core.events import Event, Finish, Problem
from proxy.core.parser import Parser

_AROUND = 24
"""Characters that are shown on both sides of a cut."""

_WIDTH = 60


class FedParser(Protocol):
    """A parser of one reply: text goes in by pieces; what comes out of both methods is a list, one thing, or None."""

    def feed(self, text: str, /) -> Any:
        """Take a piece of the reply."""

    @property
    def close(self) -> Callable[..., Any]:
        """Take note that the reply is over."""


def held_back() -> Parser:
    """Our own parser, which reads any call, and gives it out when it is complete."""
    return Parser(stream_arguments_after=None)


def essence(reply: Reply) -> dict[str, Any]:
    """What a client sees of a reply, to be compared: ids of calls are random, and problems are not the client's."""
    return {
        "content": reply.content,
        "reasoning": reply.reasoning,
        "calls": [(call.name, call.arguments) for call in reply.calls],
        "finish": reply.finish,
    }


def cuts(text: str, *, count: int = 8, seed: int = 0) -> Iterator[list[str]]:
    """``text`` in pieces: in single characters, in twos, and at some places in ``count`` ways, always the same ones."""
    yield list(text)
    yield [text[at : at + 2] for at in range(0, len(text), 2)]
    rng = random.Random(seed)  # noqa: S311 (not for secrets)
    for _ in range(count):
        yield _cut(text, [rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 6))])


def assert_stream_equals_whole(
    text: str,
    make_parser: Callable[[], FedParser] = held_back,
    *,
    chunkings: Iterable[Sequence[str]] | None = None,
    whole: Callable[[str], Any] | None = None,
    fold: Callable[[list[Any]], Any] | None = None,
    ending: tuple[object, ...] = (),
) -> None:
    """Raise ``AssertionError``, with the fewest cuts and a diff, unless ``text`` means the same in pieces as at once.

    ``make_parser`` makes a new parser, of any make; ours if none is given. ``chunkings`` are ways to cut, each the
    pieces that ``text`` is made of; else those of :func:`cuts`. ``whole`` says what is right; else that is what the
    parser makes of ``text`` in one piece. ``fold`` makes of all that came out of ``feed`` and ``close`` what is
    compared; without it texts are joined, our events become an :func:`essence`, and anything else stays a list.
    ``ending`` are the arguments of ``close``.

    A parser that raises on pieces fails; what ``whole`` raises is passed on. Of our own parser, streams that say that
    they cannot be right (a closing think mark that came too late, arguments that had gone out) are not compared.
    """
    folded = fold or _folded

    def read(pieces: Sequence[str]) -> list[Any]:
        parser = make_parser()
        items = [item for piece in pieces for item in _items(parser.feed(piece))]
        return items + _items(parser.close(*ending))

    def differs(pieces: Sequence[str]) -> bool:
        try:
            items = read(pieces)
        except Exception:
            return True
        return not any(map(_excuses, items)) and bool(folded(items) != right)

    right = folded(read([text])) if whole is None else whole(text)
    for given in cuts(text) if chunkings is None else chunkings:
        if "".join(given) != text:
            raise ValueError(f"these are not pieces of the text: {list(given)!r}")
        if differs(given):
            pieces = _fewest(text, given, differs)
            try:
                found = folded(read(pieces))
            except Exception as error:
                raise AssertionError(f"{_cut_in(pieces)}, and it raises {error!r}.") from error
            raise AssertionError(f"{_cut_in(pieces)}, and what comes out is not the same:\n{difference(right, found)}")


def difference(right: object, found: object, names: tuple[str, str] = ("whole", "in pieces")) -> str:
    """The lines in which two values differ."""
    before, after = (pprint.pformat(value, width=_WIDTH, sort_dicts=False).splitlines() for value in (right, found))
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=2))


def _fewest(text: str, given: Sequence[str], differs: Callable[[Sequence[str]], bool]) -> list[str]:
    """The pieces with as few of the cuts in ``given`` as show the difference: first by halves, then one by one."""
    places = []
    at = 0
    for piece in given[:-1]:
        at += len(piece)
        places.append(at)
    size = len(places)
    while size:
        start = 0
        while start < len(places):
            fewer = places[:start] + places[start + size :]
            if differs(_cut(text, fewer)):
                places = fewer
            else:
                start += size
        size //= 2
    return _cut(text, places)


def _cut(text: str, places: Iterable[int]) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *sorted(places), len(text)])]


def _cut_in(pieces: Sequence[str]) -> str:
    if len(pieces) < 2:
        return "The text is in one piece"
    shown = [_shown(piece, first=at == 0, last=at == len(pieces) - 1) for at, piece in enumerate(pieces)]
    return f"The text is cut into {' | '.join(shown)}"


def _shown(piece: str, *, first: bool, last: bool) -> str:
    """A piece, without what is far from its cuts."""
    if len(piece) <= 2 * _AROUND:
        return repr(piece)
    head = "" if first else repr(piece[:_AROUND])
    tail = "" if last else repr(piece[-_AROUND:])
    return f"{head}…{tail}"


def _items(out: Any) -> list[Any]:
    if out is None:
        return []
    if isinstance(out, str | bytes | Mapping) or not isinstance(out, Iterable):
        return [out]
    return list(out)


def _folded(items: list[Any]) -> Any:
    if items and all(isinstance(item, Event) for item in items):
        return essence(collect(items))
    if all(isinstance(item, str) for item in items):
        return "".join(items)
    return items


def _excuses(item: Any) -> bool:
    late = isinstance(item, Problem) and item.kind == "late_reasoning"
    return late or (isinstance(item, Finish) and item.reason == "error" and item.message is not None)

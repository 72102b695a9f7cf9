"""Where a body that is read as a whole ends, whatever its kind; the kind here is words in capitals."""

from __future__ import annotations

import pytest

from proxy.core.bodies.base import RawCall, Status
from proxy.core.bodies.spanbody import SpanReader
from proxy.core.scanner import Marks

CLOSERS = Marks(("</c>",))
OPENERS = Marks(("<c>",))


class Capitals(SpanReader):
    """``NAME!`` is a call, ``<c>…</c>`` inside is quoted; forgivingly, small letters will do."""

    def __init__(self, closers: Marks = CLOSERS) -> None:
        super().__init__(closers, OPENERS, None, own_end="!", finals=("!",))
        self.attempts = 0
        self.characters = 0

    def _read(self, text: str, *, closed: bool, forgiving: bool) -> list[RawCall] | None:
        self.attempts += 1
        self.characters += len(text)
        name = text.strip()
        whole = name.endswith("!") and name.count("<c>") == name.count("</c>")
        return [RawCall(name[:-1], "{}")] if whole and (forgiving or name.isupper()) else None


def run(text: str, closers: Marks = CLOSERS, step: int = 0) -> tuple[Status, str, list[str]]:
    """Status, the text not used, and the names; ``step`` characters at a time, 0 for all at once."""
    reader = Capitals(closers)
    at, status = 0, Status.MORE
    for end in range(step, len(text), step) if step else ():
        at, status = reader.take(text[:end], at, final=False)
        if status is Status.DONE:
            return status, text[at:], [call.name for call in reader.reading.calls]
    at, status = reader.take(text, at, final=True)
    return status, text[at:], [call.name for call in reader.reading.calls]


@pytest.mark.parametrize("step", [0, 1, 3])
@pytest.mark.parametrize(
    ("text", "status", "rest", "names"),
    [
        ("FIRST!</c> rest", Status.DONE, " rest", ["FIRST"]),
        ("QUOTES <C> </c> AND GOES ON!</c> rest", Status.MORE, "", []),
        ("A</c>B!</c>", Status.MORE, "", []),
        ("NOT YET</c> AND NOW!", Status.MORE, "", []),
        ("FIRST!<c>", Status.DONE, "<c>", ["FIRST"]),
        ("FIRST!", Status.DONE, "", ["FIRST"]),
        ("FIRST", Status.MORE, "", []),
        ("small!</c> rest", Status.MORE, "", []),  # text behind it: the closer may be a piece of a value
        ("small!</c>", Status.DONE, "", ["small"]),
        ("small!</c> \n", Status.DONE, " \n", ["small"]),
        ("small!</c>\n<c>", Status.DONE, "\n<c>", ["small"]),
        ("small!</c>\n<", Status.MORE, "", []),
    ],
)
def test_where_a_body_ends(text: str, status: Status, rest: str, names: list[str], step: int) -> None:
    assert run(text, step=step) == (status, rest, names)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_a_body_without_closers_ends_with_its_own_end(step: int) -> None:
    assert run("FIRST! rest", Marks(()), step) == (Status.DONE, " rest", ["FIRST"])
    assert run("FIRST <c> rest", Marks(()), step)[0] is Status.MORE


def test_the_closer_of_quoted_markup_is_not_tried_forgivingly() -> None:
    assert run("see <c> x!</c>\n<c> y</c>, the end!</c>") == (Status.DONE, "", ["see <c> x!</c>\n<c> y</c>, the end"])


def test_looks_are_bounded() -> None:
    reader = Capitals()
    text = "a!</c>." * 30_000
    reader.take(text, 0, final=False)
    assert 0 < reader.characters < 500_000 + 8 * len(text)


def test_waiting_for_what_follows_costs_no_looks() -> None:
    reader = Capitals()
    at = 0
    text = "a!</c>" + " " * 100
    for end in range(1, len(text)):
        at, _ = reader.take(text[:end], at, final=False)
    assert reader.attempts == 1

"""A reader of GBNF for tests: what llama.cpp would refuse is refused, texts are matched, and random ones are made.

Written from llama.cpp's description of the notation (grammars/README.md), not from the code under test.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MOST_REPETITIONS = 2000
"""From so many repetitions on, multiplied where they are nested within one rule, stock builds refuse a grammar."""

_TOKEN = re.compile(
    r"""\s*(?:
        "(?P<literal>(?:\\.|[^"\\\n])*)" | \[(?P<class>(?:\\.|[^\]\\\n])*)\] | (?P<name>[a-zA-Z0-9-]+)
      | \{(?P<low>\d+)(?P<comma>,)?(?P<high>\d*)\} | (?P<mark>[()|?*+])
    )""",
    re.VERBOSE,
)
_CHAR = re.compile(r'\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([nrt"\\\[\]]))|([^\\])', re.DOTALL)
_ALPHABET = "aZ09 .,:;_-+/<>{}[]()'`\"\\é中😀\u2028\u00a0</tool_call>\n"


@dataclass(frozen=True)
class Literal:
    text: str


@dataclass(frozen=True)
class Class:
    negated: bool
    ranges: tuple[tuple[int, int], ...]

    def has(self, char: str) -> bool:
        return any(low <= ord(char) <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    part: Node
    low: int
    high: int | None


Node: TypeAlias = Literal | Class | Name | Sequence | Choice | Repeat


class Grammar:
    """A grammar that llama.cpp would take. Raises ``ValueError`` for any other."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Node] = {}
        for line in text.removesuffix("\n").split("\n"):
            name, separator, body = line.partition(" ::= ")
            if not separator or not re.fullmatch(r"[a-zA-Z0-9-]+", name) or name in self.rules:
                raise ValueError(f"not a rule: {line!r}")
            self.rules[name] = _Reader(body).rule()
        if "root" not in self.rules:
            raise ValueError("no root")
        for rule in self.rules.values():
            for node in _walk(rule):
                if isinstance(node, Name) and node.name not in self.rules:
                    raise ValueError(f"undefined rule {node.name}")
        self._empty = self._find_empty()
        for name in self.rules:
            if name in self._leading(name):
                raise ValueError(f"left recursion of {name}")
        self._heights: dict[str, float] = {}
        self._find_heights()

    def matches(self, text: str) -> bool:
        """``text`` is one of the grammar's."""
        return len(text) in _Matcher(self.rules, text).ends(Name("root"), 0)

    def sample(self, rng: random.Random) -> str:
        """One of the grammar's texts; deep and long ones are rare."""
        return "".join(self._sample(Name("root"), rng, 0))

    def _sample(self, node: Node, rng: random.Random, depth: int) -> Iterator[str]:
        match node:
            case Literal():
                yield node.text
            case Class():
                yield _any_char(node, rng)
            case Name():
                yield from self._sample(self.rules[node.name], rng, depth + 1)
            case Sequence():
                for part in node.parts:
                    yield from self._sample(part, rng, depth)
            case Choice():
                lowest = min(node.parts, key=self._height)
                yield from self._sample(lowest if depth > 40 else rng.choice(node.parts), rng, depth)
            case Repeat():
                high = node.low + 5 if node.high is None else node.high
                count = node.low if depth > 40 else min(high, node.low + int(rng.expovariate(0.7)))
                if rng.random() < 0.02 and depth < 10:
                    count = high
                for _ in range(count):
                    yield from self._sample(node.part, rng, depth)

    def _height(self, node: Node) -> float:
        """How many rules lie on top of each other in the flattest text of ``node``."""
        match node:
            case Name():
                return self._heights.get(node.name, float("inf")) + 1
            case Sequence():
                return max(map(self._height, node.parts), default=0)
            case Choice():
                return min(map(self._height, node.parts))
            case Repeat():
                return self._height(node.part) if node.low else 0
            case _:
                return 0

    def _find_heights(self) -> None:
        found: dict[str, float] = {"": 0}
        while found != self._heights:
            self._heights = found
            found = {name: self._height(rule) for name, rule in self.rules.items()}

    def _find_empty(self) -> set[str]:
        """The rules that can be nothing."""
        empty: set[str] = set()
        while True:
            found = {name for name, rule in self.rules.items() if _can_be_empty(rule, empty)}
            if found == empty:
                return found
            empty = found

    def _leading(self, name: str) -> set[str]:
        """The rules with which a text of the rule ``name`` can begin."""
        found: set[str] = set()
        waiting = [self.rules[name]]
        while waiting:
            match waiting.pop():
                case Name(name=other):
                    if other not in found:
                        found.add(other)
                        waiting.append(self.rules[other])
                case Sequence(parts=parts):
                    for part in parts:
                        waiting.append(part)
                        if not _can_be_empty(part, self._empty):
                            break
                case Choice(parts=parts):
                    waiting += parts
                case Repeat(part=part):
                    waiting.append(part)
        return found


class _Reader:
    """Reads one rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._token: re.Match[str] | None = None
        self._next()

    def rule(self) -> Node:
        node, _ = self._choice()
        if self._token is not None or self._text[self._at :].strip():
            raise ValueError(f"cannot be read from {self._text[self._at :]!r}")
        return node

    def _next(self) -> None:
        self._token = _TOKEN.match(self._text, self._at)
        if self._token is not None:
            self._at = self._token.end()

    def _is(self, *marks: str) -> bool:
        return self._token is not None and self._token["mark"] in marks

    def _choice(self) -> tuple[Node, int]:
        """The alternatives up to a closing bracket, and how often the engine writes out what is repeated in them."""
        parts, most = [], 1
        while True:
            node, times = self._sequence()
            parts.append(node)
            most = max(most, times)
            if not self._is("|"):
                return (parts[0] if len(parts) == 1 else Choice(tuple(parts))), most
            self._next()

    def _sequence(self) -> tuple[Node, int]:
        parts: list[Node] = []
        total = 0
        while self._token is not None and not self._is("|", ")"):
            node, times = self._single()
            parts.append(node)
            total += times
        return Sequence(tuple(parts)), max(total, 1)

    def _single(self) -> tuple[Node, int]:
        token = self._token
        assert token is not None
        times = 1
        node: Node
        if token["literal"] is not None:
            node = Literal("".join(map(chr, _chars(token["literal"]))))
        elif token["class"] is not None:
            node = _class(token["class"])
        elif token["name"] is not None:
            node = Name(token["name"])
        elif token["mark"] == "(":
            self._next()
            node, times = self._choice()
            if not self._is(")"):
                raise ValueError("a bracket is not closed")
        else:
            raise ValueError(f"unexpected {token[0]!r}")
        self._next()
        while (token := self._token) is not None and (self._is("?", "*", "+") or token["low"] is not None):
            low, high = _bounds(token)
            times *= max(high or 0, low, 1)
            if (high is not None and high < low) or times >= MOST_REPETITIONS:
                raise ValueError(f"too many repetitions: {times}")
            node = Repeat(node, low, high)
            self._next()
        return node, times


class _Matcher:
    """Matches one text, without backtracking: all ends at once."""

    def __init__(self, rules: dict[str, Node], text: str) -> None:
        self._rules = rules
        self._text = text
        self._known: dict[tuple[str, int], frozenset[int]] = {}

    def ends(self, node: Node, at: int) -> frozenset[int]:
        """Where a text of ``node`` that begins at ``at`` can end."""
        match node:
            case Literal(text=text):
                return frozenset([at + len(text)] if self._text.startswith(text, at) else [])
            case Class():
                return frozenset([at + 1] if at < len(self._text) and node.has(self._text[at]) else [])
            case Name(name=name):
                key = name, at
                if key not in self._known:
                    self._known[key] = self.ends(self._rules[name], at)
                return self._known[key]
            case Sequence(parts=parts):
                ends = frozenset([at])
                for part in parts:
                    ends = frozenset(after for end in ends for after in self.ends(part, end))
                return ends
            case Choice(parts=parts):
                return frozenset(end for part in parts for end in self.ends(part, at))
            case Repeat():
                ends = found = frozenset([at])
                found = found if node.low == 0 else frozenset()
                count = 0
                while ends and (node.high is None or count < node.high):
                    ends = frozenset(after for end in ends for after in self.ends(node.part, end))
                    count += 1
                    if count >= node.low:
                        if ends <= found:
                            break
                        found |= ends
                return found


def _walk(node: Node) -> Iterator[Node]:
    yield node
    match node:
        case Sequence() | Choice():
            for part in node.parts:
                yield from _walk(part)
        case Repeat():
            yield from _walk(node.part)


def _can_be_empty(node: Node, empty: set[str]) -> bool:
    match node:
        case Literal():
            return not node.text
        case Class():
            return False
        case Name():
            return node.name in empty
        case Sequence():
            return all(_can_be_empty(part, empty) for part in node.parts)
        case Choice():
            return any(_can_be_empty(part, empty) for part in node.parts)
        case Repeat():
            return node.low == 0 or _can_be_empty(node.part, empty)


def _chars(text: str) -> Iterator[int]:
    at = 0
    while at < len(text):
        found = _CHAR.match(text, at)
        if found is None:
            raise ValueError(f"not an escape: {text[at:]!r}")
        at = found.end()
        code = found[1] or found[2] or found[3]
        escaped = {"n": "\n", "r": "\r", "t": "\t"}.get(found[4], found[4])
        yield int(code, 16) if code else ord(escaped or found[5])


def _class(text: str) -> Class:
    negated = text.startswith("^")
    ranges: list[tuple[int, int]] = []
    # A range is char-char; a dash at the end is a dash.
    for found in re.finditer(rf"({_CHAR.pattern})(?:-({_CHAR.pattern}))?", text[negated:], re.DOTALL):
        low, *more = [found[1], *([found[7]] if found[7] else [])]
        ranges.append((next(_chars(low)), next(_chars(more[0] if more else low))))
    return Class(negated, tuple(ranges))


def _bounds(token: re.Match[str]) -> tuple[int, int | None]:
    if token["mark"]:
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[token["mark"]]
    low = int(token["low"])
    if not token["comma"]:
        return low, low
    return low, int(token["high"]) if token["high"] else None


def _any_char(node: Class, rng: random.Random) -> str:
    if node.negated:
        while True:
            char = rng.choice(_ALPHABET)
            if node.has(char):
                return char
    low, high = rng.choice(node.ranges)
    return chr(rng.randint(low, high))

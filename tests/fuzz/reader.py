"""Coverage-guided fuzzing of the reader: ``pip install atheris``, then ``python -m tests.fuzz.reader [SECONDS]``.

The seeds are the fixtures of replies, the words all marks that the reader knows. An input that breaks an invariant is
written to ``crash-…`` where it was started; it becomes a test once it is understood.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["proxy"]):
    from proxy.core.grammar import grammar
    from proxy.core.parser import parse
    from proxy.testing import essence
    from tests.support.reading import read, tool

REPLIES = Path(__file__).parents[2] / "fixtures" / "replies"
TOOLS = (
    tool("get_weather", "city", city="string", days="integer"),
    tool("get_time"),
    tool("write_file", path="string", content="string", mode={"enum": ["a", "w"]}, tags="array", deep="object"),
)
WORDS = (
    '{"name": "get_time", "arguments": {}}',
    '{"name": "write_file", "arguments": {"path": "a", "content": "b"}}',
    "get_weather(city='Oslo', days=3)",
    "<parameter=city>Oslo</parameter>",
    "<arg_key>city</arg_key><arg_value>Oslo</arg_value>",
    '"name"',
    '"arguments"',
    "get_weather",
)
"""Beside the marks, what makes a call of what stands between them."""

FINISHES = ("stop", "length", None, "error")


def check(data: bytes) -> None:
    """One input: two bytes say how to read, three say where to cut, the rest is the reply."""
    if len(data) < 6:
        return
    how: dict[str, Any] = {
        "finish_reason": FINISHES[data[0] & 3],
        "starts_in_reasoning": bool(data[0] & 4),
        "read_calls": not data[0] & 8,
        "parallel": not data[0] & 16,
    }
    tools = TOOLS if data[1] & 1 else ()
    text = data[5:].decode("utf-8", "surrogateescape")
    whole = parse(text, tools, **how)
    for call in whole.calls:
        assert isinstance(json.loads(call.arguments), dict), call
    places = sorted(byte * len(text) // 256 for byte in data[2:5])
    pieces = [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
    for some in (pieces, list(text)):
        held = read(some, tools, stream_arguments_after=None, **how)
        if any(problem.kind == "late_reasoning" for problem in held.problems):
            continue
        assert essence(held) == essence(whole), (some, essence(held), essence(whole))
        flowing = read(some, tools, stream_arguments_after=data[1] >> 1, **how)
        if flowing.finish != "error":
            assert essence(flowing) == essence(whole), (some, essence(flowing), essence(whole))


def main() -> None:
    """Fuzz for the number of seconds given (default: 900), or replay the files that are named."""
    given = sys.argv[1:]
    if given and not given[0].isdigit():
        for name in given:
            check(Path(name).read_bytes())
        return
    seconds = given[0] if given else "900"
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        words = Path(folder) / "words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in sorted(grammar().marks.marks) + list(WORDS)))
        for number, fixture in enumerate(sorted(REPLIES.rglob("*.json"))):
            loaded = json.loads(fixture.read_bytes())
            for text in _texts(loaded):
                seed = bytes((0, 1, 60, 120, 200)) + text.encode("utf-8", "surrogateescape")
                (corpus / f"{number}-{len(text)}").write_bytes(seed)
        arguments = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", "-max_len=2000", "-timeout=20"]
        arguments.append(f"-dict={words}")
        atheris.Setup(arguments, check)
        atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


def _texts(loaded: Any) -> list[str]:
    """The replies in a fixture: every member called ``text``."""
    if isinstance(loaded, dict):
        own = [loaded["text"]] if isinstance(loaded.get("text"), str) else []
        return own + [text for value in loaded.values() for text in _texts(value)]
    if isinstance(loaded, list):
        return [text for value in loaded for text in _texts(value)]
    return []


if __name__ == "__main__":
    main()

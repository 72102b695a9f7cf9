"""What the reader costs: ``python -m tests.bench.parser``. Figures of one run; compare them only with each other."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from proxy.core.parser import Parser
from tests.support.reading import tool

TOOLS = (tool("write_file", "path", "content", path="string", content="string"), tool("get_time"))
PIECE = 4
ROUNDS = 5

TEXT = "The quick brown fox jumps over the lazy dog, and 3 < 4.\n" * 2_000
SMALL_CALL = '<tool_call>{"name": "write_file", "arguments": {"path": "a.txt", "content": "hello"}}</tool_call>'
LINE = 'print("a line of code, with </tool_call> in it")  # and a comment that makes it longer\n'


def big_call(size: int) -> str:
    """A call whose one argument has about ``size`` characters."""
    arguments = {"path": "a.py", "content": LINE * (size // len(LINE))}
    return f"<tool_call>{json.dumps({'name': 'write_file', 'arguments': arguments})}</tool_call>"


def whole(text: str) -> None:
    """Read ``text`` in one piece."""
    parser = Parser(TOOLS, whole=True)
    parser.feed(text)
    parser.close("stop")


def in_pieces(text: str) -> None:
    """Read ``text`` as a model writes it, a token at a time."""
    parser = Parser(TOOLS)
    for at in range(0, len(text), PIECE):
        parser.feed(text[at : at + PIECE])
    parser.close("stop")


def seconds(work: Callable[[str], None], text: str) -> float:
    """The least CPU time of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.process_time()
        work(text)
        best = min(best, time.process_time() - begun)
    return best


def main() -> None:
    """Print the table."""
    rows = {
        "plain text, 112 kB": TEXT,
        "a small call": SMALL_CALL,
        "a 100 kB argument": big_call(100_000),
        "a 1 MB argument": big_call(1_000_000),
    }
    print(f"{'':22}{'whole, MB/s':>14}{'in pieces, MB/s':>18}{'µs a piece':>13}{'s in all':>11}")
    spent: dict[str, float] = {}
    for name, text in rows.items():
        at_once, spent[name] = seconds(whole, text), seconds(in_pieces, text)
        megabytes, pieces = len(text) / 1e6, -(-len(text) // PIECE)
        print(
            f"{name:22}{megabytes / at_once:14.1f}{megabytes / spent[name]:18.2f}"
            f"{spent[name] / pieces * 1e6:13.2f}{spent[name]:11.3f}"
        )
    print(f"1 MB costs {spent['a 1 MB argument'] / spent['a 100 kB argument']:.1f} times what 100 kB does")


if __name__ == "__main__":
    main()

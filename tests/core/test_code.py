from __future__ import annotations

import pytest

from proxy.core.code import Code


def test_inline_code_ends_with_its_run_or_its_line() -> None:
    code = Code()
    code.advance("a ")
    code.run("``")
    assert code.inline == 2
    code.run("`")
    assert code.inline == 2
    code.run("``")
    assert code.outside
    code.run("`")
    code.advance("b\n")
    assert code.outside


def test_a_fence_ends_with_a_run_as_long_at_a_line_start() -> None:
    code = Code()
    assert code.opens_fence("````py\nx", 0, 4, final=False) == 7
    code.fence = "````"
    code.advance("x\n")
    code.run("```")
    assert code.fence
    code.run("````")
    assert code.outside


@pytest.mark.parametrize(
    ("text", "end", "final", "line"),
    [
        ("```py\n", 3, False, 6),
        ("```py", 3, False, None),
        ("```py", 3, True, 0),
        ("```a`b\n", 3, False, 0),
        ("``\n", 2, False, 0),
        ("```" + "x" * 200, 3, False, 0),
        ("```" + "x" * 200 + "\n", 3, False, 0),
    ],
)
def test_opens_fence(text: str, end: int, final: bool, line: int | None) -> None:
    assert Code().opens_fence(text, 0, end, final=final) == line


def test_no_fence_opens_in_the_middle_of_a_line() -> None:
    code = Code()
    code.advance("see ")
    assert code.opens_fence("```py\n", 0, 3, final=True) == 0
    code.advance("\n  ")
    assert code.opens_fence("```py\n", 0, 3, final=True) == 6


def test_a_fence_may_end_in_text_that_was_read_as_a_call() -> None:
    code = Code()
    assert not code.closes_fence("```\n")
    code.fence = "```"
    assert code.closes_fence("{}\n ```")
    assert not code.closes_fence("{} ```")

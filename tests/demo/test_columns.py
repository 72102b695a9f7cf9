from __future__ import annotations

import pytest

from proxy.demo.columns import side_by_side

LEFT = ("sent", [("user", "What is the weather in Oslo?"), ("choice", "required")])
RIGHT = ("saw", [("system", "# Tools\n\n" + "x" * 300 + "\nlast"), ("user", "What is the weather in Oslo?")])


def lines(width: int) -> list[str]:
    return list(side_by_side(LEFT, RIGHT, width))


def words(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("width", [20, 40, 72, 80, 133, 150])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, lines(width))) <= width


def test_the_columns_stand_side_by_side() -> None:
    assert lines(103)[:3] == [
        f"{'SENT':<50} | SAW",
        f"user      {'What is the weather in Oslo?':<40} | system    # Tools",
        f"choice    {'required':<40} |",
    ]


def test_where_it_is_narrow_one_stands_below_the_other() -> None:
    assert lines(50)[:4] == ["SENT", "user      What is the weather in Oslo?", "choice    required", "SAW"]


@pytest.mark.parametrize("width", [50, 110])
def test_nothing_is_lost(width: int) -> None:
    saw = [line if width == 50 else line.partition(" | ")[2] for line in lines(width)]
    text = words("".join(saw))
    assert "x" * 300 in text
    assert "last" in text
    assert text.endswith(words("user What is the weather in Oslo?"))

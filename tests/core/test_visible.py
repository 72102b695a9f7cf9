from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.visible import Visible


def test_outer_white_space_is_trimmed_and_inner_kept() -> None:
    visible = Visible()
    assert [visible.take(piece) for piece in (" \n", " a ", " ", "b", " \n")] == ["", "a", "", "  b", ""]
    assert visible.started


def test_a_terminator_is_text_only_when_text_follows() -> None:
    visible = Visible()
    assert visible.take("a ") == "a"
    visible.hold("<eos>")
    assert visible.take("\n") == ""
    assert visible.take("b") == " <eos>\nb"
    visible.hold("<eos>")
    assert visible.take("") == ""


def test_white_space_behind_a_terminator_waits_with_it() -> None:
    visible = Visible()
    visible.hold("<eos>")
    assert [visible.take(piece) for piece in (" ", "b")] == ["", "<eos> b"]


@given(st.lists(st.text(alphabet="a \n", max_size=6)))
def test_pieces_give_the_trimmed_whole(pieces: list[str]) -> None:
    visible = Visible()
    assert "".join(map(visible.take, pieces)) == "".join(pieces).strip()

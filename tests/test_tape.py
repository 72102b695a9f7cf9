from __future__ import annotations

from proxy.core.errors import UpstreamError
from proxy.core.events import Problem
from proxy.tape import MOST_KEPT, MOST_PROBLEMS, Kept, Tape, without_images

KEY = "sk-0123456789abcdef"


def tape(*secrets: str, room: int = 1 << 40) -> Tape:
    left = [room]

    def claim(size: int) -> bool:
        left[0] -= size
        return left[0] >= 0

    return Tape(claim, secrets)


def kept(room: int = 1 << 40) -> Kept:
    return tape(room=room).told


def test_what_comes_in_pieces_is_kept() -> None:
    told = kept()
    told.add(b"one ")
    told.add(b"two")
    assert (bytes(told.data), told.size, told.cut) == (b"one two", 7, False)


def test_no_more_is_kept_than_may_be() -> None:
    told = kept()
    told.add(b"x" * (MOST_KEPT - 1))
    assert not told.cut
    told.add(b"yz")
    told.add(b"behind a gap")
    assert bytes(told.data[-2:]) == b"xy"
    assert (len(told.data), told.size, told.cut) == (MOST_KEPT, MOST_KEPT + 13, True)


def test_where_there_is_no_room_nothing_is_kept_behind_the_gap() -> None:
    told = kept(room=4)
    told.add(b"1234")
    told.add(b"5")
    told.add(b"6")
    assert (bytes(told.data), told.size, told.cut) == (b"1234", 6, True)


def test_images_are_left_out() -> None:
    image = b"iVBORw0KGgo" * 100 + b"=="
    data = b'{"url": "data:image/png;base64,' + image + b'", "data": "' + image.replace(b"o", b"\\/") + b'"}'
    marked = without_images(data)
    assert image[:600] not in marked
    assert marked.startswith(b'{"url": "data:image/png;base64,[1102 bytes of base64]", "data": "[')
    assert marked.endswith(b' bytes of base64]"}')
    text = b"words of any length, " * 100 + b"x" * 511
    assert without_images(text) == text


def test_images_leave_room_for_what_stands_behind_them() -> None:
    told = kept()
    told.whole(b'"' + b"A" * (2 * MOST_KEPT) + b'" and the words', ())
    assert bytes(told.data).endswith(b'" and the words')
    assert (told.size, told.cut) == (2 * MOST_KEPT + 16, False)


def test_looking_for_images_takes_no_long_time() -> None:
    hostile = (b'"' + b"A" * 511 + b" ") * 16_000
    assert without_images(hostile) == hostile  # it would be hours, were it not linear


def test_keys_are_nowhere() -> None:
    made = tape(f"{KEY} ")
    made.ask(b'{"user": "' + KEY.encode() + b'"}')
    turn = made.turn("http://there/v1/chat/completions?key=secret", KEY.encode())
    turn.came.add(b"You sent " + KEY[:10].encode())
    turn.came.add(KEY[10:].encode() + b".")
    made.told.add(KEY.encode())
    assert made.shown(turn.came) == b"You sent [the key]."
    made.fail(turn, UpstreamError(f"{KEY} is wrong"))
    made.end()
    assert bytes(made.asked.data) == b'{"user": "[the key]"}'
    assert bytes(turn.sent.data) == b"[the key]"
    assert bytes(turn.came.data) == b"You sent [the key]."
    assert bytes(made.told.data) == b"[the key]"
    assert turn.error == "[the key] is wrong"
    assert turn.url == "http://there/v1/chat/completions"
    assert KEY not in repr(vars(made))


def test_a_word_is_no_key() -> None:
    made = tape("unused", "")
    made.ask(b"unused")
    assert bytes(made.asked.data) == b"unused"


def test_problems_belong_to_the_turn_in_which_they_were_found() -> None:
    made = tape()
    first, second = Problem("repaired", "one"), Problem("cut", "two")
    made.note(Problem("cut", "before any"))
    made.turn("http://a", b"")
    made.note(first)
    made.turn("http://b", b"")
    made.note(second)
    assert [turn.problems for turn in made.turns] == [[first], [second]]
    for _ in range(2 * MOST_PROBLEMS):
        made.note(second)
    assert sum(len(turn.problems) for turn in made.turns) < MOST_PROBLEMS

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import jsonio

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
SURROGATES = st.text(st.characters(categories=["Cs", "Lu"]))


@given(VALUES)
def test_what_is_written_reads_the_same(value: object) -> None:
    assert jsonio.loads(jsonio.dumps(value)) == value


@given(st.integers(min_value=-(10**40), max_value=10**40))
def test_integers_keep_every_digit(number: int) -> None:
    read = jsonio.loads(b'{"seed":%d}' % number)
    assert read == {"seed": number}
    assert type(read["seed"]) is int


@pytest.mark.parametrize("text", ["18446744073709551616", "-9223372036854775809", "[1e2,123456789012345678901]"])
def test_numbers_beyond_64_bits_beside_others(text: str) -> None:
    assert jsonio.loads(text) == json.loads(text)


@pytest.mark.parametrize("offset", range(12))
def test_a_large_number_is_exact_wherever_it_stands(offset: int) -> None:
    assert jsonio.loads(f"[{' ' * offset}18446744073709551617]") == [18446744073709551617]
    assert jsonio.loads(f"[{' ' * offset}-9223372036854775809]") == [-9223372036854775809]


def test_a_long_run_of_digits_in_a_string_changes_nothing() -> None:
    assert jsonio.loads('{"image":"' + "7" * 50 + '","n":1.5}') == {"image": "7" * 50, "n": 1.5}


@pytest.mark.parametrize(
    "text", ["", "{", "[1,]", "NaN", "-Infinity", "[Infinity]", "1e400", "[1e400, 1234567890123456789012]", "{'a': 1}"]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        jsonio.loads(text)


def test_the_complaint_says_where() -> None:
    with pytest.raises(ValueError, match="line 2 column 1"):
        jsonio.loads(b'{"a": 1,\n]')


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        jsonio.loads(b'{"a": "\xff"}')


def test_nesting_has_an_end() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        jsonio.loads("[" * 100_000)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="not JSON"):
        jsonio.dumps(deep)


def test_three_hundred_levels_are_written() -> None:
    text = b"[" * 300 + b"]" * 300
    assert jsonio.dumps(jsonio.loads(text)) == text


@given(SURROGATES)
def test_lone_surrogates_are_escaped_and_survive(text: str) -> None:
    written = jsonio.dumps({"text": text})
    assert json.loads(written.decode()) == json.loads(json.dumps({"text": text}))


@given(SURROGATES)
def test_lone_surrogates_can_be_replaced(text: str) -> None:
    read = json.loads(jsonio.dumps({"text": text}, lone_surrogates="replace"))["text"]
    assert not any(0xD800 <= ord(char) <= 0xDFFF for char in read)


def test_halves_that_stand_together_become_the_character() -> None:
    assert jsonio.loads(jsonio.dumps("\ud83d\ude00 \ud83d", lone_surrogates="replace")) == "😀 \ufffd"


def test_a_request_with_half_an_emoji_is_read() -> None:
    assert jsonio.loads(rb'{"text":"cut \ud83d"}') == {"text": "cut \ud83d"}


@pytest.mark.parametrize("value", [object(), {1, 2}, {(1,): 2}, [2**70, object()]])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        jsonio.dumps(value)


HUGE = "-" + "7" * 5000


@pytest.mark.parametrize("beside", ["0", "12345678901234567890123", r'"\ud83d"', "[" * 300 + "]" * 300])
def test_integers_that_python_does_not_make_are_written_as_they_were(beside: str) -> None:
    text = f'{{"a":[{HUGE},{beside}],"b":"{HUGE}"}}'
    assert jsonio.dumps(jsonio.loads(text)).decode() == text


def test_such_an_integer_survives_where_lone_surrogates_are_replaced() -> None:
    written = jsonio.dumps(jsonio.loads(rf'["\ud83d",{HUGE}]'), lone_surrogates="replace")
    assert written.decode() == f'["\ufffd",{HUGE}]'


def test_the_longest_integers_of_python_are_integers() -> None:
    assert type(jsonio.loads("7" * 4000)) is int


@pytest.mark.parametrize("size", [200, 20_000])
def test_a_text_takes_no_more_memory_than_it_has_bytes(size: int) -> None:
    kept = 100
    tracemalloc.start()
    try:
        texts = [jsonio.dumps({"text": "x" * size}) for _ in range(kept)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * sum(map(len, texts))

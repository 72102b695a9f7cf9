from __future__ import annotations

import gzip
import time
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.transport.inflate import PIECE, Inflater


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
@given(body=st.binary(max_size=300), step=st.integers(1, 400))
def test_any_cut_gives_the_body_back(compress: object, body: bytes, step: int) -> None:
    assert callable(compress)
    data = compress(body)
    inflater = Inflater()
    pieces = [piece for i in range(0, len(data), step) for piece in inflater.feed(data[i : i + step])]
    assert b"".join(pieces) == body
    assert inflater.complete


def test_several_members_follow_one_another() -> None:
    inflater = Inflater()
    assert b"".join(inflater.feed(gzip.compress(b"one ") + gzip.compress(b"two"))) == b"one two"
    assert inflater.complete


def test_what_was_flushed_comes_at_once() -> None:
    compressor = zlib.compressobj(wbits=31)
    inflater = Inflater()
    first = compressor.compress(b"data: 1\n\n") + compressor.flush(zlib.Z_SYNC_FLUSH)
    assert b"".join(inflater.feed(first)) == b"data: 1\n\n"
    assert not inflater.complete
    assert b"".join(inflater.feed(compressor.flush())) == b""
    assert inflater.complete


def test_a_bomb_goes_off_in_small_pieces() -> None:
    bomb = gzip.compress(bytes(20 * PIECE + 7))
    sizes = [len(piece) for piece in Inflater().feed(bomb)]
    assert sum(sizes) == 20 * PIECE + 7
    assert max(sizes) == PIECE


def test_no_body_is_complete_and_half_a_body_is_not() -> None:
    assert Inflater().complete
    inflater = Inflater()
    list(inflater.feed(gzip.compress(b"x" * 100)[:-4]))
    assert not inflater.complete


def test_what_is_not_compressed_is_an_error() -> None:
    with pytest.raises(zlib.error):
        list(Inflater().feed(b"plain text"))


def seconds_for(members: int) -> float:
    data = gzip.compress(b"") * members + gzip.compress(b"end")
    inflater = Inflater()
    started = time.process_time()
    assert b"".join(inflater.feed(data)) == b"end"
    assert inflater.complete
    return time.process_time() - started


def test_very_many_empty_members_cost_what_their_bytes_do() -> None:
    assert seconds_for(60_000) < 40 * max(seconds_for(6_000), 0.001)

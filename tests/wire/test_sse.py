from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.core.errors import UpstreamError
from proxy.wire.sse import DONE, MAX_FRAME, EventCutter, Frame, SseDecoder, comment, frame


def decode(*chunks: bytes, max_frame: int = MAX_FRAME) -> list[Frame]:
    decoder = SseDecoder(max_frame)
    frames = [found for chunk in chunks for found in decoder.feed(chunk)]
    return frames + decoder.close()


def reference(stream: bytes) -> list[Frame]:
    """The format's rules written down once more, over the whole stream at once."""
    frames: list[Frame] = []
    data: list[str] = []
    event = ""
    text = stream.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    for line in [*re.split("\r\n|\n|\r", text), ""]:
        if line == "":
            if data:
                frames.append(Frame(event or "message", "\n".join(data)))
            data, event = [], ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name in ("data", "error"):
            data.append(value)
        if name == "error":
            event = "error"
        elif name == "event":
            event = value
    return frames


PIECES = st.sampled_from(
    [
        *(b"data: a", b"data:b", b"data", b"data:", b'data: {"x": 1}', b"event: ping", b"event", b"id: 7", b"retry: 1"),
        *(b"error: {}", b": comment", b":", b" data: no", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"\xef\xbb\xbf"),
        *(
            "東京🌧".encode(),
            b"\xe6\x9d",
            b"\xff",
            b"data: \xf0\x9f\x8c\xa7",
            b"\x85",
            b"\x0b\x0c\x1c",
            "\u2028".encode(),
        ),
    ]
)
STREAMS = st.one_of(st.lists(PIECES, max_size=25).map(b"".join), st.binary(max_size=60))


@given(stream=STREAMS, cuts=st.lists(st.integers(0, 200), max_size=12))
@example(stream=b"data: a\r\n\r\ndata: b\r\n\r\n", cuts=[8, 10])
@example(stream=b"\xef\xbb\xbfdata: a\n\n", cuts=[1, 2])
def test_any_cut_gives_what_the_format_says(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    expected = reference(stream)
    assert decode(stream) == expected
    assert decode(*chunks) == expected
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == expected


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b"data: {}\n\n", [Frame("message", "{}")]),
        (b"data:{}\n\n", [Frame("message", "{}")]),
        (b"data:  two spaces\n\n", [Frame("message", " two spaces")]),
        (b"data: a\ndata: b\n\n", [Frame("message", "a\nb")]),
        (b"data\n\n", [Frame("message", "")]),
        (b"event: error\ndata: x\n\ndata: y\n\n", [Frame("error", "x"), Frame("message", "y")]),
        (b"event: ping\n\ndata: y\n\n", [Frame("message", "y")]),
        (b": keep-alive\n\n:\n\n", []),
        (b"id: 1\nretry: 5\nnonsense\ndata: x\n\n", [Frame("message", "x")]),
        (b"data: a\rdata: b\r\r", [Frame("message", "a\nb")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [Frame("message", "a"), Frame("message", "b")]),
        (b"data: a\n\n\n\n\ndata: b\n\n", [Frame("message", "a"), Frame("message", "b")]),
        (b'error: {"code": 400}\n\ndata: [DONE]\n\n', [Frame("error", '{"code": 400}'), Frame("message", "[DONE]")]),
        (b"data: \xff\n\n", [Frame("message", "\ufffd")]),
        (b"data: a\xc2\x85b\xe2\x80\xa8c\n\n", [Frame("message", "a\x85b\u2028c")]),
        (b"data: a\n\n\xef\xbb\xbfdata: not at the start\n\n", [Frame("message", "a")]),
    ],
)
def test_streams(stream: bytes, frames: list[Frame]) -> None:
    assert decode(stream) == frames


def test_a_frame_comes_as_soon_as_its_blank_line_does() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\n") == [Frame("message", "a")]
    assert decoder.feed(b"data: b\r\n\r") == [Frame("message", "b")]
    assert decoder.feed(b"\ndata: c\r\r") == [Frame("message", "c")]
    assert decoder.feed(b"\ndata: d\n\n") == [Frame("message", "d")]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r", b"\r\n"])
def test_the_last_frame_needs_no_blank_line(ending: bytes) -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"event: error\ndata: late" + ending) == []
    assert decoder.close() == [Frame("error", "late")]
    assert decoder.close() == []


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "stream",
    [
        b"data: " + b"x" * 100,
        b"data: " + b"x" * 100 + b"\n\n",
        b"data: xxxx\n" * 30,
        b"data\n" * 100,
        b": " + b"x" * 100,
        b"event: " + b"x" * 100 + b"\n",
    ],
)
def test_a_frame_past_the_limit_is_given_up_however_it_is_cut(stream: bytes, size: int) -> None:
    with pytest.raises(UpstreamError, match="more than 64 bytes") as caught:
        decode(*(stream[i : i + size] for i in range(0, len(stream), size)), max_frame=64)
    assert caught.value.status == 502
    assert caught.value.retryable is False


def test_the_limit_is_for_one_frame_and_not_for_the_stream() -> None:
    assert len(decode(b"data: xxxx\n\n" * 30, b": comment\n" * 30, max_frame=64)) == 30


def test_time_grows_with_the_size_and_not_its_square() -> None:
    def cost(size: int) -> float:
        stream = b"data: " + b"x" * size + b"\n\n"
        chunks = [stream[i : i + 4] for i in range(0, len(stream), 4)]
        start = time.process_time()
        assert len(decode(*chunks)) == 1
        return time.process_time() - start

    small = min(cost(50_000) for _ in range(3))
    large = min(cost(1_600_000) for _ in range(2))
    assert large < small * 32 * 8  # thirty-two times the bytes; a square would be a thousand times the work


@given(data=st.binary(max_size=40), event=st.sampled_from([None, b"error", b"message_stop"]))
def test_what_is_encoded_is_decoded(data: bytes, event: bytes | None) -> None:
    [found] = decode(frame(data, event))
    assert found.event == (event or b"message").decode()
    lines = re.split(b"\r\n|\n|\r", data)
    assert found.data.split("\n") in (
        [line.decode("utf-8", "replace") for line in lines],
        [line.decode("utf-8", "replace") for line in lines[:-1]],  # one line end at the very end is not kept
    )


def test_frames_on_the_wire() -> None:
    assert frame(b"{}") == b"data: {}\n\n"
    assert frame(b"{}", b"error") == b"event: error\ndata: {}\n\n"
    assert frame(b"a\nb") == b"data: a\ndata: b\n\n"
    assert comment("keep-alive") == b": keep-alive\n\n"
    assert DONE == b"data: [DONE]\n\n"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
def test_events_are_passed_on_whole_however_they_come(end: bytes) -> None:
    events = [b"data: %d" % number + end for number in range(3)]
    stream = b"".join(events) + b"data: ha"
    for size in range(1, len(stream)):
        cutter = EventCutter()
        passed = [cutter.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
        assert b"".join(passed) == b"".join(events)
        assert cutter.close() == b""
        for at in range(len(passed)):
            assert not b"".join(passed[: at + 1]) or b"".join(passed[: at + 1]).endswith(end)


def test_an_event_is_passed_on_when_it_is_there() -> None:
    cutter = EventCutter()
    assert cutter.feed(b"data: 1\n\n") == b"data: 1\n\n"
    assert cutter.feed(b"data: 2\n\ndata") == b"data: 2\n\n"
    assert cutter.feed(b": 3\n") == b""
    assert cutter.feed(b"") == b""
    assert cutter.feed(b"\n") == b"data: 3\n\n"
    assert cutter.close() == b""


@pytest.mark.parametrize("last", [b"data: [DONE]", b"data: [DONE]\n", b'data:{"a": 1}\r\n', b": bye", b"\n"])
def test_the_last_event_needs_no_blank_line_to_be_passed_on(last: bytes) -> None:
    cutter = EventCutter()
    assert cutter.feed(b"data: 1\n\n" + last) + cutter.close() == b"data: 1\n\n" + last


@pytest.mark.parametrize("last", [b"dat", b"data: [DO", b'data: {"a": ', b"data: \xff", b"data:", b"data: 1\ndata: }"])
def test_a_last_event_that_is_cut_is_dropped(last: bytes) -> None:
    cutter = EventCutter()
    assert cutter.feed(b"data: 1\n\n" + last) + cutter.close() == b"data: 1\n\n"


def test_an_event_without_end_is_not_held_for_ever() -> None:
    cutter = EventCutter(max_held=10)
    passed = b"".join(cutter.feed(b"a" * 4) for _ in range(100))
    assert len(passed) >= 390

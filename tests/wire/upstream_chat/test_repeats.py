from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.events import TextDelta
from proxy.wire.sse import SseDecoder, frame
from proxy.wire.upstream_chat import ChunkDecoder
from proxy.wire.upstream_chat.repeats import REPEATED, Repeats


def chunk(text: str, **more: object) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": text}}], "created": 1, **more}, ensure_ascii=False)


def learned(text: str = "one") -> Repeats:
    repeats = Repeats()
    repeats.learn(chunk(text), text)
    return repeats


def read(repeats: Repeats, *chunks: str) -> str | None:
    found = repeats.read(b"".join(frame(data.encode()) for data in chunks))
    assert found is None or found.event == REPEATED
    return None if found is None else found.data


def test_the_text_of_a_chunk_like_another() -> None:
    repeats = learned()
    assert read(repeats, chunk(" two, three: {4}")) == " two, three: {4}"
    assert read(repeats, chunk("vier €")) == "vier €"
    assert read(repeats, chunk('a "quote"\n\t\\')) == 'a "quote"\n\t\\'


def test_the_text_of_several() -> None:
    repeats = learned()
    assert read(repeats, chunk("two"), chunk(" three\n"), chunk("€")) == "two three\n€"
    assert read(repeats, chunk("two"), chunk("three", created=2), chunk("four")) is None
    assert read(repeats, chunk("two"), "[DONE]") is None


def test_an_escape_does_not_reach_into_the_next_chunk() -> None:
    start, end = chunk("one").split("one")
    assert read(learned(), start + "a\\" + end, start + "n" + end) is None


def test_bytes_that_only_together_are_a_character_are_left_to_json() -> None:
    start, end = (frame(chunk("one").encode())).split(b"one")
    halves = "€".encode()
    assert learned().read(start + halves[:1] + end + start + halves[1:] + end) is None


def test_no_server_can_name_an_event_like_it() -> None:
    decoder = ChunkDecoder()
    for name in (REPEATED, "\\n", ""):
        frames = SseDecoder().feed(f"event: {name}\ndata: text\n\n".encode())
        assert all(each.event != REPEATED for each in frames)
        assert not decoder.read(frames)[0]


def test_what_is_different_is_left_to_json() -> None:
    repeats = learned()
    for data in (
        chunk("one", created=2),
        chunk("\u0001"),
        json.dumps(json.loads(chunk("\u00e9"))),
        chunk("x")[: -len('"}}], "created": 1}')] + '\\"}}], "created": 1}',
        chunk("", other='"delta": {"content": "'),
        chunk("one")[:-1],
        chunk("one") + "}",
        chunk(""),
        chunk("one", usage={}),
        '{"choices": [{"index": 0, "delta": {"content": "one", "role": "x"}}], "created": 1}',
    ):
        assert read(repeats, data) is None
    assert read(Repeats(), chunk("one")) is None


def test_nothing_is_learned_where_it_is_not_plain_which_string_it_was() -> None:
    for data, text in (
        (chunk("a", content="a"), "a"),
        (chunk("a\\"), "a\\"),
        (chunk("b"), "a"),
        ('{"choices": [{"delta": {"c\\u006fntent": "a"}}]}', "a"),
    ):
        repeats = Repeats()
        repeats.learn(data, text)
        assert read(repeats, data) is None


def test_learning_is_given_up_where_no_chunk_is_like_another() -> None:
    repeats = Repeats()
    for number in range(100):
        repeats.learn(chunk("one", created=number), "one")
    assert read(repeats, chunk("one", created=99)) is None
    assert read(repeats, chunk("one", created=15)) == "one"


def said(wire: list[bytes]) -> str:
    """The text of a stream that comes in these reads, by all that reads it."""
    decoder = ChunkDecoder()
    sse = SseDecoder(shortcut=decoder.shortcut)
    events = []
    for data in wire:
        told, error = decoder.read(sse.feed(data))
        assert error is None
        events += told
    return "".join(event.text for event in (*events, *decoder.close()) if isinstance(event, TextDelta))


@given(st.lists(st.text() | st.sampled_from(["a", "\n", "€"]), max_size=20), st.booleans(), st.data())
def test_a_stream_says_what_its_chunks_say(texts: list[str], ascii: bool, data: st.DataObject) -> None:  # noqa: A002
    chunks = [json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=ascii) for text in texts]
    frames = [frame(each.encode()) for each in chunks]
    wire = b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    reads = [wire[start:end] for start, end in pairwise([0, *cuts, len(wire)])]
    assert said(reads) == said([wire]) == said(frames) == "".join(texts)

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.collect import collect
from proxy.core.events import TextDelta
from proxy.wire import jsonio
from proxy.wire.sse import Frame
from proxy.wire.upstream_chat import ChunkDecoder
from proxy.wire.upstream_chat.repeats import Repeats


def chunk(text: str, **more: object) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": {"content": text}}], "created": 1, **more}, ensure_ascii=False)


def learned(text: str = "one") -> Repeats:
    repeats = Repeats()
    repeats.learn(chunk(text), text)
    return repeats


def read(repeats: Repeats, data: str) -> str | None:
    found, taken = repeats.texts([Frame("message", data)])
    return found if taken else None


def test_the_text_of_a_chunk_like_another() -> None:
    repeats = learned()
    assert read(repeats, chunk(" two, three: {4}")) == " two, three: {4}"
    assert read(repeats, chunk("vier €")) == "vier €"
    assert read(repeats, chunk('a "quote"\n\t\\')) == 'a "quote"\n\t\\'


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


@given(st.lists(st.text(), max_size=8), st.booleans())
def test_a_stream_says_what_its_chunks_say(texts: list[str], ascii: bool) -> None:  # noqa: A002
    decoder = ChunkDecoder()
    for text in texts:
        data = json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=ascii)
        said = "".join(event.text for event in decoder.feed(Frame("message", data)) if isinstance(event, TextDelta))
        wanted = jsonio.loads(data)["choices"][0]["delta"]["content"]
        assert said == wanted


@given(st.lists(st.text() | st.sampled_from(["a", "\n", "€"]), max_size=20))
def test_chunks_together_say_what_each_says(texts: list[str]) -> None:
    frames = [Frame("message", json.dumps({"choices": [{"delta": {"content": text}}]})) for text in texts]
    alone, together = ChunkDecoder(), ChunkDecoder()
    said = [event for frame in frames for event in alone.feed(frame)]
    told, error = together.read(frames)
    assert error is None
    assert collect([*told, *together.close()]) == collect([*said, *alone.close()])

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

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


def test_the_text_of_a_chunk_like_another() -> None:
    repeats = learned()
    assert repeats.text(chunk(" two, three: {4}")) == " two, three: {4}"
    assert repeats.text(chunk("vier €")) == "vier €"
    assert repeats.text(chunk('a "quote"\n\t\\')) == 'a "quote"\n\t\\'


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
        assert repeats.text(data) is None
    assert Repeats().text(chunk("one")) is None


def test_nothing_is_learned_where_it_is_not_plain_which_string_it_was() -> None:
    for data, text in (
        (chunk("a", content="a"), "a"),
        (chunk("a\\"), "a\\"),
        (chunk("b"), "a"),
        ('{"choices": [{"delta": {"c\\u006fntent": "a"}}]}', "a"),
    ):
        repeats = Repeats()
        repeats.learn(data, text)
        assert repeats.text(data) is None


def test_learning_is_given_up_where_no_chunk_is_like_another() -> None:
    repeats = Repeats()
    for number in range(100):
        repeats.learn(chunk("one", created=number), "one")
    assert repeats.text(chunk("one", created=99)) is None
    assert repeats.text(chunk("one", created=15)) == "one"


@given(st.lists(st.text(), max_size=8), st.booleans())
def test_a_stream_says_what_its_chunks_say(texts: list[str], ascii: bool) -> None:  # noqa: A002
    decoder = ChunkDecoder()
    for text in texts:
        data = json.dumps({"choices": [{"delta": {"content": text}}]}, ensure_ascii=ascii)
        said = "".join(event.text for event in decoder.feed(Frame("message", data)) if isinstance(event, TextDelta))
        wanted = jsonio.loads(data)["choices"][0]["delta"]["content"]
        assert said == wanted

from __future__ import annotations

from typing import Any

import pytest

from proxy.core.content import flatten, join, merge, words_of
from proxy.core.model import ImagePart, OtherPart, Part, TextPart
from tests.support.conversations import texts

IMAGE = ImagePart("data:image/png;base64,AAAA")
AUDIO = OtherPart({"type": "input_audio", "input_audio": {"data": "AAAA"}})


def keep(_: Part) -> None:
    return None


def test_neighbouring_texts_become_one() -> None:
    content = (*texts("a", "", "b"), IMAGE, *texts("c", "d"), AUDIO)
    assert merge(content, keep) == [TextPart("ab"), IMAGE, TextPart("cd"), AUDIO]
    assert merge((), keep) == []
    assert merge(texts(""), keep) == []


def test_words_are_a_line_of_their_own() -> None:
    content = (IMAGE, *texts("a"), AUDIO, *texts("b\n"), IMAGE, IMAGE)
    assert flatten(content) == "[image left out]\na\n[input_audio left out]\nb\n[image left out]\n[image left out]"
    assert flatten(content, lambda image: image.url[:4]).startswith("data\na\n")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"type": "input_audio", "input_audio": {"data": "AAAA"}}, "[input_audio left out]"),
        ({"type": "output_text", "text": "hi"}, "hi"),
        ({"type": "refusal", "refusal": "no"}, "no"),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}}, "page"),
        ({"type": "document", "source": {"type": "base64", "data": "AAAA"}}, "[document left out]"),
        ({"type": "document", "source": {"type": "content", "content": "page"}}, "page"),
        ({"type": "search_result", "content": [{"text": "a"}, {"image": 1}, {"text": "b"}]}, "a\nb"),
        ({"type": "file", "content": [1, {"text": 2}]}, "[file left out]"),
        ({}, "[part left out]"),
    ],
)
def test_words_of_other_parts(raw: dict[str, Any], words: str) -> None:
    assert words_of(OtherPart(raw)) == words


def test_blocks_are_set_apart() -> None:
    blocks: list[list[Part]] = [
        [TextPart("a")],
        [],
        [TextPart("b"), IMAGE],
        [TextPart("c")],
        [TextPart("d"), TextPart("e")],
    ]
    assert join(blocks) == (TextPart("a\n\nb"), IMAGE, TextPart("c\n\nde"))


def test_there_is_always_a_content() -> None:
    assert join([]) == join([[TextPart("")]]) == (TextPart(""),)
    assert join([[IMAGE]]) == (IMAGE,)


def test_half_a_surrogate_pair_is_replaced() -> None:
    assert join([[TextPart("a\ud800")]]) == (TextPart("a\ufffd"),)

from __future__ import annotations

import base64
from typing import Any

import pytest

from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, OtherPart, Part, TextPart
from proxy.wire.openai_responses.parts import read_parts

PNG = "data:image/png;base64,iVBORw0KGgo="


def file(content: bytes, **fields: Any) -> dict[str, Any]:
    return {"type": "input_file", "file_data": base64.b64encode(content).decode(), **fields}


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("hi", (TextPart("hi"),)),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], (TextPart("a"), TextPart("b"))),
        ({"type": "input_text", "text": "a"}, (TextPart("a"),)),
        ([{"type": "refusal", "refusal": "No."}], (TextPart("No."),)),
        (
            [{"type": "summary_text", "text": "s"}, {"type": "reasoning_text", "text": "r"}],
            (TextPart("s"), TextPart("r")),
        ),
        ([{"type": "input_image", "image_url": PNG, "detail": "low"}], (ImagePart(PNG, "low"),)),
        ([{"type": "input_image", "image_url": PNG, "detail": "original"}], (ImagePart(PNG),)),
        ([{"type": "input_image", "image_url": {"url": PNG, "detail": "high"}}], (ImagePart(PNG, "high"),)),
        ([{"type": "computer_screenshot", "image_url": PNG}], (ImagePart(PNG),)),
        ([{"type": "input_audio", "input_audio": {}}], (OtherPart({"type": "input_audio", "input_audio": {}}),)),
        ([{"stdout": "x"}], (TextPart('[{"stdout":"x"}]'),)),
        ({"a": 1}, (TextPart('{"a":1}'),)),
    ],
)
def test_content(raw: Any, parts: tuple[Part, ...]) -> None:
    assert read_parts(raw, "input[0]") == parts


def test_a_text_file_is_its_text() -> None:
    assert read_parts([file("naïve".encode(), filename="a.txt")], "p") == (TextPart("[file a.txt]\nnaïve\n"),)
    assert read_parts([file(b"x")], "p") == (TextPart("x"),)
    url = "data:text/csv;base64," + base64.b64encode(b"a,b").decode()
    assert read_parts([{"type": "input_file", "file_data": url}], "p") == (TextPart("a,b"),)


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"type": "input_image", "file_id": "file_1"}, "[image left out]"),
        ({"type": "input_image", "image_url": None}, "[image left out]"),
        ({"type": "computer_screenshot"}, "[image left out]"),
        ({"type": "input_file", "file_id": "file_1"}, "[file left out]"),
        ({"type": "input_file", "file_url": "https://example.com/a.pdf"}, "[file left out]"),
        (file(b"%PDF-1.4\xff\xfe", filename="a.pdf"), "[file a.pdf left out]"),
        (file(b"a\0b"), "[file left out]"),
        ({"type": "input_file", "file_data": "not base64!"}, "[file left out]"),
    ],
)
def test_what_cannot_be_read_is_refused_now_and_a_word_later(part: dict[str, Any], word: str) -> None:
    with pytest.raises(ClientError, match="Send it") as caught:
        read_parts([part], "input[3]")
    assert caught.value.param == "input[3]"
    assert read_parts([part], "input[3]", present=False) == (TextPart(word),)

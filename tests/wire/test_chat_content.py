import pytest

from proxy.core.model import ImagePart, Json, OtherPart, Part, TextPart
from proxy.wire.chat_content import read_content, read_reasoning

PIXEL = "data:image/png;base64,AAAA"


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("a\n b", (TextPart("a\n b"),)),
        (
            [{"type": "text", "text": "12 C, "}, {"type": "text", "text": "rain"}],
            (TextPart("12 C, "), TextPart("rain")),
        ),
        (["a", {"text": "b"}], (TextPart("a"), TextPart("b"))),
        ([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}], (TextPart("a"), TextPart("b"))),
        ([{"type": "note", "text": "kept"}], (TextPart("kept"),)),
        ([{"type": "text", "text": None}, {"type": "text"}], (TextPart(""), TextPart(""))),
        ({"type": "text", "text": "alone"}, (TextPart("alone"),)),
        ([{"type": "refusal", "refusal": "No."}], (TextPart("No."),)),
        ([{"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}], (ImagePart(PIXEL, "low"),)),
        ([{"type": "image_url", "image_url": {"url": PIXEL, "detail": 1}}], (ImagePart(PIXEL),)),
        ([{"type": "image_url", "image_url": PIXEL}], (ImagePart(PIXEL),)),
        ([{"type": "input_image", "image_url": PIXEL}], (ImagePart(PIXEL),)),
        ([{"type": "image_url"}], (OtherPart({"type": "image_url"}),)),
        ([{"type": "file", "file": {"file_id": "f"}}], (OtherPart({"type": "file", "file": {"file_id": "f"}}),)),
        # results that are data, not parts: their JSON is the text
        ({"temp": 12, "unit": "C"}, (TextPart('{"temp":12,"unit":"C"}'),)),
        ({"type": "folder", "name": "a"}, (TextPart('{"type":"folder","name":"a"}'),)),
        ([1, 2], (TextPart("[1,2]"),)),
        ([{"text": "a", "lang": "en"}], (TextPart('[{"text":"a","lang":"en"}]'),)),
        (False, (TextPart("false"),)),
        (12.5, (TextPart("12.5"),)),
    ],
)
def test_content(raw: Json, parts: tuple[Part, ...]) -> None:
    content = read_content(raw)
    assert content.parts == parts
    assert content.reasoning == ""


def test_text_joins_text_parts_only() -> None:
    content = read_content(["a", {"type": "image_url", "image_url": PIXEL}, "b"])
    assert content.text == "ab"


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "thinking", "thinking": "hm"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]},
        {"type": "reasoning", "text": "hm"},
    ],
)
def test_thinking_parts_are_reasoning(thought: Json) -> None:
    content = read_content([thought, {"type": "text", "text": "hi"}])
    assert (content.text, content.reasoning) == ("hi", "hm")


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "a"}, "a"),
        ({"thinking": "a"}, "a"),
        ({"reasoning_content": "a", "reasoning": "a"}, "a"),
        ({"reasoning_content": None, "reasoning": "a"}, "a"),
        ({"reasoning_content": "", "thinking": {"budget": 1}}, ""),
        ({"content": "a"}, ""),
    ],
)
def test_reasoning_beside_the_content(message: dict[str, Json], reasoning: str) -> None:
    assert read_reasoning(message) == reasoning

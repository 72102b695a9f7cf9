import pytest

from proxy.core.model import ImagePart, Message, Request, TextPart, Tool, ToolCall, ToolResult
from proxy.core.tokens import IMAGE_TOKENS, estimate, tokens_of


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_a_text(size: int, tokens: int) -> None:
    assert tokens_of(size) == tokens


def test_all_that_a_request_tells_counts() -> None:
    text, image = TextPart("x" * 40), ImagePart("data:image/png;base64," + "A" * 9000)
    said = Message("user", (text, image))
    called = Message("assistant", (text,), (ToolCall("a", "clock", "{" + " " * 34 + "}"),))
    answered = Message("user", results=(ToolResult("a", (text, image)),))
    tool = Tool("clock", "y" * 31, {"a": "b" * 30})
    characters = 40 + 40 + len("clock") + 36 + 40 + len("clock") + 31 + len('{"a": ""}') + 30
    assert estimate(Request((said, called, answered), tools=(tool,))) == characters // 4 + 2 * IMAGE_TOKENS


def test_a_schema_that_cannot_be_written_does_not_count() -> None:
    assert estimate(Request((), tools=(Tool("clock", parameters={"a": float("nan")}),))) == 2

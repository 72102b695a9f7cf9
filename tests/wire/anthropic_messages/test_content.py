import base64

import pytest

from proxy.core.errors import ClientError
from proxy.core.model import ImagePart, Json, Part, TextPart, ToolCall, ToolResult
from proxy.wire.anthropic_messages.content import read_content, read_system

PIXEL = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
BY_FILE = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}


def parts(raw: Json, role: str = "user", *, present: bool = True) -> list[Part]:
    return read_content(raw, "messages[0]", role=role, present=present).parts


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("hi", ["hi"]),
        ([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, "citations": None}], ["hi"]),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["a\n\nb"]),
        (["a", "b"], ["a\n\nb"]),
        ({"type": "text", "text": "a"}, ["a"]),
        ([3], ["3"]),
        (None, []),
        ([], []),
    ],
)
def test_text(raw: Json, expected: list[str]) -> None:
    assert parts(raw) == [TextPart(text) for text in expected]


def test_what_the_assistant_said_in_pieces_is_put_together_as_it_was() -> None:
    assert parts([{"type": "text", "text": "The sky"}, {"type": "text", "text": " is blue."}], "assistant") == [
        TextPart("The sky is blue.")
    ]


def test_images() -> None:
    by_url = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert parts(["look", PIXEL, by_url, "?"]) == [
        TextPart("look"),
        ImagePart("data:image/gif;base64,R0lG"),
        ImagePart("https://example.org/a.png"),
        TextPart("?"),
    ]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"source": {"type": "text", "media_type": "text/plain", "data": "Be."}, "title": "Rules", "context": "New"},
            "[Document: Rules]\nNew\nBe.",
        ),
        (
            {
                "source": {
                    "type": "base64",
                    "media_type": "text/plain",
                    "data": base64.b64encode("Grüße".encode()).decode(),
                }
            },
            "[Document]\nGrüße",
        ),
        ({"source": {"type": "content", "content": "Be."}}, "[Document]\nBe."),
        ({"source": {"type": "content", "content": [{"type": "text", "text": "Be."}]}}, "[Document]\nBe."),
    ],
)
def test_documents_that_are_text(block: Json, expected: str) -> None:
    assert parts([{"type": "document", **block}]) == [TextPart(expected)]


def test_a_document_may_hold_images() -> None:
    block = {"type": "document", "source": {"type": "content", "content": [PIXEL]}}
    assert parts([block]) == [TextPart("[Document]"), ImagePart("data:image/gif;base64,R0lG")]


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (PDF, "application/pdf"),
        (BY_FILE, "'file'"),
        ({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}, "'url'"),
        ({"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "abc"}}, "base64"),
        ({"type": "container_upload", "file_id": "file_1"}, "container"),
        ({"type": "document", "source": {"type": "content", "content": [BY_FILE]}}, "'file'"),
    ],
)
def test_what_no_model_can_be_shown_is_refused_now_and_marked_later(block: Json, what: str) -> None:
    with pytest.raises(ClientError, match=what) as caught:
        parts(["read this", block])
    assert caught.value.param == "messages[0].content[1]"
    (said,) = parts(["read this", block], present=False)
    assert isinstance(said, TextPart)
    assert what in said.text
    assert "left out" in said.text


def test_in_a_result_the_model_is_told_of_what_is_missing() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": [PDF]}
    (result,) = read_content([block], "messages[0]", role="user", present=True).results
    assert result.content == (TextPart("[left out: a document of type application/pdf]"),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"content": "9"}, ToolResult("a", (TextPart("9"),))),
        ({}, ToolResult("a")),
        ({"content": []}, ToolResult("a")),
        ({"content": "no", "is_error": True}, ToolResult("a", (TextPart("no"),), is_error=True)),
        ({"content": "ok", "is_error": None}, ToolResult("a", (TextPart("ok"),))),
        (
            {"content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}, PIXEL]},
            ToolResult("a", (TextPart("1\n\n2"), ImagePart("data:image/gif;base64,R0lG"))),
        ),
        (
            {"content": [{"type": "tool_reference", "tool_name": "clock"}]},
            ToolResult("a", (TextPart("[The tool clock can be called.]"),)),
        ),
        (
            {"content": [{"type": "browser_state", "text": "a page"}]},
            ToolResult("a", (TextPart("a page"),)),
        ),
    ],
)
def test_results(fields: dict[str, Json], expected: ToolResult) -> None:
    content = read_content(
        [{"type": "tool_result", "tool_use_id": "a", **fields}, {"type": "text", "text": "go on"}],
        "messages[0]",
        role="user",
        present=True,
    )
    assert content.results == [expected]
    assert content.parts == [TextPart("go on")]


@pytest.mark.parametrize(
    ("given", "arguments"),
    [({"n": 4611686018427387905}, '{"n":4611686018427387905}'), ({}, "{}"), (None, "{}"), ('{"a": 1}', '{"a": 1}'),
     ("", "{}"), ([1], "[1]")],
)  # fmt: skip
def test_calls(given: Json, arguments: str) -> None:
    block = {"type": "tool_use", "id": "a", "name": "clock", "input": given}
    content = read_content([block], "messages[0]", role="assistant", present=False)
    assert content.calls == [ToolCall("a", "clock", arguments)]


def test_reasoning_is_kept_whatever_its_signature_and_sealed_reasoning_says_nothing() -> None:
    content = read_content(
        [
            {"type": "thinking", "thinking": "hm", "signature": "whatever"},
            {"type": "redacted_thinking", "data": "c2Vj"},
            {"type": "fallback", "from": {}, "to": {}},
            {"type": "thinking", "thinking": "oh"},
            {"type": "text", "text": "Yes."},
        ],
        "messages[0]",
        role="assistant",
        present=False,
    )
    assert content.reasoning == ["hm", "oh"]
    assert content.parts == [TextPart("Yes.")]


def test_what_anthropics_own_tools_did_is_told_as_text() -> None:
    (said,) = parts(
        [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s",
                "content": [
                    {"type": "web_search_result", "url": "https://a", "title": "A", "encrypted_content": "c2Vj"}
                ],
            },
            {
                "type": "web_fetch_tool_result",
                "content": {"source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
            },
        ],
        "assistant",
        present=False,
    )
    assert isinstance(said, TextPart)
    assert 'web_search was called with {"query":"x"}' in said.text
    assert "https://a" in said.text
    assert "application/pdf" in said.text
    assert "c2Vj" not in said.text
    assert "JVBERi0" not in said.text


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {
                "type": "search_result",
                "source": "https://a",
                "title": "A",
                "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
            },
            "[Search result: A]\nhttps://a\nx\ny",
        ),
        ({"type": "compaction", "content": "So far: nothing."}, "So far: nothing."),
        ({"type": "hologram"}, "[hologram left out]"),
        ({"type": "image"}, "[image left out]"),
        ({}, "[part left out]"),
    ],
)
def test_other_blocks(block: Json, expected: str) -> None:
    assert parts([block]) == [TextPart(expected)]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, ""),
        ("Be kind.", "Be kind."),
        ([{"type": "text", "text": "Be kind.", "cache_control": {}}, {"type": "text", "text": "Be brief."}],
         "Be kind.\n\nBe brief."),
        ([{"type": "text", "text": "x-anthropic-billing-header: cc=1"}, {"type": "text", "text": "Be kind."}],
         "Be kind."),
        ([{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"}}], ""),
    ],
)  # fmt: skip
def test_system(raw: Json, expected: str) -> None:
    assert read_system(raw) == expected

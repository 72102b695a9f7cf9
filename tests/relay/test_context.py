from __future__ import annotations

import json
import logging
from typing import Any

import httpx2
import pytest

from proxy.backends.probes import Kind
from proxy.core.events import Usage
from proxy.core.model import ImagePart, Message, Part, TextPart
from proxy.relay.context import ContextCheck
from tests.support.backend import Backend, Reply, body, text
from tests.support.proxy import post, proxy_before

WORDS = "word " * 9000
CUT = (2050, 4)
"""The prompt and completion tokens that Ollama gave for these words with its context of 4096 tokens."""


def finding(
    content: str | Part, prompt: int | None, completion: int = 4, *, kind: Kind = "unknown", **raw: Any
) -> str | None:
    part = TextPart(content) if isinstance(content, str) else content
    messages = (Message("system", (TextPart(WORDS),)), Message("user", (part,)))
    return ContextCheck(messages, kind).finding(Usage(prompt, completion, raw))


@pytest.mark.parametrize(
    ("kind", "mend"),
    [("ollama", "OLLAMA_CONTEXT_LENGTH"), ("llama.cpp", " -c "), ("lmstudio", "Load"), ("unknown", "larger context")],
)
def test_far_fewer_tokens_than_text_are_found_with_the_mend(kind: Kind, mend: str) -> None:
    found = finding("Hi", *CUT, kind=kind)
    assert found
    assert "counted 2,050 tokens in a prompt of 45," in found
    assert mend in found


def test_the_limit_is_eight_characters_a_token() -> None:
    def is_found(tokens: int) -> bool:
        return ContextCheck((Message("user", (TextPart("x" * 800),)),)).finding(Usage(tokens)) is not None

    assert [is_found(tokens) for tokens in (99, 100, 101)] == [True, False, False]


@pytest.mark.parametrize("tokens", [None, 0, -1])
def test_no_count_is_no_finding(tokens: int | None) -> None:
    assert finding("Hi", tokens) is None


def test_small_prompts_are_never_found() -> None:
    assert ContextCheck((Message("user", (TextPart("x" * 199),)),)).finding(Usage(1)) is None
    assert ContextCheck(()).finding(Usage(1)) is None


def test_cached_tokens_that_a_server_leaves_out_are_added() -> None:
    assert finding("Hi", 40, prompt_tokens_details={"cached_tokens": 9000}) is None
    assert finding("Hi", 40, prompt_tokens_details={"cached_tokens": 30})
    for odd in (None, "x", {}, {"cached_tokens": None}):
        assert finding("Hi", 40, prompt_tokens_details=odd)


def test_nothing_is_said_of_a_prompt_with_an_image() -> None:
    assert finding(ImagePart("data:,"), *CUT) is None


def test_a_run_of_white_space_counts_as_one_character() -> None:
    assert ContextCheck((Message("user", (TextPart("a" + " " * 5000 + "b"),)),)).finding(Usage(12)) is None


# ---- from outside

OLLAMA = {"/api/show": body({"details": {}, "template": "{{ .Prompt }}", "capabilities": ["completion"]})}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
WHOLE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hm."}, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 2050, "completion_tokens": 4, "total_tokens": 2054},
}


def ask(reply: Reply, words: str = WORDS, **fields: Any) -> httpx2.Response:
    asked = {"model": "m", "messages": [{"role": "user", "content": words}], "tools": [TOOL], **fields}
    with Backend(routes=dict(OLLAMA)) as backend, proxy_before(backend, "auto") as url:
        backend.script(reply)
        answer = post(f"{url}/v1/chat/completions", json=asked)
    assert answer.status_code == 200
    return answer


def logged(caplog: pytest.LogCaptureFixture) -> tuple[list[str], str | None]:
    """The warnings in the log, and what the request's line says of them."""
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    (line,) = [record for record in caplog.records if record.getMessage() == "request"]
    return warnings, getattr(line, "toolgraft").get("warning")  # noqa: B009 — a field that mypy does not know


@pytest.fixture(autouse=True)
def _logging(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="toolgraft")


def test_a_cut_prompt_is_told_in_the_log_and_a_header(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(body(WHOLE), max_tokens=4)
    assert answer.headers["x-toolgraft-warning"] == "context-cut"
    assert answer.json()["usage"]["prompt_tokens"] == 2050
    (warning,), field = logged(caplog)
    assert warning.startswith(f"request {answer.headers['x-request-id']}: ")
    assert "OLLAMA_CONTEXT_LENGTH" in warning
    assert field == "context-cut"


def test_a_stream_is_told_of_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ask(text("Hm.", usage=CUT), stream=True)
    warnings, field = logged(caplog)
    assert len(warnings) == 1
    assert field == "context-cut"


def test_a_stream_s_header_tells_it_where_the_count_comes_first() -> None:
    assert ask(body(WHOLE), stream=True).headers["x-toolgraft-warning"] == "context-cut"


@pytest.mark.parametrize("usage", [(9031, 4), None])
def test_a_prompt_that_was_read_whole_or_not_counted_is_not_told_of(
    caplog: pytest.LogCaptureFixture, usage: tuple[int, int] | None
) -> None:
    answer = ask(text("Hm.", usage=usage))
    assert "x-toolgraft-warning" not in answer.headers
    assert logged(caplog) == ([], None)


def test_the_words_of_the_conversation_are_not_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ask(body(WHOLE), words="swordfish " * 4500)
    assert "swordfish" not in json.dumps([vars(record) for record in caplog.records], default=str)

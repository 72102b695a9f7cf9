import json

import pytest

from proxy.core.errors import UpstreamError
from proxy.core.model import Json
from proxy.wire.upstream_errors import MAX_WORDS, event_error, is_capability_error, is_error, upstream_error

URL = "http://127.0.0.1:8080/v1/chat/completions"


def error(status: int, body: Json | bytes, headers: tuple[tuple[str, str], ...] = ()) -> UpstreamError:
    return upstream_error(status, headers, body if isinstance(body, bytes) else json.dumps(body).encode(), URL)


@pytest.mark.parametrize(
    ("status", "body", "message", "kind", "code"),
    [
        # llama.cpp: the code is the status again
        (
            400,
            {"error": {"code": 400, "message": "bad template", "type": "invalid_request_error"}},
            "bad template",
            "invalid_request_error",
            None,
        ),
        # OpenAI and its like
        (
            429,
            {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
            "Slow down.",
            "requests",
            "rate_limit_exceeded",
        ),
        # Ollama's own API, and TGI
        (400, {"error": "unexpected EOF"}, "unexpected EOF", "invalid_request_error", None),
        (
            422,
            {"error": "Input validation error", "error_type": "validation"},
            "Input validation error",
            "validation",
            None,
        ),
        # FastAPI: SGLang, TabbyAPI, vLLM's validation
        (422, {"detail": "Not a chat model"}, "Not a chat model", "invalid_request_error", None),
        (
            422,
            {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Input should be 'user'"}, {"msg": "x"}, 5]},
            "messages.0.role: Input should be 'user'; x; 5",
            "invalid_request_error",
            None,
        ),
        (400, {"detail": {"error": {"message": "nested"}}}, "nested", "invalid_request_error", None),
        # vLLM, older
        (
            400,
            {
                "object": "error",
                "message": "top_p must be in (0, 1]",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            },
            "top_p must be in (0, 1]",
            "BadRequestError",
            None,
        ),
        (500, {"error": {"message": "boom"}}, "boom", "upstream_error", None),
        (
            503,
            {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
            "Loading model",
            "unavailable_error",
            None,
        ),
        (400, {"error": {"reason": "odd"}}, '{"reason":"odd"}', "invalid_request_error", None),
    ],
)
def test_the_backends_own_words(status: int, body: Json, message: str, kind: str, code: str | None) -> None:
    read = error(status, body)
    assert (read.status, read.message, read.type, read.code, read.retryable) == (status, message, kind, code, None)


def test_ollama_hands_on_the_error_of_its_engine_as_text() -> None:
    inner = {"error": {"code": 400, "message": "no such grammar", "type": "invalid_request_error"}}
    assert error(400, {"error": {"message": json.dumps(inner), "type": "api_error"}}).message == "no such grammar"
    assert error(400, {"error": {"message": "{not json", "type": "api_error"}}).message == "{not json"


@pytest.mark.parametrize(
    ("status", "body", "kept", "words"),
    [
        (502, b"<html><head><title>502 Bad\n Gateway</title></head></html>", 502, "an HTML page ('502 Bad Gateway')"),
        (503, b"<!DOCTYPE html>\n<h1>Busy</h1>", 502, "an HTML page ('Busy') with status 503"),
        (200, b"<html><body>hello</body></html>", 502, "an HTML page with status 200"),
        (413, b"<html><title>413 Too Large</title></html>", 413, "an HTML page ('413 Too Large')"),
        (502, b"<html>" + b"<title>" * 140_000, 502, "an HTML page with status 502"),  # not all of it is looked through
        (500, b"", 502, "nothing with status 500"),
        (500, b" \n", 502, "nothing with status 500"),
        (404, b"", 404, "nothing with status 404"),
        (500, b"Internal Server Error", 500, "'Internal Server Error' with status 500"),
        (500, b"\x1f\x8b\x08\xff", 502, "with status 500"),
        (500, b'{"error": {"mess', 502, "with status 500"),
        (500, {"errors": ["boom"]}, 500, "boom"),
        (302, b"moved", 502, "'moved' with status 302"),
        (400, b"x" * 1000, 400, "x" * 200 + "…"),
    ],
)
def test_answers_that_are_no_error_objects(status: int, body: Json, kept: int, words: str) -> None:
    read = error(status, body)
    assert read.status == kept
    assert words in read.message
    assert URL in read.message


def test_a_password_in_the_address_is_not_repeated() -> None:
    message = upstream_error(500, (), b"", "http://user:secret@host:1/v1").message
    assert "http://host:1/v1" in message
    assert "secret" not in message


def test_long_messages_are_cut() -> None:
    assert len(error(400, {"error": {"message": "x" * 10_000}}).message) == MAX_WORDS
    assert len(error(422, {"detail": [{"msg": "x" * 10_000}]}).message) == MAX_WORDS


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "request (9031 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (500, "request is larger than the context size"),
        (400, "This model's maximum context length is 4096 tokens. However, you requested 9079 tokens."),
        (400, "The decoder prompt (length 9000) is longer than the maximum model length of 4096."),
        (500, "Requested tokens (9000) exceed context window of 4096"),
        (400, "the input length exceeds the context length"),
        (400, "The input (9000 tokens) is longer than the model's context length (4096 tokens)."),
        (400, "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with"),
        (400, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"),
        (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500"),
        (422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1500"),
        (400, "Prompt length 5000 is greater than max_seq_len 4096"),
        (413, "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
def test_a_prompt_that_does_not_fit(status: int, words: str) -> None:
    read = error(status, {"error": {"message": words, "type": "server_error"}})
    assert (read.status, read.code, read.message) == (400, "context_length_exceeded", words)
    assert (read.type, read.retryable) == ("invalid_request_error", None)


def test_the_type_alone_can_say_that_the_prompt_does_not_fit() -> None:
    read = error(
        400, {"error": {"code": 400, "message": "too many", "type": "exceed_context_size_error", "n_ctx": 4096}}
    )
    assert read.code == "context_length_exceeded"


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "Too many tokens; the maximum context length counts"), (400, "bad context"), (500, "context lost")],
)
def test_other_words_about_context(status: int, words: str) -> None:
    assert (error(status, {"error": words}).status, error(status, {"error": words}).code) == (status, None)


@pytest.mark.parametrize(
    "words",
    [
        "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...",
        "Unable to generate parser for this template.",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "Failed to parse tools: Missing tool function",
        "7 validation errors:\n  {'type': 'literal_error'}",
        'can only concatenate str (not "NoneType") to str',
        "'dict object' has no attribute 'content'",
    ],
)
def test_server_errors_that_will_not_heal(words: str) -> None:
    read = error(500, {"error": {"code": 500, "message": words, "type": "server_error"}})
    assert (read.status, read.message, read.retryable) == (500, words, False)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_options(status: int) -> None:
    read = error(status, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": status}})
    assert read.status == status
    assert read.message.startswith("Invalid API Key ")
    assert "--backend-key-env" in read.message
    assert "--forward-client-key" in read.message


@pytest.mark.parametrize(
    "words", ["model 'nope' not found", "The model `x` does not exist.", 'model "x" not found, try pulling it first']
)
def test_an_unknown_model(words: str) -> None:
    read = error(404, {"error": {"message": words, "type": "not_found_error", "code": None}})
    assert (read.status, read.code, read.message) == (404, "model_not_found", words)


@pytest.mark.parametrize("body", [{"detail": "Not Found"}, {"error": {"code": 404, "message": "File Not Found"}}])
def test_a_wrong_path_names_the_address(body: Json) -> None:
    read = error(404, body)
    assert (read.status, read.code) == (404, None)
    assert "Not Found" in read.message
    assert URL in read.message


def test_when_to_try_again_is_passed_on() -> None:
    headers = (("Retry-After", "3"), ("retry-after-ms", "2500"), ("X-Should-Retry", "true"), ("server", "x"))
    assert error(429, {"error": "busy"}, headers).headers == (
        ("retry-after", "3"),
        ("retry-after-ms", "2500"),
        ("x-should-retry", "true"),
    )
    assert error(503, b"", headers).headers[0] == ("retry-after", "3")
    assert error(503, b"", (("Retry-After", "3\x0b"),)).headers == ()


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        ({"error": {"message": "x", "code": 503}}, 503),
        ({"error": {"message": "x", "code": "429"}}, 429),
        ({"error": {"message": "x", "code": 7}}, 502),
        ({"error": {"message": "x", "type": "not_found_error"}}, 404),
        ({"error": {"message": "x", "type": "server_error"}}, 502),
        ({"error": "x"}, 502),
        ({"error": True}, 502),
        ("x", 502),
    ],
)
def test_error_events_have_a_status(payload: Json, status: int) -> None:
    read = event_error(payload)
    assert read.status == status
    assert "x" in read.message or payload == {"error": True}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"error": "x"}, True),
        ({"error": {"message": "x"}, "choices": []}, True),
        ({"object": "error", "message": "x"}, True),
        ({"error": None, "choices": []}, False),
        ({"object": "chat.completion.chunk"}, False),
        (["error"], False),
        ("error", False),
    ],
)
def test_is_error(payload: Json, expected: bool) -> None:
    assert is_error(payload) is expected


@pytest.mark.parametrize(
    "text",
    [
        '{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}',
        "tool_choice param requires --jinja flag",
        "Cannot use tools with stream",
        "Unsupported param: tools",
        "Unsupported param: tool_choice",
        "registry.ollama.ai/library/small:latest does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        'tool_choice = "required" is not supported!',
        "OpenAI tools field not supported yet",
        "OpenAI tool_choice field not supported yet",
        "Input validation error: grammar is not supported",
        "No endpoints found that support tool use. To learn more about provider routing, visit the docs",
        "Function calling is not enabled for models/small-1b-it",
        "`tool calling` is not supported with this model",
        "this model doesn't support tool calling",
        "The loaded model does not currently support native function calling",
        "vendor does not support parameters: ['tools', 'tool_choice'], for model=small",
    ],
)
def test_capability_errors(text: str) -> None:
    assert is_capability_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Invalid tool_choice: banana",
        "Cannot use custom grammar constraints with tools.",
        "Failed to parse tools: Missing tool function",
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "Tool choice 'nope' not found in tools.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "request (9031 tokens) exceeds the available context size (4096 tokens)",
        "model 'nope' not found",
        "structured output is not supported",
    ],
)
def test_other_errors(text: str) -> None:
    assert not is_capability_error(text)


@pytest.mark.parametrize(("body", "told"), [({"error": {"message": "busy"}}, 503), (b"<html>", 502)])
def test_the_backend_s_own_status_is_kept_beside_the_one_that_is_told(body: Json | bytes, told: int) -> None:
    refused = error(503, body)
    assert (refused.status, refused.answered) == (told, 503)

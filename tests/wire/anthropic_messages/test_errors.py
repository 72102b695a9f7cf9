import json

import pytest

from proxy.core.errors import ClientError, ConfigError, ToolgraftError, UpstreamError
from proxy.wire.anthropic_messages import encode_error, stream_error
from proxy.wire.anthropic_messages.errors import THREAD_UNSUPPORTED
from proxy.wire.sse import SseDecoder


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (ClientError("x"), 400, "invalid_request_error"),
        (ClientError("x", status=404), 404, "not_found_error"),
        (ClientError("x", status=405), 405, "invalid_request_error"),
        (ClientError("x", status=413), 413, "request_too_large"),
        (UpstreamError("x", status=401), 401, "authentication_error"),
        (UpstreamError("x", status=403), 403, "permission_error"),
        (UpstreamError("x", status=429), 429, "rate_limit_error"),
        (UpstreamError("x", status=500), 500, "api_error"),
        (UpstreamError("x"), 502, "api_error"),
        (UpstreamError("x", status=503), 529, "overloaded_error"),
        (UpstreamError("x", status=504), 504, "timeout_error"),
        (ToolgraftError("x", status=503), 503, "api_error"),
        (ConfigError("x"), 500, "api_error"),
    ],
)
def test_status_and_type(error: ToolgraftError, status: int, kind: str) -> None:
    answered, headers, body = encode_error(error)
    assert answered == status
    assert dict(headers)["content-type"] == "application/json"
    assert json.loads(body) == {"type": "error", "error": {"type": kind, "message": "x"}}


def test_when_to_try_again() -> None:
    busy = dict(encode_error(UpstreamError("x", status=429, headers=(("retry-after", "3"),)))[1])
    assert (busy["retry-after"], busy.get("x-should-retry")) == ("3", None)
    assert dict(encode_error(ClientError("x"))[1])["x-should-retry"] == "false"


def test_the_cause_is_told_apart() -> None:
    error = json.loads(encode_error(ClientError("x", code="model_not_found", status=404))[2])["error"]
    assert error["details"] == {"error_code": "model_not_found"}


def test_the_words_that_agents_shorten_their_history_on() -> None:
    for said in ("The context has 4096 tokens.", "Prompt is too long."):
        error = json.loads(encode_error(UpstreamError(said, status=400, code="context_length_exceeded"))[2])["error"]
        assert error["message"].lower().count("prompt is too long") == 1
        assert said in error["message"]


def test_a_thread_is_refused_in_the_words_that_the_sdk_falls_back_on() -> None:
    error = json.loads(encode_error(ClientError("x", code=THREAD_UNSUPPORTED, param="thread"))[2])["error"]
    assert error["details"] == {"error_code": THREAD_UNSUPPORTED, "unsupported": ["thread"]}


def test_within_a_stream_it_is_an_event_of_its_own() -> None:
    (frame,) = SseDecoder().feed(stream_error(UpstreamError("x")))
    assert frame.event == "error"
    assert json.loads(frame.data) == {"type": "error", "error": {"type": "api_error", "message": "x"}}

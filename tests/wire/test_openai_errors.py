import json

import pytest

from proxy.core.errors import ClientError, ConfigError, ToolgraftError, UpstreamError
from proxy.wire.openai_chat import encode_error, stream_error


def test_the_shape_that_clients_read() -> None:
    error = ClientError("No such tool.", param="tool_choice")
    fields = {"message": "No such tool.", "type": "invalid_request_error", "param": "tool_choice", "code": None}
    assert json.loads(encode_error(error)[2]) == {"error": fields}
    data = stream_error(error)
    assert data.startswith(b"data: ")
    assert data.endswith(b"\n\n")
    assert json.loads(data[6:]) == {"error": fields}


@pytest.mark.parametrize(
    ("error", "status", "retry"),
    [
        (ClientError("x"), 400, "false"),
        (ClientError("x", status=404, code="model_not_found"), 404, "false"),
        (ClientError("x", status=429), 429, None),
        (UpstreamError("x"), 502, None),
        (UpstreamError("x", status=500, retryable=False), 500, "false"),
        (UpstreamError("x", status=503, retryable=True), 503, "true"),
        (UpstreamError("x", status=500, headers=(("x-should-retry", "true"),)), 500, "true"),
        (UpstreamError("x", status=500, headers=(("x-should-retry", "true"),), retryable=False), 500, "false"),
        (ConfigError("x"), 500, None),
    ],
)
def test_status_and_the_word_on_retries(error: ToolgraftError, status: int, retry: str | None) -> None:
    answered, headers, body = encode_error(error)
    assert answered == status
    assert dict(headers).get("x-should-retry") == retry
    assert dict(headers)["content-type"] == "application/json"
    assert len(headers) == len(dict(headers))
    assert json.loads(body)["error"]["message"] == "x"


def test_the_backend_says_when_to_come_back() -> None:
    error = UpstreamError("busy", status=429, headers=(("retry-after", "3"), ("retry-after-ms", "2500")))
    headers = dict(encode_error(error)[1])
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("3", "2500")

import pytest

from proxy.core.errors import ClientError, ConfigError, ToolgraftError, UpstreamError
from proxy.wire.failures import RETRIED_4XX, error_headers


@pytest.mark.parametrize(
    ("error", "retry"),
    [
        (ClientError("x"), "false"),
        *((ClientError("x", status=status), None) for status in RETRIED_4XX),
        (UpstreamError("x"), None),
        (UpstreamError("x", retryable=True), "true"),
        (UpstreamError("x", headers=(("x-should-retry", "true"),)), "true"),
        (UpstreamError("x", headers=(("x-should-retry", "true"),), retryable=False), "false"),
        (ConfigError("x"), None),
    ],
)
def test_the_word_on_retries(error: ToolgraftError, retry: str | None) -> None:
    assert error_headers(error).get("x-should-retry") == retry
    assert error_headers(error)["content-type"] == "application/json"


def test_the_backends_own_word_on_when() -> None:
    assert error_headers(UpstreamError("x", headers=(("retry-after", "3"),)))["retry-after"] == "3"

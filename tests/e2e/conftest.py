"""What the tests with real SDKs share: one scripted server, as a text model and as one with tools of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.speech import Mode


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


@pytest.fixture(scope="module", params=["xml", "native"])
def mode(request: pytest.FixtureRequest) -> Mode:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def url(backend: Backend, mode: Mode) -> Iterator[str]:
    with proxy_before(backend, mode) as address:
        yield address

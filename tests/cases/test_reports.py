"""Cases from a file outside of the repository, each over HTTP: the real proxy before a backend that says what is given.

    TOOLGRAFT_CASES=FOLDER pytest tests/cases

The folder holds ``reports.jsonl``, a case a line: ``id``, ``surface``, ``input``, ``expect`` and maybe ``expect_alt``,
outcomes that are as good. Conditions are those of ``tests.cases.outcome``.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cases.outcome import Outcome, faults
from tests.support.backend import Backend, Reply, body, sse, text
from tests.support.proxy import http_client, proxy_before

FOLDER = os.environ.get("TOOLGRAFT_CASES")
CASES = [json.loads(line) for line in Path(FOLDER, "reports.jsonl").read_text().splitlines()] if FOLDER else []

ELSEWHERE = {
    "ops": "about connections and time: tests/e2e/test_streaming.py, tests/transport",
    "t-large-args-linear": "about cost: tests/core",
    "r-stable-order": "several requests: tests/core/test_prompt.py",
    "o-base-url-forms": "tests/backends/test_registry.py",
    "o-backend-down": "tests/test_app.py",
    "o-model-id-slash": "tests/test_app.py",
    "o-auth-empty-bearer": "tests/e2e/test_native.py",
    "o-large-body": "tests/test_app.py",
    "o-cors-preflight": "tests/e2e/test_operations.py",
}
"""Cases that need more than a request and its answer, by id or surface, and where they are tested."""

ONLY_WHOLE = {"p-think-no-opener": "a lone closer: what went out before it stays text"}
"""Cases whose answer a stream cannot give, since it cannot take back what it said."""

ANTHROPIC = "anthropic"
THINKS = {
    "/props": body({"build_info": "b1", "chat_template": "{{ messages }}<think>\n"}),
    "/apply-template": body({"prompt": "hi<think>\n"}),
}
"""What a llama.cpp server says whose template opens the reasoning itself."""

pytestmark = pytest.mark.skipif(FOLDER is None, reason="TOOLGRAFT_CASES names no folder of cases")


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    with Backend() as server:
        yield server


class Proxies:
    """One proxy for each way of configuring it, started when first asked for."""

    def __init__(self, stack: ExitStack, backend: Backend) -> None:
        self._stack = stack
        self._backend = backend
        self._urls: dict[tuple[str, bool], str] = {}

    def url(self, dispatcher: str, system_role: bool) -> str:
        key = (dispatcher, system_role)
        if key not in self._urls:
            self._urls[key] = self._stack.enter_context(
                proxy_before(self._backend, dispatcher, system_role=system_role)
            )
        return self._urls[key]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    with http_client() as http:
        yield http


@pytest.fixture(scope="module")
def proxies(backend: Backend) -> Iterator[Proxies]:
    with ExitStack() as stack:
        yield Proxies(stack, backend)


def reply_of(given: dict[str, Any], size: int) -> Reply:
    """The backend's reply that a case describes; text is streamed in pieces of ``size`` characters."""
    if "upstream_sse" in given:
        return sse(*given["upstream_sse"])
    if "upstream_tcp_chunks_b64" in given:
        return sse(*(base64.b64decode(chunk) for chunk in given["upstream_tcp_chunks_b64"]), pause=0.01)
    if "upstream_json" in given:
        return body(given["upstream_json"])
    if "upstream" in given:
        kind = given["upstream"].get("headers", {}).get("content-type", "application/json")
        return body(given["upstream"]["body"].encode(), given["upstream"]["status"], kind)
    whole = given.get("text", given.get("upstream_text", "Hello."))
    pieces = given.get("text_deltas") or [whole[at : at + size] for at in range(0, len(whole), size)]
    return text(*pieces, finish=given.get("upstream_finish", "stop"))


def request_of(given: dict[str, Any]) -> dict[str, Any]:
    fields = ("messages", "tools", "tool_choice", "response_format", "stop", "store", "metadata", "reasoning_effort")
    more = ("max_completion_tokens", "user", "seed", "service_tier")
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    asked |= {key: given[key] for key in (*fields, *more) if key in given}
    request = given.get("request")
    return {**asked, **given.get("body", {}), **(request if isinstance(request, dict) else {})}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], streamed: bool, backend: Backend, proxies: Proxies, client: httpx2.Client) -> None:
    given = case["input"]
    elsewhere = ELSEWHERE.get(case["id"]) or ELSEWHERE.get(case["surface"])
    if elsewhere:
        pytest.skip(elsewhere)
    if str(given.get("surface", "")).startswith(ANTHROPIC):
        pytest.skip("another surface")
    if streamed and case["id"] in ONLY_WHOLE:
        pytest.skip(ONLY_WHOLE[case["id"]])
    only_stream = "upstream_sse" in given or "upstream_tcp_chunks_b64" in given or "response_headers" in case["expect"]
    asked = request_of(given)
    wanted = asked.setdefault("stream", streamed)
    if wanted != streamed or (only_stream and not streamed):
        pytest.skip("says which way it is asked")
    with ExitStack() as stack:
        if given.get("think_prefilled"):
            started = stack.enter_context(Backend(routes=dict(THINKS)))
            url = stack.enter_context(proxy_before(started))
        else:
            started = backend
            system_role = given.get("backend_capability", {}).get("system_role", True)
            url = proxies.url(given.get("mode", "xml"), system_role)
        for size in (1, 7) if streamed else (1000,):
            started.script(reply_of(given, size))
            before = len(started.requests)
            answer = client.post(url + "/v1/chat/completions", json=asked)
            seen = [request for request in started.requests[before:] if request in started.chats]
            got = Outcome.of(answer.status_code, answer.headers, answer.content, seen)
            assert_one_of([case["expect"], *case.get("expect_alt", ())], got, streamed)


def assert_one_of(outcomes: list[dict[str, Any]], got: Outcome, streamed: bool) -> None:
    tried = []
    for outcome in outcomes:
        if "passthrough_bytes_equal" in outcome:
            return
        if not streamed:
            outcome = {key: value for key, value in outcome.items() if key not in ONLY_IN_STREAMS}
        missed = faults(outcome, got)
        if not missed:
            return
        tried.append(missed)
    pytest.fail(f"{tried}\ngot {got.status} {got.raw.decode()}")


ONLY_IN_STREAMS = frozenset(
    {"invariants", "indexes", "first_delta_role", "usage_chunk", "every_chunk_has_choice", "sse_error_event"}
)

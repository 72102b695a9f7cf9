from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from proxy.config import BackendConfig
from proxy.doctor.examine import Examination, examine
from proxy.doctor.findings import Finding, SickError
from tests.support.backend import Backend, Reply, body, error, silence, text
from tests.support.models import llama_cpp, model, ollama, serving, vllm
from tests.support.proxy import free_port

PATIENCE = 30.0


async def look(backend: Backend | str, patience: float = PATIENCE, **config: Any) -> Examination:
    url = backend if isinstance(backend, str) else backend.url
    return await examine(BackendConfig(url, **config), patience)


async def sick(backend: Backend | str, patience: float = PATIENCE, **config: Any) -> Finding:
    """The finding that ended the examination."""
    with pytest.raises(SickError) as caught:
        await look(backend, patience, **config)
    finding = caught.value.findings[-1]
    assert finding.level == "bad"
    assert finding.mend
    return finding


def found(examination: Examination, about: str) -> Finding:
    (finding,) = (each for each in examination.findings if each.about == about)
    return finding


async def test_a_llama_cpp_server() -> None:
    with llama_cpp(model(), context=8192) as backend:
        examination = await look(backend)
    assert [(each.about, each.level) for each in examination.findings] == [
        ("reachable", "ok"),
        ("model", "ok"),
        ("chat", "ok"),
        ("server", "ok"),
        ("native tools", "note"),
        ("context", "ok"),
        ("system message", "ok"),
        ("roles", "ok"),
        ("reasoning", "ok"),
    ]
    assert found(examination, "server").said == "llama.cpp b9-x"
    assert found(examination, "context").said == "8,192 tokens"
    assert (examination.model, examination.models) == ("scripted", ["scripted"])
    assert (examination.system_role, examination.facts.native) == (True, False)


async def test_ollama_says_its_version_and_the_context_that_the_model_was_loaded_with() -> None:
    with ollama(model(native=True), tools=True, context=2048) as backend:
        examination = await look(backend)
    assert found(examination, "server").said == "ollama 0.9.1"
    assert found(examination, "native tools").level == "ok"
    context = found(examination, "context")
    assert (context.level, context.said.split(":")[0]) == ("bad", "2,048 tokens")
    assert "OLLAMA_CONTEXT_LENGTH" in context.mend


async def test_vllm_says_its_context_in_the_list_of_models() -> None:
    refusal = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    with vllm(model(refuses_tools=refusal), context=32768) as backend:
        examination = await look(backend)
    assert found(examination, "context").said == "32,768 tokens"
    assert not examination.facts.native


async def test_a_server_that_nobody_knows() -> None:
    with serving(model(native=True)) as backend:
        examination = await look(backend)
    assert found(examination, "server").level == "note"
    assert found(examination, "context").level == "note"
    assert examination.facts.native


async def test_a_server_without_a_list_of_models() -> None:
    with serving(model(), v1__models=error(404, "no such path")) as backend:
        examination = await look(backend)
        named = await look(backend, model="m")
        asked = [request.json.get("model") for request in backend.requests if request.path.endswith("completions")]
    assert (examination.model, examination.models) == (None, [])
    assert found(examination, "model").level == "note"
    assert named.model == "m"
    assert asked[0] is None
    assert asked[-1] == "m"


async def test_the_first_of_several_models_is_taken_unless_one_is_named() -> None:
    entries = [{"id": f"m{number}"} for number in range(12)]
    with serving(model(), v1__models=body({"data": entries})) as backend:
        first, named, odd = [await look(backend, model=name) for name in (None, "m3", "other")]
    assert (first.model, named.model, odd.model) == ("m0", "m3", "other")
    assert "m7 and 4 more" in found(first, "model").said
    assert "--model" in found(first, "model").mend
    assert found(named, "model") == Finding("model", "m3")
    assert found(odd, "model").level == "note"


async def test_a_system_message_may_be_refused_or_dropped() -> None:
    with llama_cpp(model(refuses_system=True)) as backend:
        refused = await look(backend)
    with llama_cpp(model(drops_system=True)) as backend:
        dropped = await look(backend)
    assert not refused.system_role
    assert not dropped.system_role
    assert "System role not supported" in found(refused, "system message").said
    assert "drops" in found(dropped, "system message").said
    assert "system_role = false" in found(dropped, "system message").mend


async def test_where_tokens_are_not_counted_a_system_message_is_taken_to_arrive() -> None:
    with serving(body({"choices": [{"message": {"content": "x"}}]})) as backend:
        examination = await look(backend)
    assert examination.system_role
    assert "cannot be told" in found(examination, "system message").said


async def test_a_strict_template_is_noted() -> None:
    plain = model()

    async def strict(exchange: Any) -> None:
        roles = [each["role"] for each in exchange.request.json["messages"]]
        repeated = any(one == other for one, other in pairwise(roles))
        await (error(500, "Conversation roles must alternate") if repeated else plain)(exchange)

    with llama_cpp(strict) as backend:
        examination = await look(backend)
    assert found(examination, "roles").level == "note"
    assert found(examination, "system message").level == "ok"


async def test_a_template_that_opens_the_reasoning_is_noted() -> None:
    with llama_cpp(model()) as backend:
        backend.routes["/apply-template"] = body({"prompt": "<|user|>Hi<|assistant|><think>\n"})
        examination = await look(backend)
    assert found(examination, "reasoning").level == "note"
    assert not examination.opens_reasoning


@pytest.mark.parametrize(
    ("reply", "opens"), [("Hm.</think>Hello.", True), ("<think>Hm.</think>Hello.", False), ("Hello.", False)]
)
async def test_a_template_that_opens_the_reasoning_without_a_word_is_found_out(reply: str, opens: bool) -> None:
    with serving(text(reply)) as backend:
        examination = await look(backend)
    assert examination.opens_reasoning is opens
    assert found(examination, "reasoning").level == ("note" if opens else "ok")


async def test_nobody_there() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    finding = await sick(url)
    assert url in finding.said
    assert "toolgraft check --backend" in finding.mend


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_missing_or_refused(status: int) -> None:
    with serving(model(), v1__models=error(status, "who are you")) as backend:
        assert "--backend-key-env" in (await sick(backend)).mend
        refused = await sick(backend, key="sk-secret")
        assert backend.requests[-1].header("authorization") == "Bearer sk-secret"
    assert "was refused" in refused.mend
    assert "who are you" in refused.said
    assert "--forward-client-key" not in refused.said + refused.mend
    assert "sk-secret" not in refused.said + refused.mend


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
async def test_a_server_that_takes_the_connection_and_says_nothing(path: str) -> None:
    with serving(model()) as backend:
        backend.routes[path] = silence
        assert "--timeout" in (await sick(backend, 0.2)).mend


async def test_a_page_is_told_in_words() -> None:
    page = body(b"<html><title>It works!</title></html>", 200, "text/html")
    with serving(model(), v1__models=page) as backend:
        finding = await sick(backend)
    assert finding.said.endswith("answered with what is no JSON: an HTML page ('It works!').")


@pytest.mark.parametrize(
    ("reply", "mend"),
    [
        (error(503, "Loading model"), "Wait"),
        (error(429, "slow down"), "Wait"),
        (body(b"<html>hello</html>", 200, "text/html"), "URL"),
        (error(500, "oops"), "URL"),
    ],
)
async def test_a_server_that_is_not_ready_or_something_else(reply: Reply, mend: str) -> None:
    with serving(model(), v1__models=reply) as backend:
        assert mend in (await sick(backend)).mend


@pytest.mark.parametrize(
    ("reply", "mend"),
    [
        (error(404, "model not found"), "--model (one of scripted)"),
        (error(401, "no"), "--backend-key-env"),
        (error(500, "out of memory"), "log"),
        (error(503, "Loading model"), "Wait"),
    ],
)
async def test_a_model_that_cannot_be_chatted_with(reply: Reply, mend: str) -> None:
    with serving(reply) as backend:
        assert mend in (await sick(backend)).mend

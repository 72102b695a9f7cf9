"""What each kind of server says of itself, in the shapes that real ones answer with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from proxy.backends.probes import Facts, NoAnswerError, identity, probe
from proxy.backends.registry import Backend
from proxy.config import BackendConfig, DispatcherName
from proxy.core.model import Json

PLAIN = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


@dataclass
class Server:
    """Answers from a table of ``"METHOD path"``; anything else is a 404 of the kind that FastAPI sends."""

    answers: Mapping[str, tuple[int, Json] | list[tuple[int, Json]]]
    asked: list[tuple[str, Json]] = field(default_factory=list)

    async def ask(self, method: str, url: str, body: Json) -> tuple[int, bytes]:
        path = url.removeprefix("http://h")
        self.asked.append((f"{method} {path}", body))
        found = self.answers.get(f"{method} {path}", (404, {"detail": "Not Found"}))
        status, value = found.pop(0) if isinstance(found, list) else found
        return status, value.encode() if isinstance(value, str) else json.dumps(value).encode()

    async def facts(self, model: str | None = "m", dispatcher: DispatcherName = "auto") -> Facts:
        return await probe(self.ask, Backend.of(BackendConfig(url="http://h", dispatcher=dispatcher)), model)


BACKEND = Backend.of(BackendConfig(url="http://h"))


def props(**changes: Json) -> Json:
    return {
        "default_generation_settings": {"params": {"temperature": 0.8}, "n_ctx": 4096},
        "total_slots": 1,
        "model_alias": "smol",
        "modalities": {"vision": False, "audio": False},
        "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
        "chat_template_caps": {"supports_tool_calls": False, "supports_tools": False, "supports_system_role": True},
        "build_info": "b11549-abc",
    } | changes


def llama_cpp(answer: Json, *prompts: Json) -> Server:
    rendered: list[tuple[int, Json]] = [(200, {"prompt": prompt}) if prompt else (404, "nope") for prompt in prompts]
    return Server({"GET /props?model=m": (200, answer), "POST /apply-template": rendered})


async def test_llama_cpp_tells_whether_its_template_has_tools() -> None:
    facts = await llama_cpp(props(), PLAIN).facts()
    assert facts == Facts(
        "llama.cpp",
        native=False,
        source="llama.cpp b11549-abc: the chat template has no tools, they would be dropped "
        "(chat_template_caps in /props).",
        prefill=True,
        vision=False,
        context=4096,
        version="b11549-abc",
    )
    caps = {"supports_tools": True, "supports_tool_calls": True}
    facts = await llama_cpp(props(chat_template_caps=caps, modalities={"vision": True}), PLAIN).facts()
    assert (facts.native, facts.vision) == (True, True)
    for path in ("/models/Mistral-7B-Q4.gguf", "C:\\models\\Mistral-7B-Q4.gguf", "Mistral-7B-Q4.gguf"):
        assert (await llama_cpp(props(model_path=path), PLAIN).facts()).file == "Mistral-7B-Q4.gguf"
    for half in ({"supports_tools": True}, {"supports_tools": True, "supports_tool_calls": False}, {}):
        assert not (await llama_cpp(props(chat_template_caps=half), PLAIN).facts()).native


async def test_llama_cpp_is_another_with_another_model_or_template() -> None:
    facts = await llama_cpp(props(model_path="/a.gguf"), PLAIN).facts()
    assert facts.identity
    again = llama_cpp(props(model_path="/a.gguf", total_slots=4), PLAIN)
    assert await identity(again.ask, BACKEND, "m") == facts.identity
    for change in ({"model_path": "/b.gguf"}, {"chat_template": "{{ tools }}"}, {"build_info": "b2"}):
        other = llama_cpp(props(**{"model_path": "/a.gguf", **change}), PLAIN)
        assert await identity(other.ask, BACKEND, "m") != facts.identity
    assert await identity(Server({}).ask, BACKEND, "m") != facts.identity
    with pytest.raises(NoAnswerError):
        await identity(Server({"GET /props?model=m": (503, {})}).ask, BACKEND, "m")


@pytest.mark.parametrize(("with_tools", "native"), [(PLAIN, False), (f"# Tools\n{PLAIN}", True), (None, False)])
async def test_an_older_llama_cpp_is_asked_what_it_makes_of_a_tool(with_tools: Json, native: bool) -> None:
    server = llama_cpp(props(chat_template_caps=None), PLAIN, with_tools)
    assert (await server.facts()).native is native
    bodies = [body for path, body in server.asked if path == "POST /apply-template"]
    assert ["tools" in body for body in bodies] == [False, True]
    assert [body["model"] for body in bodies] == ["m", "m"]


@pytest.mark.parametrize(
    ("prompt", "template", "opened"),
    [
        (f"{PLAIN}<think>\n", "", True),
        (f"{PLAIN}<think>\n\n</think>\n\n", "", False),
        (PLAIN, "{% if add_generation_prompt %}<think>{% endif %}", False),
        (None, "{{ x }}{% if add_generation_prompt %}{{ '<|assistant|><think>\\n' }}{% endif %}", True),
        (
            None,
            "{% if add_generation_prompt %}{% if off %}<think></think>{% else %}<think>{% endif %}{% endif %}",
            False,
        ),
        (None, "{{ '<think>' + m.reasoning + '</think>' }}{% if add_generation_prompt %}{{ 'A' }}{% endif %}", False),
        (None, "{{ x }}", False),
        (None, None, False),
    ],
)
async def test_reasoning_that_the_template_opens_is_asked_for_as_text(
    prompt: Json, template: Json, opened: bool
) -> None:
    facts = await llama_cpp(props(chat_template=template), prompt).facts()
    assert facts.starts_in_reasoning is opened
    assert facts.fields == ({"reasoning_format": "none"} if opened else {})


async def test_a_name_that_is_no_unicode_is_asked_for_all_the_same() -> None:
    server = Server({"GET /props?model=m%3F": (200, props())})
    assert (await server.facts("m\ud800")).kind == "llama.cpp"


async def test_a_router_is_asked_for_the_model_and_without_one_it_does_not_say() -> None:
    router = {"role": "router", "model_path": "none", "build_info": "b8771"}
    server = Server({"GET /props?model=org%2Fa%20b": (200, props()), "GET /props": (200, router)})
    assert (await server.facts("org/a b")).kind == "llama.cpp"
    with pytest.raises(NoAnswerError) as caught:
        await server.facts(None)
    assert (caught.value.facts.kind, caught.value.facts.native) == ("llama.cpp", False)


async def test_a_server_that_loads_its_model_has_not_answered() -> None:
    loading = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
    with pytest.raises(NoAnswerError):
        await Server({"GET /props?model=m": (503, loading)}).facts()


async def test_an_imitation_of_the_endpoint_is_not_llama_cpp() -> None:
    server = Server({"GET /props?model=m": (200, {"total_slots": 1, "chat_template": "{{ tools }}"})})
    assert (await server.facts(dispatcher="xml")).kind == "unknown"


SHOWN = {"details": {"family": "qwen2"}, "template": "{{ .Prompt }}", "model_info": {"qwen2.context_length": 32768}}


@pytest.mark.parametrize(
    ("capabilities", "native", "vision"),
    [(["completion"], False, False), (["tools", "completion"], True, False), (["completion", "vision"], False, True)],
)
async def test_ollama_tells_what_a_model_is_capable_of(capabilities: list[str], native: bool, vision: bool) -> None:
    server = Server({"POST /api/show": (200, {**SHOWN, "capabilities": capabilities})})
    facts = await server.facts("qwen:0.5b")
    assert (facts.kind, facts.native, facts.vision) == ("ollama", native, vision)
    assert (facts.prefill, facts.starts_in_reasoning, facts.context) == (False, False, None)
    assert server.asked[-1] == ("POST /api/show", {"model": "qwen:0.5b"})


@pytest.mark.parametrize(("template", "native"), [("{{ .Prompt }}", False), ("{{ if .Tools }}…{{ end }}", True)])
async def test_an_older_ollama_shows_its_template(template: str, native: bool) -> None:
    facts = await Server({"POST /api/show": (200, {**SHOWN, "template": template})}).facts()
    assert (facts.kind, facts.native, facts.vision) == ("ollama", native, None)


async def test_ollama_moves_the_reasoning_of_thinking_models_away_and_leaves_that_of_others() -> None:
    opened = {**SHOWN, "template": "{{ .Prompt }}<|assistant|><think>\n"}
    thinking = Server({"POST /api/show": (200, {**opened, "capabilities": ["completion", "thinking"]})})
    assert not (await thinking.facts()).starts_in_reasoning
    other = Server({"POST /api/show": (200, {**opened, "capabilities": ["completion"]})})
    assert (await other.facts()).starts_in_reasoning


async def test_a_model_that_ollama_does_not_know_is_no_answer() -> None:
    with pytest.raises(NoAnswerError) as caught:
        await Server({"POST /api/show": (404, {"error": "model 'm:latest' not found"})}).facts()
    assert caught.value.facts.kind == "ollama"


def lmstudio_model(key: str, **changes: Json) -> Json:
    return {
        "type": "llm",
        "key": key,
        "loaded_instances": [],
        "max_context_length": 131072,
        "capabilities": {"vision": False, "trained_for_tool_use": True},
    } | changes


@pytest.mark.parametrize(
    ("model", "native", "vision", "context"),
    [
        ("a/tools", True, False, None),
        ("b/plain", False, True, 4096),
        ("mine", False, True, 4096),
        ("old", False, None, None),
    ],
)
async def test_lmstudio_lists_its_models(model: str, native: bool, vision: bool | None, context: int | None) -> None:
    plain = lmstudio_model(
        "b/plain",
        loaded_instances=[{"id": "mine", "config": {"context_length": 4096}}],
        capabilities={"vision": True, "trained_for_tool_use": False},
    )
    listed = {"models": [lmstudio_model("a/tools"), plain, lmstudio_model("old", capabilities=None)]}
    facts = await Server({"GET /api/v1/models": (200, listed)}).facts(model)
    assert (facts.kind, facts.native, facts.vision, facts.context) == ("lmstudio", native, vision, context)


async def test_a_model_that_lmstudio_does_not_list_is_no_answer() -> None:
    with pytest.raises(NoAnswerError) as caught:
        await Server({"GET /api/v1/models": (200, {"models": [lmstudio_model("a")]})}).facts()
    assert caught.value.facts.kind == "lmstudio"


CHAT = "POST /v1/chat/completions"


def usage(tokens: int) -> tuple[int, Json]:
    return 200, {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}


NO_TOOLS = {
    "error": {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}
}


@pytest.mark.parametrize(
    ("without", "with_tool", "native"),
    [
        (usage(20), usage(81), True),
        (usage(20), usage(20), False),
        ((200, {"choices": []}), (200, {"choices": []}), False),
        ((200, {"choices": []}), usage(81), False),
        ((200, "data: odd"), (200, {"usage": None}), False),
        (usage(20), (400, NO_TOOLS), False),
    ],
)
async def test_another_server_is_tried_with_a_tool(without: Json, with_tool: Json, native: bool) -> None:
    server = Server({CHAT: [without, with_tool]})
    facts = await server.facts()
    assert (facts.kind, facts.native) == ("unknown", native)
    bodies = [body for path, body in server.asked if path == CHAT]
    assert [(body["max_tokens"], body["model"], "tools" in body) for body in bodies] == [
        (1, "m", False),
        (1, "m", True),
    ]


@pytest.mark.parametrize(
    "answers",
    [[(401, {"error": {"message": "no key"}})], [usage(20), (500, "oops")], [usage(20), (400, {"error": "x"})]],
)
async def test_an_error_that_says_nothing_of_tools_is_no_answer(answers: Json) -> None:
    with pytest.raises(NoAnswerError) as caught:
        await Server({CHAT: answers}).facts()
    assert (caught.value.facts.kind, caught.value.facts.native) == ("unknown", False)


def listed(owner: str, **fields: Json) -> tuple[int, Json]:
    """A list of models that names its owner, the model asked for last."""
    entries = [{"id": name, "object": "model", "owned_by": owner, **fields} for name in ("other", "m")]
    return 200, {"object": "list", "data": entries}


@pytest.mark.parametrize(
    ("models", "kind", "context", "version"),
    [
        (listed("vllm", root="org/m", max_model_len=8192), "vllm", 8192, "0.19.1"),
        (listed("sglang", max_model_len=4096), "sglang", 4096, None),
        (listed("me", permissions=[]), "llama-cpp-python", None, None),
        (listed("me"), "unknown", None, None),
        (listed("openai"), "unknown", None, None),
        (listed("library"), "unknown", None, None),
    ],
)
async def test_some_servers_name_themselves_as_owner_of_their_models(
    models: Json, kind: str, context: int | None, version: str | None
) -> None:
    paths = {"GET /v1/models": models, "GET /version": (200, {"version": "0.19.1"}), CHAT: [usage(20), usage(81)]}
    facts = await Server(paths).facts()
    assert (facts.kind, facts.context, facts.version, facts.native) == (kind, context, version, True)
    facts = await Server(paths).facts(dispatcher="xml")
    assert (facts.kind, facts.native) == (kind, False)


async def test_a_server_is_known_by_its_list_even_where_trying_fails() -> None:
    with pytest.raises(NoAnswerError) as caught:
        await Server({"GET /v1/models": listed("sglang"), CHAT: [(500, "oops")]}).facts()
    assert caught.value.facts.kind == "sglang"


@pytest.mark.parametrize("answer", [(503, "busy"), (401, {"error": "no"}), (200, {"data": [1]}), (200, {"data": []})])
async def test_a_list_of_models_that_tells_nothing_is_none(answer: Json) -> None:
    facts = await Server({"GET /v1/models": answer, CHAT: [usage(20), usage(20)]}).facts()
    assert (facts.kind, facts.native) == ("unknown", False)


@pytest.mark.parametrize("dispatcher", ["xml", "native"])
async def test_where_the_dispatcher_is_set_nothing_is_generated_to_find_out(dispatcher: DispatcherName) -> None:
    server = Server({CHAT: [usage(20), usage(81)]})
    facts = await server.facts(dispatcher=dispatcher)
    assert (facts.kind, facts.native) == ("unknown", False)
    assert CHAT not in [path for path, _ in server.asked]


@pytest.mark.parametrize(
    "answer", [[], None, 5, "text", {"models": "x"}, {"models": [1]}, {"models": [{}]}, {"usage": 1}]
)
async def test_answers_of_any_shape_are_survived(answer: Json) -> None:
    everywhere = dict.fromkeys(
        ("GET /props?model=m", "POST /api/show", "GET /api/v1/models", "GET /v1/models", CHAT), (200, answer)
    )
    facts = await Server(everywhere).facts()
    assert (facts.kind, facts.native) == ("unknown", False)

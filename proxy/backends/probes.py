"""The questions that tell what a backend can do with a model: to its own endpoints, else by trying.

Of servers that are sent ``tools`` and have no use for them some say so, and some drop them silently (llama.cpp whose
chat template has none): what a reply looks like tells nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias
from urllib.parse import quote

from proxy.backends.registry import Backend
from proxy.core.dialects import THINK
from proxy.core.model import NOTHING, Json, nothing
from proxy.wire import jsonio
from proxy.wire.upstream_errors import is_capability_error

Kind: TypeAlias = Literal["llama.cpp", "ollama", "lmstudio", "vllm", "sglang", "llama-cpp-python", "unknown"]

Ask: TypeAlias = Callable[[str, str, Json], Awaitable[tuple[int, bytes]]]
"""A request (method, URL, JSON body or None) and its answer (status, body)."""

_USER = [{"role": "user", "content": "Hi"}]
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_time",
            "description": "Tell the time.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


@dataclass(frozen=True, slots=True)
class Facts:
    """How a backend serves a model. ``source`` is a sentence for a person: how it is known.

    ``native``: the server itself turns ``tools`` into calls for this model. ``starts_in_reasoning``: the text of a
    reply begins inside ``<think>``, since the chat template opened it. ``prefill``: a final assistant message is gone
    on with. ``vision``: the model sees images; None = unknown. ``context`` is in tokens. ``file`` is what the server
    has loaded, whatever it is asked for. ``fields`` go into each request whose reply is read as text, so that the
    server hands on what the model wrote. ``identity`` differs when the server serves another model or template than
    before; "" = it does not show.
    """

    kind: Kind
    native: bool
    source: str
    starts_in_reasoning: bool = False
    prefill: bool = False
    vision: bool | None = None
    context: int | None = None
    version: str | None = None
    file: str | None = None
    fields: Mapping[str, Json] = field(default_factory=nothing)
    identity: str = field(default="", compare=False)


class NoAnswerError(Exception):
    """The backend did not say. ``facts`` is what may be assumed until it does."""

    def __init__(self, source: str, kind: Kind = "unknown") -> None:
        super().__init__(source)
        self.facts = Facts(kind, native=False, source=source)


async def probe(ask: Ask, backend: Backend, model: str | None) -> Facts:
    """The facts about ``model`` on ``backend``.

    Trying costs two tokens; it is left out where the dispatcher is set, since only ``auto`` needs to know.
    Raises ``NoAnswerError``, and whatever ``ask`` raises.
    """
    for known in (_llama_cpp, _ollama, _lmstudio):
        facts = await known(ask, backend, model)
        if facts is not None:
            return facts
    listed = await _listed(ask, backend, model)
    return await _try(ask, backend, model, listed) if backend.config.dispatcher == "auto" else listed


async def _llama_cpp(ask: Ask, backend: Backend, model: str | None) -> Facts | None:
    """llama.cpp's ``/props``. The model's name is for its router mode and for llama-swap; a single server ignores it.

    ``build_info`` tells it from servers that only imitate the endpoint.
    """
    props = await _props(ask, backend, model)
    if "build_info" not in props and "chat_template_caps" not in props:
        return None
    if props.get("role") == "router":
        raise NoAnswerError("llama.cpp is in router mode, and the request names no model.", "llama.cpp")
    prompt = await _render(ask, backend, model)
    caps = props.get("chat_template_caps")
    if isinstance(caps, dict):
        native = caps.get("supports_tools") is True and caps.get("supports_tool_calls") is True
        how = "chat_template_caps in /props"
    else:  # builds before the capabilities were told
        native = prompt is not None and await _render(ask, backend, model, tools=_TOOLS) not in (None, prompt)
        how = "/apply-template with and without tools"
    version = _text(props.get("build_info"))
    template = _text(props.get("chat_template")) or ""
    opened = _is_open(prompt) if prompt is not None else _opens(template)
    handles = "handles tools" if native else "has no tools, they would be dropped"
    return Facts(
        "llama.cpp",
        native,
        f"llama.cpp {version or 'of unknown version'}: the chat template {handles} ({how}).",
        starts_in_reasoning=opened,
        prefill=True,
        vision=_truth(_member(props, "modalities", "vision")),
        context=_count(_member(props, "default_generation_settings", "n_ctx")),
        version=version,
        file=_file(_text(props.get("model_path"))),
        # Where the server understands the template it moves reasoning into a field of its own, but leaves no trace when
        # there was none: then the answer could not be told from reasoning. As text it comes with its opener.
        fields={"reasoning_format": "none"} if opened else NOTHING,
        identity=_identity(props),
    )


async def identity(ask: Ask, backend: Backend, model: str | None) -> str:
    """What ``Facts.identity`` would be now. Raises ``NoAnswerError``, and whatever ``ask`` raises."""
    return _identity(await _props(ask, backend, model))


async def _props(ask: Ask, backend: Backend, model: str | None) -> dict[str, Json]:
    name = f"?model={quote(model, safe='', errors='replace')}" if model else ""
    return _object(await ask("GET", f"{backend.server_root}/props{name}", None))


def _identity(props: Mapping[str, Json]) -> str:
    shown = [props.get(name) for name in ("model_path", "model_alias", "build_info", "chat_template")]
    return hashlib.sha256(jsonio.dumps(shown)).hexdigest()


async def _render(ask: Ask, backend: Backend, model: str | None, tools: Json = None) -> str | None:
    """The prompt that the chat template makes of a short conversation, None if the server does not say."""
    body = {"model": model, "messages": _USER, "tools": tools}
    said = {key: value for key, value in body.items() if value is not None}
    return _text(_object(await ask("POST", f"{backend.server_root}/apply-template", said)).get("prompt"))


async def _ollama(ask: Ask, backend: Backend, model: str | None) -> Facts | None:
    """Ollama's ``/api/show``. A thinking model's reasoning is moved into a field of its own by the server."""
    status, body = answer = await ask("POST", f"{backend.server_root}/api/show", {"model": model or ""})
    shown = _object(answer)
    if status == 404 and "not found" in (_text(_value(body, "error")) or ""):
        raise NoAnswerError(f"Ollama does not know the model {model}.", "ollama")
    if "details" not in shown and "capabilities" not in shown:
        return None
    template = _text(shown.get("template")) or ""
    said = shown.get("capabilities")
    # Versions before the capabilities were told: the template shows whether it takes tools.
    capabilities = said if isinstance(said, list) else ["tools"] if ".Tools" in template else []
    native = "tools" in capabilities
    return Facts(
        "ollama",
        native,
        f"Ollama: the model is {'' if native else 'not '}capable of tools (/api/show).",
        starts_in_reasoning="thinking" not in capabilities and _opens(template),
        vision="vision" in capabilities if isinstance(said, list) else None,
    )


async def _lmstudio(ask: Ask, backend: Backend, model: str | None) -> Facts | None:
    """LM Studio's own list of models. One that was not trained to use tools gets a text protocol from the server."""
    listed = _object(await ask("GET", f"{backend.server_root}/api/v1/models", None)).get("models")
    if not isinstance(listed, list) or not all(isinstance(each, dict) and "key" in each for each in listed):
        return None
    for entry in listed:
        instances = [each for each in entry.get("loaded_instances") or () if isinstance(each, dict)]
        if model in (entry["key"], *(each.get("id") for each in instances)):
            native = _member(entry, "capabilities", "trained_for_tool_use") is True
            return Facts(
                "lmstudio",
                native,
                f"LM Studio: the model was {'' if native else 'not '}trained for tool use (/api/v1/models).",
                vision=_truth(_member(entry, "capabilities", "vision")),
                context=next((_count(_member(each, "config", "context_length")) for each in instances), None),
            )
    raise NoAnswerError(f"LM Studio does not list the model {model}.", "lmstudio")


async def _listed(ask: Ask, backend: Backend, model: str | None) -> Facts:
    """Whom the list of models names as their owner: some servers name themselves. Nothing there is told of tools."""
    status, body = await ask("GET", f"{backend.api_root}/models", None)
    data = _value(body, "data") if status == 200 else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    entry = next((entry for entry in entries if entry.get("id") == model), entries[0] if entries else {})
    context = _count(entry.get("max_model_len"))
    match entry:
        case {"owned_by": "vllm"}:
            version = _text(_object(await ask("GET", f"{backend.server_root}/version", None)).get("version"))
            return Facts("vllm", False, f"vLLM {version or 'of unknown version'}.", context=context, version=version)
        case {"owned_by": "sglang"}:
            return Facts("sglang", False, "SGLang.", context=context)
        case {"owned_by": "me", "permissions": _}:
            return Facts("llama-cpp-python", False, "llama-cpp-python.")
    return Facts("unknown", False, "No endpoint of a server that is known answered.")


async def _try(ask: Ask, backend: Backend, model: str | None, known: Facts) -> Facts:
    """Two requests for one token, without and with a tool: a tool that makes the prompt no longer was dropped."""
    body = {"model": model, "messages": _USER, "max_tokens": 1}
    said = {key: value for key, value in body.items() if value is not None}
    status, text = await ask("POST", backend.chat_url, said)
    if status != 200:
        raise NoAnswerError(f"The backend answered a short request with status {status}.", known.kind)
    without = _prompt_tokens(text)
    status, text = await ask("POST", backend.chat_url, {**said, "tools": _TOOLS})
    if status != 200 and is_capability_error(text.decode("utf-8", "replace")):
        return replace(known, source="The backend refused a request with a tool.")
    if status != 200:
        raise NoAnswerError(f"The backend answered a short request with a tool with status {status}.", known.kind)
    tokens = _prompt_tokens(text)
    if tokens is None or without is None:
        return replace(known, source="The backend does not count tokens: it cannot be told.")
    if tokens <= without:
        return replace(known, source="A tool did not lengthen the prompt: the backend drops tools.")
    return replace(known, native=True, source=f"A tool lengthened the prompt from {without} to {tokens} tokens.")


def _is_open(prompt: str) -> bool:
    """The prompt ends in an opener of reasoning."""
    return prompt.rstrip().endswith(THINK.opener)


def _opens(template: str) -> bool:
    """The chat template (Jinja's or Go's) opens reasoning at its very end, and does not close it in any case."""
    end = template[max(template.rfind("add_generation_prompt"), 0) :] if "add_generation_prompt" in template else ""
    return _is_open(template) or (THINK.opener in end and THINK.closer not in end)


def _prompt_tokens(body: bytes) -> int | None:
    return _count(_member(_value(body), "usage", "prompt_tokens"))


def _object(answer: tuple[int, bytes]) -> dict[str, Json]:
    """The JSON object of a 200; an empty one for anything else. Raises ``NoAnswerError`` while the server loads."""
    status, body = answer
    if status in (429, 502, 503, 504):
        raise NoAnswerError(f"The backend is not ready (status {status}).")
    value = _value(body) if status == 200 else None
    return value if isinstance(value, dict) else {}


def _value(body: bytes, *path: str) -> Json:
    try:
        return _member(jsonio.loads(body), *path)
    except ValueError:
        return None


def _member(value: Json, *path: str) -> Json:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _file(path: str | None) -> str | None:
    return re.split(r"[/\\]", path)[-1] if path else None


def _truth(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None

"""The examination: short questions to the backend itself, the costliest of them for one token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.backends.probes import Facts, NoAnswerError, probe
from proxy.backends.registry import Backend
from proxy.config import BackendConfig
from proxy.core.dialects import THINK
from proxy.core.errors import UpstreamError
from proxy.core.model import Json
from proxy.doctor.findings import Finding, SickError
from proxy.transport.upstream import Upstream
from proxy.wire import jsonio
from proxy.wire.upstream_errors import KEY_REFUSED, describe, upstream_error

_MAX_ANSWER = 16 * 1024 * 1024
_MOST_NAMES = 8
_LOW_CONTEXT = 4096
"""Tokens; tools alone take hundreds, and some servers cut what does not fit without a word."""

_MOST_THOUGHT = 256
"""Tokens in which a model that thinks has done so about a greeting."""

_SHORT = "Be brief."
_LONG = "Be brief. " + "Say what matters, and say it in plain words. " * 4

_MORE_CONTEXT = {
    "llama.cpp": "Start llama-server with a larger -c.",
    "ollama": "Set OLLAMA_CONTEXT_LENGTH for the server.",
    "lmstudio": "Load the model with a larger context.",
}


@dataclass(frozen=True, slots=True)
class Examination:
    """What is known before any tool was called. ``models`` are the names that the server lists.

    ``model`` is the one that was asked (None: the server names none), ``system_role`` whether its chat template takes a
    system message. ``opens_reasoning``: the template does, though the server does not say so.
    """

    findings: Sequence[Finding]
    models: Sequence[str]
    model: str | None
    facts: Facts
    system_role: bool = True
    opens_reasoning: bool = False


class _Questions:
    """Sends questions about one model, and tells what went wrong."""

    def __init__(self, upstream: Upstream, backend: Backend) -> None:
        self._upstream = upstream
        self._backend = backend
        self.findings: list[Finding] = []

    async def ask(self, method: str, url: str, body: Json) -> tuple[int, bytes]:
        """The status and the body of the answer. Raises ``UpstreamError`` when there is none."""
        key = self._backend.config.key
        headers = [("authorization", f"Bearer {key}")] if key else []
        data = b"" if body is None else jsonio.dumps(body)
        async with await self._upstream.open(method, url, headers=headers, body=data) as reply:
            return reply.status, await reply.read(_MAX_ANSWER)

    async def json(self, method: str, url: str, body: Json = None) -> Json:
        """The JSON of a 200. Raises ``UpstreamError`` for all else."""
        status, data = await self.ask(method, url, body)
        if status != 200:
            error = upstream_error(status, [("content-type", "application/json")], data, url)
            error.message = error.message.removesuffix(KEY_REFUSED)  # the mend here is another
            raise error
        try:
            return jsonio.loads(data)
        except ValueError:
            said = describe(data.decode("utf-8", "replace").strip())
            raise UpstreamError(f"{url} answered with what is no JSON: {said}.") from None

    async def prompt_tokens(self, model: str | None, *messages: tuple[str, str]) -> int | None:
        """How many tokens ``messages`` (role, text) are; None where they are not counted. Raises ``UpstreamError``."""
        answer = await self._chat(model, messages, 1)
        usage = answer.get("usage") if isinstance(answer, dict) else None
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return count if isinstance(count, int) else None

    async def text(self, model: str | None, *messages: tuple[str, str]) -> str:
        """What the model says to ``messages``. Raises ``UpstreamError``."""
        answer = await self._chat(model, messages, _MOST_THOUGHT)
        try:
            said = answer["choices"][0]["message"]["content"]
        except (LookupError, TypeError):
            return ""
        return said if isinstance(said, str) else ""

    async def _chat(self, model: str | None, messages: Sequence[tuple[str, str]], tokens: int) -> Json:
        said = [{"role": role, "content": text} for role, text in messages]
        asked = {"messages": said, "max_tokens": tokens, "temperature": 0, **({"model": model} if model else {})}
        return await self.json("POST", self._backend.chat_url, asked)

    def found(self, about: str, said: str) -> None:
        """All is well."""
        self.findings.append(Finding(about, said))

    def note(self, about: str, said: str, mend: str = "") -> None:
        """Something to know."""
        self.findings.append(Finding(about, said, "note", mend))

    def bad(self, about: str, said: str, mend: str) -> None:
        """Something to mend."""
        self.findings.append(Finding(about, said, "bad", mend))

    def stop(self, about: str, said: str, mend: str) -> SickError:
        """The error that ends the examination."""
        self.bad(about, said, mend)
        return SickError(self.findings)


async def examine(config: BackendConfig, patience: float) -> Examination:
    """Look at the backend, which has ``patience`` seconds for each answer.

    Raises ``SickError`` when it cannot be asked at all, and ``ConfigError`` when its URL is none.
    """
    backend = Backend.of(config)
    async with Upstream(connect_timeout=min(patience, 10.0), total_timeout=patience) as upstream:
        questions = _Questions(upstream, backend)
        models, entries = await _models(questions, backend)
        model = _choose(questions, config, models)
        await _chat(questions, model, models)
        facts = await _facts(questions, backend, model)
        await _context(questions, backend, facts, model, entries)
        system_role = await _template(questions, model)
        opens_reasoning = await _reasoning(questions, model, facts)
    return Examination(questions.findings, models, model, facts, system_role, opens_reasoning)


async def _models(questions: _Questions, backend: Backend) -> tuple[list[str], list[dict[str, Json]]]:
    """The names of the models and what the server says of each. Without such a list, none."""
    url = f"{backend.api_root}/models"
    try:
        listed = await questions.json("GET", url)
    except UpstreamError as error:
        if error.status in (404, 405, 501):
            questions.note("reachable", f"The server answers, but has no list of models at {url}.")
            return [], []
        raise questions.stop("reachable", error.message, _way_out(error, backend)) from None
    data = listed.get("data") if isinstance(listed, dict) else listed
    entries = [each for each in data or () if isinstance(each, dict) and isinstance(each.get("id"), str)]
    names = [each["id"] for each in entries]
    questions.found("reachable", f"It answers at {backend.api_root} and lists {_counted(names)}.")
    return names, entries


def _way_out(error: UpstreamError, backend: Backend) -> str:
    """What to do about an ``error`` that leaves nothing else to ask."""
    if error.status in (401, 403):
        if backend.config.key:
            return "The key was refused. Put a valid one into the variable that --backend-key-env names."
        return "The server wants a key. Put it into an environment variable and name that with --backend-key-env."
    if error.status in (429, 503) and error.code != "backend_unreachable":
        return "The server is busy or still loads its model. Wait, then check again."
    if error.status == 504:
        return "The server takes the connection but says nothing. If it is only slow, give it more with --timeout."
    return "See that the server runs and that the URL is that of its API: toolgraft check --backend http://HOST:PORT/v1"


def _choose(questions: _Questions, config: BackendConfig, models: Sequence[str]) -> str | None:
    """The model to ask for: the configured one, else the first of the list."""
    if config.model is not None:
        if models and config.model not in models:
            questions.note(
                "model",
                f"{config.model}, which is not among those that the server lists: {_named(models)}.",
                "If that is a mistake, name another with --model.",
            )
        else:
            questions.found("model", config.model)
        return config.model
    if not models:
        questions.note("model", "The server names none; requests go without.", "Name one with --model if it wants one.")
        return None
    if len(models) == 1:
        questions.found("model", models[0])
    else:
        questions.note("model", f"{models[0]}, the first of {_named(models)}.", "Name another with --model.")
    return models[0]


async def _chat(questions: _Questions, model: str | None, models: Sequence[str]) -> None:
    """See that the model says anything at all. Raises ``SickError`` if not."""
    try:
        await questions.prompt_tokens(model, ("user", "Hi"))
    except UpstreamError as error:
        mend = {
            401: "The key may list the models but not use them. Name another with --backend-key-env.",
            403: "The key may list the models but not use them. Name another with --backend-key-env.",
            404: f"Name a model with --model{f' (one of {_named(models)})' if models else ''}, and see that the URL is "
            "that of the API.",
            429: "The server is busy. Wait, then check again.",
            503: "The server is busy or still loads its model. Wait, then check again.",
            504: "The server takes the request but says nothing. If it is only slow, give it more with --timeout.",
        }.get(error.status, "The server's own log may say why. Chat with it first, without Toolgraft.")
        raise questions.stop("chat", error.message, mend) from None
    questions.found("chat", "It answers a short message.")


async def _facts(questions: _Questions, backend: Backend, model: str | None) -> Facts:
    """What kind of server it is, and whether it calls tools by itself."""
    try:
        facts = await probe(questions.ask, backend, model)
    except NoAnswerError as error:
        facts = error.facts
    except UpstreamError as error:
        facts = Facts("unknown", native=False, source=error.message)
    version = facts.version
    if facts.kind == "ollama":
        version = await _ollama_version(questions, backend)
    if facts.kind == "unknown":
        questions.note("server", "Not one that is known by its own endpoints.")
    else:
        questions.found("server", f"{facts.kind} {version or ''}".strip())
    if facts.native:
        questions.found("native tools", facts.source)
    else:
        questions.note("native tools", facts.source, "None needed: Toolgraft puts the tools into the prompt.")
    return facts


async def _ollama_version(questions: _Questions, backend: Backend) -> str | None:
    try:
        told = await questions.json("GET", f"{backend.server_root}/api/version")
    except UpstreamError:
        return None
    return told.get("version") if isinstance(told, dict) else None


async def _context(
    questions: _Questions, backend: Backend, facts: Facts, model: str | None, entries: Sequence[dict[str, Json]]
) -> None:
    """How many tokens fit: as the server says, if it does."""
    context = facts.context
    if context is None and facts.kind == "ollama":
        context = await _ollama_context(questions, backend, model)
    if context is None:  # vLLM and SGLang say it in the list of models
        context = next((each.get("max_model_len") for each in entries if each["id"] == model), None)
    if not isinstance(context, int):
        questions.note("context", "The server does not say how many tokens fit.")
    elif context < _LOW_CONTEXT:
        questions.bad(
            "context",
            f"{context:,} tokens: tools alone may take half of that.",
            _MORE_CONTEXT.get(facts.kind, "Start the server with a larger context."),
        )
    else:
        questions.found("context", f"{context:,} tokens")


async def _ollama_context(questions: _Questions, backend: Backend, model: str | None) -> Json:
    """What the model was loaded with, which the short message above has seen to."""
    try:
        running = await questions.json("GET", f"{backend.server_root}/api/ps")
    except UpstreamError:
        return None
    for each in (running.get("models") if isinstance(running, dict) else None) or ():
        if isinstance(each, dict) and model is not None and model in (each.get("name"), each.get("model")):
            return each.get("context_length")
    return None


async def _template(questions: _Questions, model: str | None) -> bool:
    """What the chat template takes. Returns whether a system message is among it."""
    system_role = True
    try:
        short = await questions.prompt_tokens(model, ("system", _SHORT), ("user", "Hi"))
        long = await questions.prompt_tokens(model, ("system", _LONG), ("user", "Hi"))
    except UpstreamError as error:
        system_role = False
        said = f"It refuses a system message: {error.message}"
    else:
        if short is not None and long is not None and long <= short:
            system_role = False
            said = "It drops the system message: a longer one did not make the prompt longer."
        elif short is None or long is None:
            questions.found("system message", "It takes one; whether the model sees it cannot be told.")
        else:
            questions.found("system message", "It reaches the model.")
    if not system_role:
        questions.note("system message", said, "system_role = false puts it into the first user message; see below.")
    try:
        await questions.prompt_tokens(model, ("user", "Hi"), ("user", "there"))
    except UpstreamError:
        questions.note("roles", "They must alternate.", "None needed: Toolgraft sees to it.")
    else:
        questions.found("roles", "They need not alternate.")
    return system_role


async def _reasoning(questions: _Questions, model: str | None, facts: Facts) -> bool:
    """Whether a reply closes a reasoning that it did not open, so that the template must have; unless that is known."""
    if facts.starts_in_reasoning:
        questions.note("reasoning", "Each reply begins in it.", "None needed: Toolgraft tells it from the answer.")
        return False
    try:
        thought, closer, _ = (await questions.text(model, ("user", "Hi"))).partition(THINK.closer)
    except UpstreamError as error:
        questions.note("reasoning", f"It cannot be told: {error.message}")
        return False
    if closer and THINK.opener not in thought:
        mend = "starts_in_reasoning = true tells it from the answer; see below."
        questions.note("reasoning", "Each reply begins in it, though the server does not say so.", mend)
        return True
    questions.found("reasoning", "Replies do not begin in it.")
    return False


def _counted(names: Sequence[str]) -> str:
    return "1 model" if len(names) == 1 else f"{len(names)} models"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

"""What a backend's error response means, and how it is told to the client.

The backend's own words reach the user; the status stays where it says something to a client: a 4xx stays a 4xx (SDKs
do not send those again), a 5xx with JSON stays that 5xx. HTML pages, empty and garbled answers become 502. A prompt
that does not fit is always a 400 with ``context_length_exceeded``: agents look for it to shorten their history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from proxy.core.errors import UpstreamError
from proxy.core.model import Json
from proxy.wire import jsonio

MAX_WORDS = 2000
"""Characters of a backend's message that are passed on. Some servers repeat the whole request in it."""

MAX_QUOTE = 200
"""Characters of an answer that is not an error object, as shown in a message."""

PASSED_HEADERS = frozenset({"retry-after", "retry-after-ms", "x-should-retry"})

_TOOL_USE = r"(?:tools\b|tool[ _-]?(?:call|us)|function[ _-]?call)"

_CAPABILITY = re.compile(
    r"(?:tools|tool_choice) param requires --jinja"  # llama.cpp started without --jinja
    r"|cannot use tools with stream|unsupported param: (?:tools|tool_choice|parallel_tool_calls)"  # llama.cpp, older
    r"|enable-auto-tool-choice|requires --tool-call-parser"  # vLLM
    r"|(?:tools|tool_choice|parallel_tool_calls) field not supported"  # llamafile
    r"|grammar is not supported"  # TGI with grammars turned off: its tools are grammars
    rf"|no endpoints found that support {_TOOL_USE}"  # OpenRouter
    r"|not support param(?:eter)?s: \[[^]]*['\"]tools?['\"_]"  # LiteLLM
    rf"|(?:does ?n[o']t|do not|not)(?: currently)? support(?: native)? [`'\"]?{_TOOL_USE}"  # Ollama and many more
    rf"|{_TOOL_USE}\w*[`'\"]? (?:is|are) not (?:currently )?(?:supported|enabled|available)"  # Gemini, Groq
    r"|tool[ _]choice.{0,20} not supported",  # vLLM, older: "required"
    re.IGNORECASE,
)

_CONTEXT = re.compile(
    r"exceed_context_size_error|exceeds? the available context size"  # llama.cpp
    r"|larger than the (?:max )?context size"  # llama.cpp, older; llamafile
    r"|context_length_exceeded|maximum context length|longer than the maximum model length"  # OpenAI, vLLM
    r"|exceeds? (?:the )?(?:model'?s )?(?:maximum )?context (?:window|length)"  # llama-cpp-python, Ollama
    r"|longer than the model'?s context length"  # SGLang
    r"|context the overflows|context size has been exceeded|n_keep .{0,20}>= ?n_ctx|reached context length"  # LM Studio
    r"|`inputs` must have less than|`inputs` tokens \+|greater than max_seq_len"  # TGI, TabbyAPI
    r"|prompt (?:is )?too long|input is too long",
    re.IGNORECASE,
)

_HOPELESS = re.compile(
    r"jinja|roles must alternate|raise_exception|chat template|parser for this template|template error"
    r"|image input is not supported|failed to parse (?:tools|messages)|missing tool function"
    r"|validation errors?\b|cannot use both|json\.exception|can only concatenate|has no attribute",
    re.IGNORECASE,
)
"""Said with a 5xx, but about the request: sending it again is no use."""

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_HEAD = 4096  # characters of a page in which its title is looked for
_HTML = re.compile(r"\s*(?:<!doctype html|<html|<head|<body)", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model.{0,200}(?:not found|does not exist|not exist|unknown|not loaded)|no such model", re.IGNORECASE | re.DOTALL
)

KEY_REFUSED = (
    " (The backend refused the key. Name the environment variable that holds its key with --backend-key-env, or pass "
    "on the clients' own keys with --forward-client-key.)"
)
"""What the message of a 401 or 403 ends with: the mend for a proxy that serves."""

_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "unavailable_error": 503,
    "overloaded_error": 503,
}
"""For error events, which have no HTTP status of their own."""


def is_capability_error(text: str) -> bool:
    """The backend refuses ``tools``: the same request without them would do. ``text`` is its message or whole body.

    Servers say it with 400, 404 or 500, so only the words tell.
    """
    return _CAPABILITY.search(text) is not None


def upstream_error(status: int, headers: Iterable[tuple[str, str]], body: bytes, url: str) -> UpstreamError:
    """The error for a response that is not a reply. ``url`` is named where the backend's own words do not suffice."""
    passed = tuple(
        (name.lower(), value) for name, value in headers if name.lower() in PASSED_HEADERS and value.isprintable()
    )
    where = _without_password(url)
    text = body.decode("utf-8", "replace").strip()
    readable = _is_plain(text)
    try:
        said = _read_words(jsonio.loads(text))
        readable = True
    except ValueError:
        said = None
    if said is not None:
        error = _with_words(said, status, where, passed)
    else:
        said = _Words(f"The backend at {where} answered {describe(text)} with status {status}.")
        error = _with_words(said, status if readable or 400 <= status < 500 else 502, "", passed)
    error.answered = status
    return error


def event_error(payload: Json) -> UpstreamError:
    """The error for an error event within a stream, or an error object in the place of a reply."""
    said = _read_words(payload) or _Words(f"The backend sent an error: {shorten(jsonio.dumps(payload).decode())}")
    return _with_words(said, said.status or _STATUS_OF_TYPE.get(said.type or "", 502), "", ())


def is_error(payload: Json) -> bool:
    """A JSON value that reports an error where a reply or a chunk should be."""
    return isinstance(payload, dict) and (bool(payload.get("error")) or payload.get("object") == "error")


class _Words(Struct, frozen=True):
    """What an error body says; ``status`` if it holds one."""

    message: str
    type: str | None = None
    code: str | None = None
    param: str | None = None
    status: int | None = None


def _with_words(said: _Words, status: int, where: str, headers: tuple[tuple[str, str], ...]) -> UpstreamError:
    message, code, kind, retryable = said.message, said.code, said.type, None
    about = f"{message} {kind} {code}"
    if status < 400:
        status = said.status or 502
    if _CONTEXT.search(about) and status not in (401, 403, 429):
        status, code, kind = 400, "context_length_exceeded", "invalid_request_error"
    elif status in (401, 403):
        message += KEY_REFUSED
    elif status == 404 and _NO_MODEL.search(about):
        code = "model_not_found"
    elif status == 404 and where:
        message = f"{message} (The backend answered 404 at {where}.)"
    elif status >= 500 and _HOPELESS.search(about):
        retryable = False
    if kind is None and status < 500:
        kind = "invalid_request_error"
    return UpstreamError(
        message, status=status, type=kind, code=code, param=said.param, headers=headers, retryable=retryable
    )


def _read_words(payload: Json) -> _Words | None:
    """The message of an error body in any of the known shapes; None if it has none."""
    match payload:
        case {"error": dict(inner)}:
            return _read_words(inner) or _Words(shorten(jsonio.dumps(inner).decode()))
        case {"error": str(message)} | {"message": str(message)} if message:  # Ollama, TGI | vLLM, and inner objects
            return _of_fields(message, payload)
        case {"detail": str(message)} if message:  # FastAPI
            return _Words(message[:MAX_WORDS])
        case {"detail": list(faults)} if faults:
            return _Words("; ".join(_fault(fault) for fault in faults)[:MAX_WORDS])
        case {"detail": dict(inner)}:
            return _read_words(inner)
    return None


def _of_fields(message: str, fields: Mapping[str, Json]) -> _Words:
    if message.startswith("{"):  # Ollama passes on the error body of the engine behind it as text
        try:
            inner = _read_words(jsonio.loads(message))
        except ValueError:
            inner = None
        if inner is not None:
            return inner
    code, kind, param = fields.get("code"), fields.get("type", fields.get("error_type")), fields.get("param")
    status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else None
    return _Words(
        message[:MAX_WORDS],
        kind if isinstance(kind, str) else None,
        code if isinstance(code, str) and status is None else None,
        param if isinstance(param, str) else None,
        status if status is not None and 400 <= status < 600 else None,
    )


def _fault(fault: Json) -> str:
    """One of FastAPI's validation errors: ``messages.0.role: Input should be 'user'``."""
    match fault:
        case {"msg": str(words), "loc": list(path)}:
            return f"{'.'.join(str(step) for step in path if step != 'body')}: {words}"
        case {"msg": str(words)}:
            return words
    return jsonio.dumps(fault).decode()


def _is_plain(text: str) -> bool:
    """Words for a person: not a page, not binary, not broken JSON."""
    return bool(text) and text[0] not in "<{[" and "\ufffd" not in text


def describe(text: str) -> str:
    """What a body is that says nothing of its own accord, in a few words."""
    if not text:
        return "nothing"
    if _HTML.match(text):
        title = _TITLE.search(text, 0, _HEAD)
        return f"an HTML page ({shorten(title[1] or title[2] or '')!r})" if title else "an HTML page"
    return repr(shorten(text))


def shorten(text: str) -> str:
    """``text`` on one line, cut to ``MAX_QUOTE`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTE else line[:MAX_QUOTE] + "…"


def _without_password(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url)

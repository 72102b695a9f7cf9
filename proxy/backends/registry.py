"""A configured model server as the rest of the proxy sees it, and how its URL is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, urlsplit

from proxy.config import BackendConfig
from proxy.core.errors import ConfigError
from proxy.core.grammar import grammar
from proxy.core.prompt import PromptOptions
from proxy.measured import ANY_MODEL, examples

CHAT_PATH = "/chat/completions"

_API_ROOT = re.compile(r"/(?:v\d+|openai)$")
_NOT_IN_A_URL = re.compile(r"[\s\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Backend:
    """One model server.

    ``name`` is its own among all servers: what is known of it is kept under that. ``api_root`` is what the OpenAI paths
    hang under (``…/v1``), ``chat_url`` where chat requests go, ``server_root`` where the server's own paths are
    (``/props``, ``/api/show``). None of them ends in a slash. ``config`` is what the user said of it, ``examples`` by
    model whether a worked example was measured to help.
    """

    name: str
    api_root: str
    chat_url: str
    server_root: str
    config: BackendConfig
    examples: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, config: BackendConfig, name: str = "backend", url: str | None = None) -> Backend:
        """The backend that ``config`` describes, at another ``url`` if one is given.

        Raises ``ConfigError`` when its URL or dialect cannot be used.
        """
        try:
            grammar(config.dialect)
        except ValueError as error:
            raise ConfigError(f"--dialect: {error}.") from None
        api_root, chat_url = backend_url(config.url if url is None else url)
        measured = examples(api_root) if config.prompt_example == "auto" else {}
        return cls(name, api_root, chat_url, _parent(api_root), config, measured)

    @classmethod
    def replicas(cls, config: BackendConfig) -> tuple[Backend, ...]:
        """The servers that ``config`` describes, each with a name of its own. Raises ``ConfigError``."""
        urls = (config.url, *config.replicas)
        name = backend_name(config)
        if len(urls) == 1:
            return (cls.of(config, name),)
        return tuple(cls.of(config, f"{name}#{number}", url) for number, url in enumerate(urls, 1))

    def prompt(self, model: str | None) -> PromptOptions:
        """How ``model`` is told of its tools."""
        match self.config.prompt_example:
            case "auto":
                example = self.examples.get(
                    model or ANY_MODEL, self.examples.get(ANY_MODEL, self.config.prompt.example)
                )
            case said:
                example = said == "on"
        told = self.config.prompt
        return told if told.example == example else replace(told, example=example)


def backend_name(config: BackendConfig) -> str:
    """What a backend is called: as it was configured, else by the host and port of its URL. Raises ``ConfigError``."""
    return config.name or urlsplit(backend_url(config.url)[0]).netloc


def backend_url(text: str, *, key_goes_by: str = "--backend-key-env") -> tuple[str, str]:
    """The API root and the chat URL that a user means by ``text``.

    A path ending in ``v1`` (any number) or ``openai`` is the API root; one ending in ``/chat/completions`` is the chat
    URL as it is, query included; any other gets ``/v1``. Trailing slashes do not matter. ``key_goes_by`` is the setting
    that names the variable with the key, as whoever wrote the URL has to write it.
    Raises ``ConfigError``; the message never repeats what may be a password.
    """
    text = text.strip()
    if not text:
        raise ConfigError("The backend URL is empty. Give one like http://127.0.0.1:8080/v1.")
    if _NOT_IN_A_URL.search(text):
        raise ConfigError("The backend URL holds a space or a control character. Remove it.")
    parts = _split(text, key_goes_by)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    if path.endswith(CHAT_PATH):
        query = f"?{parts.query}" if parts.query else ""
        return origin + path.removesuffix(CHAT_PATH).rstrip("/"), origin + path + query
    if parts.query:
        raise ConfigError(
            f"The backend URL {text!r} has a query. Leave it out, or give the whole URL that ends in {CHAT_PATH}?…"
        )
    root = origin + path if _API_ROOT.search(path) else origin + path + "/v1"
    return root, root + CHAT_PATH


def _split(text: str, key_goes_by: str) -> SplitResult:
    """``text`` in its parts, checked. Raises ``ConfigError``."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"The backend URL cannot be read: {error}. Give one like http://127.0.0.1:8080/v1.") from None
    if "@" in parts.netloc or (not parts.netloc and "@" in text):
        raise ConfigError(
            "The backend URL holds a user name or password. Put the key into an environment variable and name it "
            f"with {key_goes_by}."
        )
    if "://" not in text:
        raise ConfigError(f"The backend URL {text!r} has no scheme. Did you mean http://{text.lstrip('/')} ?")
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"The backend URL {text!r} must begin with http:// or https://.")
    if not host:
        raise ConfigError(f"The backend URL {text!r} names no host. Give one like http://127.0.0.1:8080/v1.")
    if parts.fragment:
        raise ConfigError(f"The backend URL {text!r} has a fragment. Leave out the # and what follows it.")
    return parts


def _parent(url: str) -> str:
    """``url`` without the last segment of its path; an origin stays as it is."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rpartition('/')[0].rstrip('/')}"

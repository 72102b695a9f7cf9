"""What the proxy was started with: frozen values, checked before a port is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from proxy.core.errors import ConfigError
from proxy.core.prompt import PromptOptions

DispatcherName: TypeAlias = Literal["auto", "native", "xml"]
LogFormat: TypeAlias = Literal["human", "json"]
Constrain: TypeAlias = Literal["off", "required", "always"]
PromptExample: TypeAlias = Literal["auto", "on", "off"]

DISPATCHERS: tuple[str, ...] = get_args(DispatcherName)
LOG_FORMATS: tuple[str, ...] = get_args(LogFormat)
CONSTRAINS: tuple[str, ...] = get_args(Constrain)
PROMPT_EXAMPLES: tuple[str, ...] = get_args(PromptExample)

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8787


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """One backend and how to talk to it.

    ``url`` is where it is, ``replicas`` where there is more of the same. ``models`` are the names, or shell-style
    patterns of names, that go to it, ``aliases`` further names (asked: sent); ``default``: so does every other name.
    An only backend gets every name. ``per_model`` has by name or pattern of what is sent the configurations that hold
    for single models instead of this one.

    ``model`` is sent instead of whatever the client asked for; None sends the client's own. ``key`` goes to the backend
    as ``Authorization: Bearer``. ``system_role`` False: the chat template knows no system message. ``prompt``: how
    the model is told of its tools, and ``prompt_example`` whether with a worked example of a call (``auto``: where
    ``toolgraft check`` measured that it helps). ``dialect`` is the one way of writing calls that is read, or ``auto``;
    ``starts_in_reasoning`` says that the prompt ends in an opening think mark, None: find out. ``constrain`` says when
    the backend is kept, by its own means, from writing anything but valid calls. ``reask`` is how many times the model
    is told what was wrong with its calls and asked again.
    """

    url: str
    dispatcher: DispatcherName = "auto"
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    forward_client_key: bool = False
    system_role: bool = True
    prompt: PromptOptions = field(default_factory=PromptOptions)
    prompt_example: PromptExample = "auto"
    dialect: str = "auto"
    starts_in_reasoning: bool | None = None
    constrain: Constrain = "required"
    reask: int = 1
    name: str = ""
    replicas: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    default: bool = False
    per_model: tuple[tuple[str, BackendConfig], ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the server needs to know.

    ``backends`` is in most cases one. ``port`` 0 picks a free one. ``max_body`` is in bytes: images travel as base64 inside the JSON, so it is generous.
    ``keep_alive`` is the seconds of silence after which a stream gets a comment, and after which the HTTP status goes
    out at the latest; load balancers and clients give up between 60 and 100. ``connect_timeout`` is in seconds; there
    is no read timeout, since a slow machine may take many minutes over a long prompt. ``shutdown_timeout`` is how many
    seconds open streams may take to end after a signal.
    """

    backends: tuple[BackendConfig, ...]
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    log_format: LogFormat = "human"
    max_body: int = 64 * 1024 * 1024
    keep_alive: float = 15.0
    connect_timeout: float = 10.0
    shutdown_timeout: int = 30


def key_from_environment(
    variable: str | None, environ: Mapping[str, str], named_by: str = "--backend-key-env"
) -> str | None:
    """The key held by the environment ``variable``, None when no variable is named. ``named_by`` is what names it.

    Raises ``ConfigError`` when the variable is missing, empty, or holds what cannot stand in a header.
    """
    if variable is None:
        return None
    key = environ.get(variable, "").strip()
    if not key:
        raise ConfigError(f"The environment variable {variable} ({named_by}) is not set. Export it first.")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(
            f"The key in {variable} ({named_by}) holds characters that cannot be sent in an HTTP header."
        )
    return key

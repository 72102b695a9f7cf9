"""What the proxy was started with: frozen values, checked before a port is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from proxy.core.errors import ConfigError
from proxy.core.prompt import PromptOptions

DispatcherName: TypeAlias = Literal["auto", "native", "xml"]
LogFormat: TypeAlias = Literal["human", "json"]
InspectorMode: TypeAlias = Literal["auto", "on", "off"]
Constrain: TypeAlias = Literal["off", "required", "always"]
PromptExample: TypeAlias = Literal["auto", "on", "off"]

DISPATCHERS: tuple[str, ...] = get_args(DispatcherName)
LOG_FORMATS: tuple[str, ...] = get_args(LogFormat)
INSPECTORS: tuple[str, ...] = get_args(InspectorMode)
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
    is told what was wrong with its calls and asked again. ``max_concurrent`` requests are worked on at a time, None for
    any number, by all replicas together; ``max_queue`` more wait for their turn.
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
    max_concurrent: int | None = None
    max_queue: int = 100
    name: str = ""
    replicas: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    default: bool = False
    per_model: tuple[tuple[str, BackendConfig], ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the server needs to know.

    ``backends`` is in most cases one. ``port`` 0 picks a free one, on which ``workers`` processes serve, each with its
    share of the limits. ``client_keys`` are the hashes of the keys that are let in, by the names of their owners; none:
    everybody is. ``may_reload`` are the owners who may have the settings read again. ``cors_origins`` are the web pages
    that are let in, ``*`` any. ``allowed_hosts`` are names by which browsers may ask for the proxy although no key is
    wanted. ``rate_limit`` is the requests that each client may make in a minute.

    ``max_body`` is in bytes: images travel as base64 inside the JSON, so it is generous. ``max_messages`` and
    ``max_tools`` are for one request. All times are in seconds. ``keep_alive`` is the silence after which a stream gets
    a comment, and after which the HTTP status goes out at the latest; load balancers and clients give up between 60 and
    100. ``body_timeout`` is the longest silence of a client that sends a request. ``connect_timeout`` is for making a
    connection to a backend, ``first_byte_timeout`` for the first byte of its reply, ``idle_timeout`` for each further
    one, ``total_timeout`` for all of it; None is no limit, since a slow machine may take many minutes over a long
    prompt. ``shutdown_timeout`` is how long open streams may take to end after a signal.

    ``inspector``: whether ``/inspector`` shows the last exchanges (``auto``: where only this machine can see it, or a
    key is wanted), of which ``inspector_keep`` are kept, and ``inspector_bytes`` of what was said in them. Owners of
    keys see their own, those named by ``inspector_sees_all`` everybody's. It needs to be the only worker.

    ``log_content``: the log has what was said, too. ``traces``: requests are told to OpenTelemetry.
    """

    backends: tuple[BackendConfig, ...]
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    workers: int = 1
    client_keys: Mapping[str, str] = field(default_factory=dict)
    may_reload: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    rate_limit: int | None = None
    max_body: int = 64 * 1024 * 1024
    max_messages: int = 100_000
    max_tools: int = 2_000
    keep_alive: float = 15.0
    body_timeout: float = 60.0
    connect_timeout: float = 10.0
    first_byte_timeout: float | None = None
    idle_timeout: float | None = None
    total_timeout: float | None = None
    shutdown_timeout: int = 30
    inspector: InspectorMode = "auto"
    inspector_keep: int = 500
    inspector_bytes: int = 32 * 1024 * 1024
    inspector_sees_all: tuple[str, ...] = ()
    log_format: LogFormat = "human"
    log_content: bool = False
    traces: bool = False


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
        raise ConfigError(f"The key in {variable} ({named_by}) holds characters that cannot be sent in an HTTP header.")
    return key

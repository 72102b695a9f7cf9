"""The configuration, made of the file, the environment and the flags, and checked as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proxy.access import hash_key
from proxy.backends.registry import backend_url
from proxy.backends.routing import MisroutedError, Routing
from proxy.config import BackendConfig, Config, key_from_environment
from proxy.core.errors import ConfigError
from proxy.core.grammar import grammar
from proxy.settings import lines
from proxy.settings.document import Document
from proxy.settings.environment import own_prefix
from proxy.settings.keys import BACKEND, BACKEND_PREFIX, MODEL, SERVER, SERVER_PREFIX, TALK
from proxy.settings.sources import Setting, Sources, from_file

if TYPE_CHECKING:
    from proxy.core.template import ProtocolTemplate

DEFAULT_FILE = Path("toolgraft.toml")

_URL, _KEY_ENV = (next(key for key in BACKEND if key.name == name) for name in ("url", "key_env"))
_NOTHING = Document("", Path(), "", {})


def settings_file(given: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file of settings: the one that is ``given``, else ``$TOOLGRAFT_CONFIG``, else ``toolgraft.toml`` if there."""
    if given is None and environ.get("TOOLGRAFT_CONFIG"):
        given = Path(environ["TOOLGRAFT_CONFIG"]).expanduser()
    return given or (DEFAULT_FILE if DEFAULT_FILE.is_file() else None)


def names_backend(environ: Mapping[str, str], file: Path | None) -> bool:
    """Whether there may be a backend without any flag."""
    return file is not None or bool(environ.get(_URL.variable(BACKEND_PREFIX)))


def load(flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None = None) -> Config:
    """The configuration. A flag comes before the environment, and that before the file.

    A backend whose URL is a flag or in the environment takes the place of all that the file has: the key of one must
    not go to another. Raises ``ConfigError`` for whatever cannot be used.
    """
    sources = Sources(flags, environ)
    document = _NOTHING if file is None else Document.read(file)
    hints = {key.name: f"It belongs into a [[backend]]: write it below that line, `{key.name}`." for key in BACKEND}
    document.refuse_unknown(document.data, (), [*(key.name for key in SERVER), "backend"], hints)
    server: dict[str, Any] = {}
    for key in SERVER:
        setting = sources.by_hand(key, [SERVER_PREFIX]) or from_file(key, document, document.data, ())
        if setting is not None:
            server[key.name] = setting.value
            if key.name == "client_key_env":
                keys_from_environment = _client_keys(server.pop(key.name), environ, setting.origin)
                server["client_keys"] = {**server.get("client_keys", {}), **keys_from_environment}
    backends = tuple(_backends(sources, document))
    try:
        Routing(backends)
    except MisroutedError as error:
        raise ConfigError(f"{_blamed(error, sources, document)}{error.message}") from None
    config = Config(backends, **server)
    if config.workers > 1:
        _check_workers(config)
    return config


def _blamed(error: MisroutedError, sources: Sources, document: Document) -> str:
    """What a message about the backends begins with: the line to change, nothing where no file has a part in it."""
    if not document.name or sources.by_hand(_URL, [BACKEND_PREFIX]):
        return ""
    table = _tables(document)[error.backend]
    path = [*table.path, error.key] if error.key in table.values else table.path
    return f"{document.where(path)}: "


def _check_workers(config: Config) -> None:
    """Raise ``ConfigError`` for what several workers cannot do together."""
    if config.inspector == "on":
        raise ConfigError(
            'The inspector needs one worker, which sees everything: leave out `workers`, or `inspector = "on"`.'
        )
    for backend in config.backends:
        if backend.max_concurrent is not None and backend.max_concurrent < config.workers:
            raise ConfigError(
                f"Of {backend.max_concurrent} requests at a time (`max_concurrent`), not each of {config.workers} "
                f"workers can have one. Leave `workers` at {backend.max_concurrent} or less."
            )


def _client_keys(variable: str, environ: Mapping[str, str], origin: str) -> dict[str, str]:
    """The hashes of the keys that an environment variable holds."""
    held = key_from_environment(variable, environ, origin) or ""
    keys = [key for key in map(str.strip, held.split(",")) if key]
    if not keys:
        raise ConfigError(f"The environment variable {variable} ({origin}) holds no key.")
    names = [variable] if len(keys) == 1 else [f"{variable}-{number}" for number in range(1, len(keys) + 1)]
    return {name: hash_key(key.encode()) for name, key in zip(names, keys, strict=True)}


@dataclass(frozen=True, slots=True)
class _Table:
    """A ``[[backend]]`` of a file, and where it stands there."""

    document: Document
    path: lines.Path
    values: Mapping[str, Any]

    @property
    def where(self) -> str:
        return self.document.where(self.path)


def _backends(sources: Sources, document: Document) -> list[BackendConfig]:
    tables = _tables(document)
    if sources.by_hand(_URL, [BACKEND_PREFIX]):
        tables = [_Table(_NOTHING, (), {})]
    if not tables:
        raise ConfigError(
            "There is no backend. Give the URL of a model server with --backend, or write it into a file: "
            '[[backend]] and below it url = "http://127.0.0.1:8080".'
        )
    if len(tables) == 1:
        return [_backend(sources, [BACKEND_PREFIX], tables[0])]
    for key in BACKEND:
        unclear = sources.by_hand(key, [BACKEND_PREFIX])
        if unclear is not None:
            raise ConfigError(
                f"{unclear.origin} does not say which of the {len(tables)} backends it is for. Write `{key.name}` into "
                f"the file, or set {key.variable(BACKEND_PREFIX + 'NAME_')} with the backend's name."
            )
    return [_backend(replace(sources, flags={}), [], table) for table in tables]


def _tables(document: Document) -> list[_Table]:
    """The ``[[backend]]`` tables; a single ``[backend]`` will do too."""
    given = document.data.get("backend", [])
    if isinstance(given, dict):
        return [_Table(document, ("backend",), given)]
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ConfigError(f"{document.where(['backend'])}: a backend is a table. Begin it with the line [[backend]].")
    return [_Table(document, ("backend", place), each) for place, each in enumerate(given)]


def _backend(sources: Sources, prefixes: Sequence[str], table: _Table) -> BackendConfig:
    """The backend of ``table``. What the environment says of it alone, by its name, comes before ``prefixes``."""
    hints = {
        key.name: f"It concerns the whole proxy: write `{key.name}` above the first [[backend]]." for key in SERVER
    }
    hints["urls"] = "`url` takes a list as well."
    table.document.refuse_unknown(table.values, table.path, [*(key.name for key in BACKEND), "model"], hints)
    name = table.values.get("name")
    if isinstance(name, str):
        prefixes = [own_prefix(name), *prefixes]
    found: dict[str, Setting] = {}
    for key in BACKEND:
        setting = sources.by_hand(key, prefixes) or from_file(key, table.document, table.values, table.path)
        if setting is not None:
            found[key.name] = setting
    if "url" not in found:
        raise ConfigError(f'{table.where}: this backend has no url. Write one below: url = "http://127.0.0.1:8080".')
    config = _config(found, sources.environ)
    return replace(config, per_model=tuple(_per_model(config, table)))


def _config(found: Mapping[str, Setting], environ: Mapping[str, str]) -> BackendConfig:
    """The backend that the settings describe, but for its single models."""
    urls = found["url"]
    for url in urls.value:
        try:
            backend_url(url, key_goes_by=_key_setting(urls.origin, environ))
        except ConfigError as error:
            raise ConfigError(f"{urls.origin}: {error.message}") from None
    first, *replicas = urls.value
    plain = ("name", "models", "aliases", "default", "forward_client_key", "max_concurrent", "max_queue")
    fields = {name: found[name].value for name in plain if name in found}
    if "only_model" in found:
        fields["model"] = found["only_model"].value
    if "key_env" in found:
        fields["key"] = key_from_environment(found["key_env"].value, environ, found["key_env"].origin)
    return _talking(BackendConfig(first, replicas=tuple(replicas), **fields), found)


def _key_setting(origin: str, environ: Mapping[str, str]) -> str:
    """Where the key's variable is named, in the words of the place where the URL is from."""
    if origin == _URL.flag:
        return _KEY_ENV.flag or _KEY_ENV.name
    return origin.removesuffix("URL") + "KEY_ENV" if origin in environ else f'{_KEY_ENV.name} = "VARIABLE"'


def _talking(config: BackendConfig, found: Mapping[str, Setting]) -> BackendConfig:
    """``config`` with what was ``found`` on how models are talked to."""
    prompt: dict[str, Any] = {}
    if "prompt_style" in found:
        prompt["style"] = found["prompt_style"].value
    if "prompt_template" in found:
        prompt["template"] = _template(found["prompt_template"])
    if "dialect" in found:
        try:
            grammar(found["dialect"].value)
        except ValueError as error:
            raise ConfigError(f"{found['dialect'].origin}: {error}.") from None
    fields = {key.name: found[key.name].value for key in TALK if key.name in found}
    fields.pop("prompt_style", None)
    fields.pop("prompt_template", None)
    return replace(config, prompt=replace(config.prompt, **prompt), **fields)


def _per_model(config: BackendConfig, table: _Table) -> Iterator[tuple[str, BackendConfig]]:
    """What holds for single models of a backend, by name or pattern."""
    document, path = table.document, [*table.path, "model"]
    given = table.values.get("model", [])
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ConfigError(
            f"{document.where(path)}: `model` begins a table for single models, with the line [[backend.model]]. To "
            'ask for one model whatever the client asks for, write only_model = "…".'
        )
    for place, values in enumerate(given):
        at = [*path, place]
        hints = {key.name: "It holds for the whole backend: move it above [[backend.model]]." for key in BACKEND}
        document.refuse_unknown(values, at, [key.name for key in MODEL], hints)
        settings = {key.name: from_file(key, document, values, at) for key in MODEL}
        found = {name: setting for name, setting in settings.items() if setting is not None}
        if "match" not in found:
            raise ConfigError(
                f'{document.where(at)}: this table does not say for which models it is. Write match = "…" below.'
            )
        own = _talking(config, found)
        for pattern in found["match"].value:
            yield pattern, own


def _template(setting: Setting) -> ProtocolTemplate:
    from proxy.template_file import read_template  # imported late: it takes a moment

    try:
        return read_template(setting.value)
    except ConfigError as error:
        raise ConfigError(f"{setting.origin}: {error.message}") from None

"""Which backend a model's name leads to: the name itself, then a pattern, then the default."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from proxy.backends.patterns import Patterns, is_pattern
from proxy.backends.registry import Backend, backend_name
from proxy.config import BackendConfig
from proxy.core.errors import ClientError, ConfigError

MOST_NAMED = 30
"""Names and patterns that an error lists."""

MOST_SHOWN = 100
"""Characters of a client's name for a model that an error repeats."""


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """Where requests for a model go. There is one object for each way that a backend is talked to.

    ``backend`` is the backend's place in the configuration, ``replicas`` are the servers that it consists of, under the
    configuration that holds for the model: its ``model`` is sent instead of the name that was asked for.
    """

    backend: int
    name: str
    replicas: tuple[Backend, ...]

    @property
    def config(self) -> BackendConfig:
        """What the user said of the backend and the model."""
        return self.replicas[0].config

    def sent(self, model: str | None) -> str | None:
        """The name that the backend is asked for when a client asks for ``model``."""
        return self.config.model or model


class MisroutedError(ConfigError):
    """What is wrong about the table of backends.

    ``backend`` is the place in it of the one to change, ``key`` the setting of it, "" where none is at fault.
    """

    def __init__(self, message: str, backend: int, key: str = "") -> None:
        super().__init__(message)
        self.backend = backend
        self.key = key


class Routing:
    """The table of routes.

    Raises ``ConfigError``: a ``MisroutedError`` for backends that cannot be told apart or are never chosen.
    """

    def __init__(self, configs: Sequence[BackendConfig]) -> None:
        if not configs:
            raise ConfigError("There is no backend. Give the URL of a model server with --backend.")
        for place, config in enumerate(configs):
            _check_alone(place, config)
        self._configs = configs
        self.backends = [_route(place, config) for place, config in enumerate(configs)]
        """Each backend as it is talked to about models of which nothing more is said."""
        self.aliases: dict[str, Route] = {}
        """The routes of names that the backends do not know."""
        self._per_model = [
            Patterns((pattern, _route(place, own)) for pattern, own in config.per_model)
            for place, config in enumerate(configs)
        ]
        for place, config in enumerate(configs):
            for asked, sent in config.aliases.items():
                self.aliases[asked] = _route(place, replace(self._on(place, sent).config, model=sent))
        self._names = Patterns((name, place) for place, config in enumerate(configs) for name in config.models)
        self._default = self._find_default()
        if len(configs) > 1:
            self._check_together()

    @property
    def looks_at_names(self) -> bool:
        """Whether a model's name makes any difference."""
        return len(self.backends) > 1 or bool(self.aliases)

    def find(self, model: str | None) -> Route:
        """The route of requests for ``model`` (None: for none). Raises ``ClientError`` when there is none."""
        route = self.lookup(model)
        if route is not None:
            return route
        known = "The names and patterns that lead to one: " + ", ".join(self._shown_names())
        if model is None:
            raise ClientError(f"The request names no model, and no backend is the default. {known}.", param="model")
        raise ClientError(
            f"There is no model {model[:MOST_SHOWN]!r}. {known}.", status=404, code="model_not_found", param="model"
        )

    def lookup(self, model: str | None) -> Route | None:
        """The same without an error."""
        if model is not None and model in self.aliases:
            return self.aliases[model]
        place = None if model is None else self._names.find(model)
        if place is None:
            place = self._default
        return None if place is None else self._on(place, model)

    def names(self, backend: int) -> list[str]:
        """The names, not patterns, under which a backend's models are configured to be asked for."""
        config = self._configs[backend]
        return [name for name in (*config.models, *config.aliases) if not is_pattern(name)]

    def _on(self, place: int, model: str | None) -> Route:
        """How a backend is talked to about ``model``."""
        sent = self._configs[place].model or model
        own = None if sent is None else self._per_model[place].find(sent)
        return own or self.backends[place]

    def _find_default(self) -> int | None:
        if len(self._configs) == 1:
            return 0
        marked = [place for place, config in enumerate(self._configs) if config.default]
        if len(marked) > 1:
            names = " and ".join(self.backends[place].name for place in marked)
            raise MisroutedError(
                f"The backends {names} are both marked as the default. Leave `default` with one of them.",
                marked[1],
                "default",
            )
        return marked[0] if marked else None

    def _check_together(self) -> None:
        """Raise ``MisroutedError`` when the backends are in each other's way."""
        seen: dict[str, str] = {}
        named: set[str] = set()
        for route, config in zip(self.backends, self._configs, strict=True):
            if route.name in named:
                raise MisroutedError(
                    f"Two backends are called {route.name}. Give each a `name` of its own.",
                    route.backend,
                    "name" if config.name else "url",
                )
            named.add(route.name)
            if not (config.models or config.aliases or route.backend == self._default):
                raise MisroutedError(
                    f'No model leads to the backend {route.name}. Name what it serves with models = ["..."], or mark '
                    "it with default = true.",
                    route.backend,
                )
            for name in dict.fromkeys((*config.models, *config.aliases)):
                if name in seen and not is_pattern(name):
                    raise MisroutedError(
                        f"The model {name!r} leads to both {seen[name]} and {route.name}. Choose one.",
                        route.backend,
                        "models" if name in config.models else "aliases",
                    )
                seen[name] = route.name

    def _shown_names(self) -> Iterator[str]:
        names = list(dict.fromkeys(name for config in self._configs for name in (*config.models, *config.aliases)))
        yield from names[:MOST_NAMED]
        if len(names) > MOST_NAMED:
            yield f"and {len(names) - MOST_NAMED} more"


def _route(place: int, config: BackendConfig) -> Route:
    return Route(place, backend_name(config), Backend.replicas(config))


def _check_alone(place: int, config: BackendConfig) -> None:
    """Raise ``MisroutedError`` when a backend's own settings contradict each other."""
    if config.model is not None and config.aliases:
        raise MisroutedError(
            f"A backend that is always asked for {config.model!r} (`only_model`) has no use for `aliases`. Leave out "
            "one.",
            place,
            "aliases",
        )
    both = [name for name in config.aliases if name in config.models]
    if both:
        raise MisroutedError(
            f"The name {both[0]!r} stands in `models` and in `aliases` of one backend. Leave out one.", place, "aliases"
        )
    wild = [name for name in config.aliases if is_pattern(name)]
    if wild:
        raise MisroutedError(f"The alias {wild[0]!r} is a pattern. An alias is one name.", place, "aliases")

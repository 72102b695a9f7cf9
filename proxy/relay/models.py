"""The list of models, in OpenAI's shape whatever the backends' are."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.backends.capability import Capabilities
from proxy.backends.routing import Route, Routing
from proxy.core.errors import UpstreamError
from proxy.core.model import Json
from proxy.wire import jsonio

Model = dict[str, Json]


def read_models(body: bytes) -> list[Model]:
    """The entries of a ``/models`` answer: OpenAI's ``data``, or a bare list. Raises ``UpstreamError`` for others."""
    try:
        payload = jsonio.loads(body)
    except ValueError:
        payload = None
    entries = payload.get("data") if isinstance(payload, dict) else payload
    if not isinstance(entries, list):
        raise UpstreamError("The backend's list of models cannot be read.", code="backend_unreadable", answered=200)
    return [model(entry) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def model(entry: Model) -> Model:
    """``entry`` with the members that strict clients require; its own stay."""
    return {"object": "model", "created": 0, "owned_by": "backend", **entry}


def with_first(models: Sequence[Model], name: str | None) -> list[Model]:
    """``models`` with the one called ``name`` in front, added if the backend did not tell of it."""
    if name is None:
        return list(models)
    named = [entry for entry in models if entry["id"] == name] or [model({"id": name})]
    return named + [entry for entry in models if entry["id"] != name]


def merged(routing: Routing, lists: Sequence[Sequence[Model] | None], capabilities: Capabilities) -> list[Model]:
    """Every name that can be asked for, once, each with what is known of it as its member ``toolgraft``.

    ``lists`` are what the backends told, None for one that did not. What a backend serves under a name that leads to
    another, or nowhere, is left out; names that are configured, aliases say, are added.
    """
    found: dict[str, Model] = {}
    for route, listed in zip(routing.backends, lists, strict=True):
        told = {str(entry["id"]): entry for entry in listed or ()}
        for name in (*told, *routing.names(route.backend)) if listed is not None else ():
            leads = routing.lookup(name)
            if name not in found and leads is not None and leads.backend == route.backend:
                entry = told.get(name) or told.get(leads.sent(name) or "") or {}
                about = _about(leads, name, capabilities, only=len(told) == 1)
                found[name] = model({**entry, "id": name, "toolgraft": about})
    return list(found.values())


def _about(route: Route, name: str, capabilities: Capabilities, *, only: bool) -> Model:
    """Where a model is served, in which mode and how that is known, since when in seconds.

    What is known of any name holds for a model that is the backend's ``only`` one.
    """
    about: Model = {"backend": route.name}
    if route.config.dispatcher != "auto":
        return {**about, "mode": route.config.dispatcher, "source": "configured"}
    for replica in route.replicas:
        known = capabilities.known_of(replica, route.sent(name), any_name=only)
        if known is not None:
            mode = "native" if known.facts.native else "xml"
            return {**about, "mode": mode, "source": known.facts.source, "age": round(known.age)}
    return about


def models_body(models: Sequence[Model]) -> bytes:
    """The answer to ``GET /v1/models``."""
    return jsonio.dumps({"object": "list", "data": list(models)})

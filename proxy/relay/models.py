"""The list of models, in OpenAI's shape whatever the backend's is."""

from __future__ import annotations

from collections.abc import Sequence

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
        raise UpstreamError("The backend's list of models cannot be read.", code="backend_unreadable")
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


def models_body(models: Sequence[Model]) -> bytes:
    """The answer to ``GET /v1/models``."""
    return jsonio.dumps({"object": "list", "data": list(models)})

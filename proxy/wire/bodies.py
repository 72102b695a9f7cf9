"""A client's request body as JSON, and members of it with their types checked. For every surface alike."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.core.errors import ClientError
from proxy.core.model import Json
from proxy.wire import jsonio


def load_body(body: bytes) -> dict[str, Json]:
    """A request body as JSON, not yet looked at. Raises ``ClientError`` (400) when it is no JSON object."""
    try:
        raw = jsonio.loads(body)
    except ValueError as error:
        raise ClientError(f"The request body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(raw, dict):
        raise ClientError("The request body must be a JSON object.")
    return raw


def typed(raw: Mapping[str, Json], field: str, kind: type, wanted: str) -> Json:
    """The member ``field`` of ``raw``, None if it is not there or null. Raises ``ClientError`` for another type."""
    value = raw.get(field)
    if value is not None and not isinstance(value, kind):
        raise ClientError(f"`{field}` must be {wanted}.", param=field)
    return value


def text(value: Json) -> str:
    """``value`` if it is a string, else ``""``."""
    return value if isinstance(value, str) else ""

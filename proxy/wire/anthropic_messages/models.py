"""The list of models in Anthropic's shape. https://docs.anthropic.com/en/api/models-list"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from proxy.core.model import Json
from proxy.wire import jsonio


def encode_models(models: Sequence[Mapping[str, Json]]) -> bytes:
    """All ``models`` (OpenAI's objects) as one page."""
    data = [_info(model) for model in models]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {"first_id": None, "last_id": None}
    return jsonio.dumps({"data": data, "has_more": False, **ends})


def encode_model(model: Mapping[str, Json]) -> bytes:
    """One model."""
    return jsonio.dumps(_info(model))


def _info(model: Mapping[str, Json]) -> dict[str, Json]:
    """An unknown date is the beginning of 1970, as the vendor has it too."""
    try:
        created = datetime.fromtimestamp(model["created"], UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        created = datetime.fromtimestamp(0, UTC)
    return {
        "type": "model",
        "id": model["id"],
        "display_name": model["id"],
        "created_at": f"{created:%Y-%m-%dT%H:%M:%SZ}",
        "lifecycle": "active",
    }

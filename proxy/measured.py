"""What ``toolgraft check`` measured on this machine, kept between runs in one small file of JSON.

    {"version": 1, "backends": {"http://127.0.0.1:8080/v1": {"SmolLM2": {"example": false}, "": {"example": false}}}}

A backend is known by its API root, then by the model; ``""`` is for a model of any name. A file that cannot be read is
as good as none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from proxy.core.errors import ConfigError
from proxy.telemetry import logger

VERSION = 1
ANY_MODEL = ""


def state_file() -> Path:
    """The file: ``$TOOLGRAFT_STATE``, else ``toolgraft/measured.json`` in the user's folder for state."""
    if own := os.environ.get("TOOLGRAFT_STATE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "toolgraft" / "measured.json"


def examples(api_root: str) -> Mapping[str, bool]:
    """By model: whether a worked example in the prompt was measured to help it on the backend at ``api_root``."""
    known = _read(state_file()).get(api_root)
    found = known.items() if isinstance(known, dict) else ()
    helped = {model: fact.get("example") for model, fact in found if isinstance(fact, dict)}
    return {model: helps for model, helps in helped.items() if isinstance(helps, bool)}


def remember(api_root: str, models: Iterable[str], *, example: bool) -> Path:
    """Keep what was measured for ``models`` and return the file. Whoever reads it sees it whole, or as it was.

    Raises ``ConfigError`` when it cannot be written.
    """
    file = state_file()
    backends = _read(file)
    known = backends.get(api_root)
    backends[api_root] = {
        **(known if isinstance(known, dict) else {}),
        **{model: {"example": example} for model in models},
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, prefix=".measured-", delete=False) as scratch:
            json.dump({"version": VERSION, "backends": backends}, scratch, indent=1, sort_keys=True)
        os.replace(scratch.name, file)
    except OSError as error:
        raise ConfigError(
            f"What was measured cannot be kept in {file}: {error.strerror or error}. Name another file in "
            "TOOLGRAFT_STATE."
        ) from error
    return file


def _read(file: Path) -> dict[str, Any]:
    """What is known of each backend."""
    try:
        kept = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("what was measured earlier is not used: %s cannot be read (%s)", file, error)
        return {}
    backends = kept.get("backends") if isinstance(kept, dict) and kept.get("version") == VERSION else None
    if not isinstance(backends, dict):
        logger.warning("what was measured earlier is not used: %s holds something else", file)
        return {}
    return backends

"""A setting's value: from a flag, else from the environment, else from the file. Whoever is wrong is told where."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from proxy.core.errors import ConfigError
from proxy.settings.document import Document
from proxy.settings.keys import Key
from proxy.settings.lines import Path

MOST_SHOWN = 60
"""Characters of a wrong value that a message repeats."""

_SERVICE_LINK = re.compile(r"(?:tcp|udp|sctp)://")
"""Kubernetes sets ``TOOLGRAFT_PORT=tcp://10.0.0.1:8787`` in every container beside a Service called ``toolgraft``."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value as the configuration holds it. ``origin`` is where it comes from, to begin a message with."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Sources:
    """Where values come from. ``flags`` are by the keys' names, None for those that were not given."""

    flags: Mapping[str, object]
    environ: Mapping[str, str]

    def by_hand(self, key: Key, prefixes: Sequence[str]) -> Setting | None:
        """The value that a flag gives, or an environment variable with one of the ``prefixes``, the first before all.

        Raises ``ConfigError``.
        """
        flag = self.flags.get(key.name)
        if flag is not None:
            return Setting(flag, key.flag or key.name)
        for prefix in prefixes:
            variable = key.variable(prefix)
            given = self.environ.get(variable, "")
            if given and not _SERVICE_LINK.match(given):
                try:
                    return Setting(key.kind.read(given), variable)
                except ValueError:
                    raise _refusal(key, f"The environment variable {variable}", given) from None
        return None


def from_file(key: Key, document: Document, table: Mapping[str, Any], path: Path) -> Setting | None:
    """The value that ``table``, which stands at ``path`` of ``document``, has for ``key``.

    The name of a file is as seen from the document's folder. Raises ``ConfigError``.
    """
    if key.name not in table:
        return None
    origin = f"{document.where([*path, key.name])}: `{key.name}`"
    given = table[key.name]
    try:
        value = key.kind.check(given)
    except ValueError:
        raise _refusal(key, origin, given) from None
    return Setting(document.folder / value if isinstance(value, FilePath) else value, origin)


def _refusal(key: Key, what: str, given: object) -> ConfigError:
    shown = json.dumps(given, default=str, ensure_ascii=False)
    if len(shown) > MOST_SHOWN:
        shown = shown[:MOST_SHOWN] + "…"
    return ConfigError(f"{what} must be {key.kind.wanted}{'' if key.kind.secret else f', not {shown}'}.")

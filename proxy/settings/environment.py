"""The environment, and which of its variables look like settings but are none: a misspelt one would say nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

from proxy.settings.keys import BACKEND, BACKEND_PREFIX, SERVER, SERVER_PREFIX

OTHERS = frozenset({"TOOLGRAFT_CACHE", "TOOLGRAFT_CONFIG", "TOOLGRAFT_STATE"})
"""Variables of the proxy's that are no settings."""

_NEAR = 0.75
"""How like its setting a misspelt name is, from 0 to 1: two neighbouring letters of four may have changed places."""

_OF_KUBERNETES = re.compile(r"_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)(?:_|$)")
"""It sets these in every container beside a Service called ``toolgraft``."""


class Environment(Mapping[str, str]):
    """Variables, and which of them were asked for: those that hold keys have whatever names their owners chose."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self._asked.add(name)
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def misspelt(self, backends: Iterable[str]) -> list[str]:
        """A sentence for each variable that is like a setting's and is none. ``backends`` are their names."""
        known, meant = _known(backends)
        told = []
        for name in sorted(self._variables):
            upper = name.upper()
            if name in known | self._asked or not upper.startswith(SERVER_PREFIX) or _OF_KUBERNETES.search(name):
                continue
            tails = {variable.removeprefix(SERVER_PREFIX): variable for variable in sorted(known)}
            near = difflib.get_close_matches(upper.removeprefix(SERVER_PREFIX), tails, 1, _NEAR)
            right = meant.get(upper) or (tails[near[0]] if near else None)
            if right:
                told.append(f"The environment variable {name} is no setting and does nothing. Did you mean {right}?")
        return told


def own_prefix(backend: str) -> str:
    """How the variables begin that are for the backend of that name alone."""
    return f"{BACKEND_PREFIX}{re.sub('[^A-Z0-9]', '_', backend.upper())}_"


def _known(backends: Iterable[str]) -> tuple[set[str], dict[str, str]]:
    """All variables, and those that are meant by names made of the flags, which some settings do not share."""
    prefixes = [BACKEND_PREFIX, *(own_prefix(name) for name in backends if name)]
    known = {key.variable(SERVER_PREFIX) for key in SERVER} | OTHERS
    known |= {key.variable(prefix) for key in BACKEND for prefix in prefixes}
    meant = {}
    for key in BACKEND:
        flag = (key.flag or key.name).removeprefix("--").replace("-", "_").upper()
        for prefix in (SERVER_PREFIX, BACKEND_PREFIX):
            meant[prefix + flag] = key.variable(BACKEND_PREFIX)
    return known, meant

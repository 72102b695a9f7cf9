"""A file of settings, and where in it something stands."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proxy.core.errors import ConfigError
from proxy.settings import lines

MOST_BYTES = 1024 * 1024

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_SECRETS = frozenset({"key", "api_key", "apikey", "token", "secret", "password", "backend_key", "authorization"})


@dataclass(frozen=True, slots=True)
class Document:
    """A TOML file that was read. ``name`` is what messages call it."""

    name: str
    folder: Path
    text: str
    data: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Document:
        """The file at ``path``. Raises ``ConfigError``."""
        try:
            with path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"The file {path} cannot be read: {error.strerror or error}.") from None
        if len(raw) > MOST_BYTES:
            raise ConfigError(f"The file {path} has more than {MOST_BYTES:,} bytes. Is it the right one?")
        try:
            text = raw.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{path}, line {line}: this is not text in UTF-8.") from None
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(_refusal(path, text, str(error))) from None
        except RecursionError:
            raise ConfigError(f"{path} is nested too deeply.") from None
        return cls(str(path), path.absolute().parent, text, data)

    def where(self, path: lines.Path) -> str:
        """The file and the line of what stands at ``path``."""
        line = lines.line_of(self.text, path)
        return self.name if line is None else f"{self.name}, line {line}"

    def refuse_unknown(
        self, table: Mapping[str, Any], path: lines.Path, known: Collection[str], hints: Mapping[str, str]
    ) -> None:
        """Raise ``ConfigError`` for a key of ``table``, which stands at ``path``, that is not ``known``.

        ``hints`` say for some unknown keys what is meant instead.
        """
        for key in table:
            if key in known:
                continue
            where = self.where([*path, key])
            if key.lower() in _SECRETS:
                raise ConfigError(
                    f"{where}: a key does not belong into a file. Put it into an environment variable and name that "
                    'here: key_env = "VARIABLE".'
                )
            near = difflib.get_close_matches(key, known, 1)
            mend = hints.get(key) or (f"Did you mean `{near[0]}`?" if near else f"There are: {', '.join(known)}.")
            raise ConfigError(f"{where}: there is no key `{key[:60]}` here. {mend}")


def _refusal(path: Path, text: str, said: str) -> str:
    place = _PLACE.search(said)
    if place is None:
        return f"{path} is not valid TOML: {said}."
    line = place[1] or text.rstrip("\n").count("\n") + 1
    return f"{path}, line {line}: this is not valid TOML: {said[: place.start()]}."

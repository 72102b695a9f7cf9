"""The kinds of values that settings have: what is taken from a TOML file, and what from a text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from proxy.access import is_hash

_ON, _OFF = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Kind:
    """``wanted`` completes the sentence "must be …".

    ``check`` takes a value of a TOML file, ``read`` the text of an environment variable or a flag. Both return what the
    configuration holds and raise ``ValueError``. ``options`` are the texts there are, none if any other will do.
    ``secret``: a wrong value may be one that nobody must see.
    """

    wanted: str
    check: Callable[[object], object]
    read: Callable[[str], object]
    options: Sequence[str] = ()
    secret: bool = False


def text() -> Kind:
    """Any text but an empty one."""
    return _of_text("a text", str)


def path() -> Kind:
    """The name of a file."""
    return _of_text("the name of a file", Path)


def variable() -> Kind:
    """The name of an environment variable. What is none may be the secret itself."""

    def read(given: str) -> str:
        if not _VARIABLE.fullmatch(given):
            raise ValueError
        return given

    kind = _of_text("the name of an environment variable (letters, digits and _), not the key itself", read)
    return replace(kind, secret=True)


def choice(options: Sequence[str]) -> Kind:
    """One of some texts."""

    def read(given: str) -> str:
        if given not in options:
            raise ValueError
        return given

    return _of_text(_either([f'"{option}"' for option in options]), read, options)


def switch() -> Kind:
    """On or off."""
    return Kind("true or false", _bool, _read_switch)


def switch_or_auto() -> Kind:
    """On, off, or None for "auto"."""

    def check(value: object) -> bool | None:
        if value == "auto":
            return None
        return _bool(value)

    def read(given: str) -> bool | None:
        return None if given == "auto" else _read_switch(given)

    return Kind('"auto", true or false', check, read, ("auto", "true", "false"))


def whole(low: int, high: int | None = None) -> Kind:
    """An integer within bounds, both included."""

    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < low or (high is not None and value > high):
            raise ValueError
        return value

    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
    return Kind(f"a whole number {bounds}", check, lambda given: check(int(given)))


def seconds() -> Kind:
    """A positive number."""

    def check(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise ValueError
        return float(value)

    return Kind("a number of seconds, more than 0", check, lambda given: check(float(given)))


def texts() -> Kind:
    """Several texts; one may stand for itself."""

    def check(value: object) -> tuple[str, ...]:
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list) or not given:
            raise ValueError
        return tuple(_text(each) for each in given)

    def read(given: str) -> tuple[str, ...]:
        return check([part for part in map(str.strip, given.split(",")) if part])

    return Kind("a text, or a list of texts", check, read)


def names() -> Kind:
    """A text for each of some names."""

    def check(value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            raise ValueError
        return {_text(key): _text(each) for key, each in value.items()}

    def read(given: str) -> dict[str, str]:
        pairs = [part.partition("=") for part in given.split(",") if part.strip()]
        if not all(sign for _, sign, _ in pairs):
            raise ValueError
        return check({key.strip(): each.strip() for key, _, each in pairs})

    return Kind('a table of texts, like { "asked" = "sent" }', check, read)


def hashes() -> Kind:
    """A hashed key for each of some names. What is none may be the key itself."""

    def hashed(given: object) -> object:
        if not isinstance(given, dict) or not given or not all(map(is_hash, given.values())):
            raise ValueError
        return given

    plain = names()
    return Kind(
        'a table of at least one hashed key, like { "ann" = "sha256:…" }; `toolgraft hash-key` hashes one',
        lambda value: hashed(plain.check(value)),
        lambda given: hashed(plain.read(given)),
        secret=True,
    )


def origins() -> Kind:
    """Where web pages come from, as a browser tells it; or ``*``, from anywhere."""
    plain = texts()

    def checked(given: object) -> object:
        for each in given if isinstance(given, tuple) else ():
            parts = urlsplit(each)
            if each != "*" and (not parts.scheme or not parts.netloc or each != f"{parts.scheme}://{parts.netloc}"):
                raise ValueError
        return given

    return Kind(
        'an origin, or a list of them, like "https://chat.example.com" without a path; "*" is any',
        lambda value: checked(plain.check(value)),
        lambda given: checked(plain.read(given)),
    )


def _of_text(wanted: str, read: Callable[[str], object], options: Sequence[str] = ()) -> Kind:
    return Kind(wanted, lambda value: read(_text(value)), lambda given: read(_text(given)), options)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _read_switch(given: str) -> bool:
    word = given.strip().lower()
    if word not in (*_ON, *_OFF):
        raise ValueError
    return word in _ON


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"

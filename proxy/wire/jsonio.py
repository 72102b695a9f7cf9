"""JSON of requests, replies and chunks: orjson for speed, the standard library where orjson would lose something.

orjson turns integers beyond 64 bits into floats, refuses lone surrogates (JavaScript clients that cut a string inside
an emoji send them), and writes at most 254 levels. All three are rare, so orjson runs first and the slower way only
where it is needed. Both directions agree on what JSON is: ``NaN`` and numbers beyond a double are refused. Python makes
no ``int`` of more than 4,300 digits: those are read as ``Decimal``, which keeps them all, and written as they were.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from decimal import Decimal
from typing import Literal, NoReturn

import orjson

from proxy.core.model import Json

LONGEST_SAFE_RUN = 18
"""Every integer of so many digits fits 64 bits; a longer run of digits is left to the standard library."""

LONGEST_INT = 4_000
"""Characters of an integer that is read as an ``int``."""

SHORT = 128
"""Bytes of a JSON text up to which it is handed on as orjson made it. It keeps the room that escapes would have taken,
up to ten times the text: too much for what is kept, or held while a reply streams."""

_DIGITS_TO_ZERO = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG_RUN = b"0" * (LONGEST_SAFE_RUN + 1)
_STRIDE = 6
_LONG_RUN_STRIDES = b"0" * (len(_LONG_RUN) // _STRIDE)


def loads(data: bytes | str) -> Json:
    """The value of a JSON text; integers keep every digit. Raises ``ValueError`` saying what is wrong and where."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    exact = not _may_lose_digits(raw)
    try:
        value = orjson.loads(raw)
        if exact:
            return value
    except orjson.JSONDecodeError as error:
        if "depth" in error.msg:  # of 1,024 levels; the standard library's own limit is tenfold from Python 3.12 on
            raise ValueError("nested too deeply") from None
        # else read again below, with the standard library's more precise complaint
    try:
        return json.loads(data, parse_int=_integer, parse_float=_finite, parse_constant=_not_json)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dumps(value: Json, *, lone_surrogates: Literal["escape", "replace"] = "escape") -> bytes:
    r"""Compact UTF-8 JSON.

    Lone surrogates are written as ``\udXXX`` (nothing is lost, and halves cut apart in a stream meet again), or as
    U+FFFD with ``replace``: for backends, since strict parsers (llama.cpp's among them) refuse the escape.
    Raises ``ValueError`` for what JSON cannot hold.
    """
    try:
        data = orjson.dumps(value, default=_fragment)
        return data if len(data) <= SHORT else bytes(memoryview(data))
    except TypeError:
        pass
    mark = secrets.token_hex(8)  # begins a text that stands for a number

    def marked(value: object) -> str:
        return mark + _digits(value)

    try:
        text = json.dumps(
            value,
            separators=(",", ":"),
            allow_nan=False,
            ensure_ascii=lone_surrogates == "escape",
            default=marked,
        )
    except (TypeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if mark in text:
        text = re.sub(f'"{mark}([^"]*)"', r"\1", text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _may_lose_digits(raw: bytes) -> bool:
    """Whether a long run of digits stands in ``raw``; inside a string it costs only time.

    Linear, and much cheaper than the parse: of every sixth byte, three in a row are digits where such a run stands, and
    hardly ever elsewhere, so that all bytes are seldom looked at.
    """
    if _LONG_RUN_STRIDES not in raw[::_STRIDE].translate(_DIGITS_TO_ZERO):
        return False
    return _LONG_RUN in raw.translate(_DIGITS_TO_ZERO)


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= LONGEST_INT else Decimal(text)


def _digits(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON type")


def _fragment(value: object) -> orjson.Fragment:
    return orjson.Fragment(_digits(value))


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")

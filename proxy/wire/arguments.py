"""The arguments of a call as OpenAI's wires have them: JSON text, or the free text of a custom tool."""

from __future__ import annotations

import json

from proxy.core.model import Json
from proxy.wire import jsonio


def read_arguments(raw: Json) -> str:
    """The arguments as JSON text. Other providers' clients replay them as an object, as null or as blank text."""
    if isinstance(raw, str):
        return raw if raw.strip() else "{}"
    return "{}" if raw is None else jsonio.dumps(raw).decode()


def custom_arguments(text: str) -> str:
    """The arguments for the free ``text`` of a custom tool's call."""
    return jsonio.dumps({"input": text}).decode()


def custom_input(arguments: str) -> str:
    """The free text of a custom tool's call: its ``input``, or all of it where the model made no such object."""
    try:
        value = json.loads(arguments, parse_int=float)  # an integer may have any number of digits
    except (ValueError, RecursionError):
        return arguments
    text = value.get("input") if isinstance(value, dict) else None
    return text if isinstance(text, str) else arguments

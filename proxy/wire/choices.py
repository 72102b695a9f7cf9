"""Whether what a client demands of the tools can be done with those that it offers. The same on every surface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.core.errors import ClientError
from proxy.core.model import Tool, ToolChoice

NAMES_SHOWN = 20
"""Tool names that an error message lists before it breaks off."""

CLIENT_SIDE = ("bash_", "text_editor_", "computer_", "memory_", "browser_")
"""How the types of tools begin that the client runs but only its vendor's models know: they have no schema to show."""


def refuse_client_side(kind: str, param: str, schema: str) -> None:
    """Raise ``ClientError`` about ``param``, a tool without a schema of the type ``kind``, if the client would run it.

    Left out like a hosted tool it would be missed. ``schema`` is the member in which this surface has schemas.
    """
    if kind == "computer" or kind.startswith(CLIENT_SIDE):
        raise ClientError(
            f"`{param}` is of the type {kind!r}, which only models that were trained for it know how to call. "
            f"Offer a tool of your own for the same actions instead, with a `name`, a `description` and `{schema}`.",
            param=param,
        )


def check_choice(choice: ToolChoice, tools: Mapping[str, Tool], field: str) -> None:
    """Raise ``ClientError`` about ``field`` when ``choice`` names a tool that is not there, or forces one of none."""
    wanted = set(choice.allowed or ()) | ({choice.name} if choice.name is not None else set())
    unknown = sorted(wanted - tools.keys())
    if unknown:
        known = f"offers only {_list(tools)}" if tools else "offers no tools"
        raise ClientError(f"`{field}` names {_list(unknown)}, but the request {known}.", param=field)
    if choice.forced and not (tools if choice.allowed is None else choice.allowed):
        raise ClientError(
            f"`{field}` demands a call, but the request offers no tool that could be called.",
            param=field,
        )


def _list(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    more = len(shown) - NAMES_SHOWN
    return ", ".join(shown[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")

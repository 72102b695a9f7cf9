"""Whether what a client demands of the tools can be done with those that it offers. The same on every surface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from proxy.core.errors import ClientError
from proxy.core.model import Tool, ToolChoice

NAMES_SHOWN = 20
"""Tool names that an error message lists before it breaks off."""


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

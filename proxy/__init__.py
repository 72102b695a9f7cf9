"""Toolgraft: native tool calling for any model server. Here is what may be used as a library.

``Parser`` and ``parse`` read model output; ``Tool`` describes what may be called, ``Reply`` and ``ToolCall`` what came
out. Everything else may change. The names are imported when they are used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.core.collect import Reply
    from proxy.core.model import Tool, ToolCall
    from proxy.core.parser import Parser, parse

__all__ = ["Parser", "Reply", "Tool", "ToolCall", "parse"]

_PLACES = {
    "Parser": "proxy.core.parser",
    "Reply": "proxy.core.collect",
    "Tool": "proxy.core.model",
    "ToolCall": "proxy.core.model",
    "parse": "proxy.core.parser",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'proxy' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)

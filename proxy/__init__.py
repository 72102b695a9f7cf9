"""Toolgraft: native tool calling for any model server. Here is what may be used as a library.

``Parser`` and ``parse`` read model output; ``Tool`` describes what may be called, ``Reply`` and ``ToolCall`` what came
out. ``render_prompt`` tells a model of the tools of a ``Request``, ``render_history`` writes its ``Message``s, with
``ToolCall``s and ``ToolResult``s, as turns that any chat template takes. Everything else may change. The names are
imported when they are used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.core.collect import Reply
    from proxy.core.history import HistoryOptions, render_history
    from proxy.core.model import ImagePart, Message, Request, TextPart, Tool, ToolCall, ToolResult
    from proxy.core.parser import Parser, parse
    from proxy.core.prompt import PromptOptions, render_prompt

__all__ = [
    "HistoryOptions",
    "ImagePart",
    "Message",
    "Parser",
    "PromptOptions",
    "Reply",
    "Request",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolResult",
    "parse",
    "render_history",
    "render_prompt",
]

_PLACES = {
    "HistoryOptions": "proxy.core.history",
    "ImagePart": "proxy.core.model",
    "Message": "proxy.core.model",
    "Parser": "proxy.core.parser",
    "PromptOptions": "proxy.core.prompt",
    "Reply": "proxy.core.collect",
    "Request": "proxy.core.model",
    "TextPart": "proxy.core.model",
    "Tool": "proxy.core.model",
    "ToolCall": "proxy.core.model",
    "ToolResult": "proxy.core.model",
    "parse": "proxy.core.parser",
    "render_history": "proxy.core.history",
    "render_prompt": "proxy.core.prompt",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'proxy' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)

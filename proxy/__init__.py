"""Toolgraft: native tool calling for any model server. Here is what may be used as a library.

``Parser`` and ``parse`` read model output: ``Tool`` describes what may be called, ``Event`` is one of the values that a
parser returns, ``Reply`` all of them folded by ``collect``. ``render_prompt`` tells a model of the tools of a
``Request``, ``render_history`` writes its ``Message``s, with ``ToolCall``s and ``ToolResult``s, as turns that any chat
template takes. ``create_app`` is the proxy as an ASGI application. ``proxy.testing`` is for tests. Everything else may
change. The names are imported when they are used, so that the command line starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.config import BackendConfig, Config
    from proxy.core.collect import Reply, collect
    from proxy.core.errors import ClientError, ConfigError, ToolgraftError, UpstreamError
    from proxy.core.events import (
        Event,
        Finish,
        Problem,
        ReasoningDelta,
        TextDelta,
        ToolArgumentsDelta,
        ToolCallEnd,
        ToolCallStart,
    )
    from proxy.core.history import HistoryOptions, render_history
    from proxy.core.model import ImagePart, Message, Request, TextPart, Tool, ToolCall, ToolChoice, ToolResult
    from proxy.core.parser import Parser, parse
    from proxy.core.prompt import PromptOptions, render_prompt
    from proxy.mounted import create_app

__all__ = [
    "BackendConfig",
    "ClientError",
    "Config",
    "ConfigError",
    "Event",
    "Finish",
    "HistoryOptions",
    "ImagePart",
    "Message",
    "Parser",
    "Problem",
    "PromptOptions",
    "ReasoningDelta",
    "Reply",
    "Request",
    "TextDelta",
    "TextPart",
    "Tool",
    "ToolArgumentsDelta",
    "ToolCall",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
    "ToolResult",
    "ToolgraftError",
    "UpstreamError",
    "collect",
    "create_app",
    "parse",
    "render_history",
    "render_prompt",
]

_NAMES = {
    "proxy.config": "BackendConfig Config",
    "proxy.core.collect": "Reply collect",
    "proxy.core.errors": "ClientError ConfigError ToolgraftError UpstreamError",
    "proxy.core.events": "Event Finish Problem ReasoningDelta TextDelta ToolArgumentsDelta ToolCallEnd ToolCallStart",
    "proxy.core.history": "HistoryOptions render_history",
    "proxy.core.model": "ImagePart Message Request TextPart Tool ToolCall ToolChoice ToolResult",
    "proxy.core.parser": "Parser parse",
    "proxy.core.prompt": "PromptOptions render_prompt",
    "proxy.mounted": "create_app",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'proxy' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)

"""Toolgraft: native tool calling for any model server. Here is what may be used as a library.

``Parser`` and ``parse`` read model output; ``Tool`` describes what may be called. Everything else may change.
"""

from __future__ import annotations

from proxy.core.collect import Reply
from proxy.core.model import Tool, ToolCall
from proxy.core.parser import Parser, parse

__all__ = ["Parser", "Reply", "Tool", "ToolCall", "parse"]

"""Readers of call bodies, one module a kind."""

from __future__ import annotations

from typing import Any

from proxy.core.bodies.jsonbody import JsonReader
from proxy.core.bodies.pythonbody import PythonReader
from proxy.core.bodies.sketchbody import SketchReader
from proxy.core.bodies.tagsbody import TagsReader
from proxy.core.forms import BodySpec, JsonBody, PythonBody, SketchBody, TagsBody

_READERS: dict[type, Any] = {
    JsonBody: JsonReader,
    TagsBody: TagsReader,
    PythonBody: PythonReader,
    SketchBody: SketchReader,
}


def reader_for(spec: BodySpec) -> Any:
    """The class that reads bodies of ``spec``: ``fits(spec, text, final=…)``; ``reader(spec, closers, openers, …)``."""
    return _READERS[type(spec)]

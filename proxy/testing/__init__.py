"""For the tests of those who use Toolgraft, or write a parser or run a model of their own.

Hypothesis strategies (they want ``pip install 'toolgraft[testing]'``): ``tools`` and ``calls`` of them, ``rendering``
of calls as a model family writes them, ``damaged`` as real models do, ``soup`` of markup, ``chunkings`` of a text.
Without hypothesis: ``assert_stream_equals_whole`` for any parser that is fed, and ``recordings`` of replies, which
pytest also replays by itself from files called ``….toolgraft.json``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.testing.damage import DAMAGES
    from proxy.testing.recorded import Recording, recordings
    from proxy.testing.renderings import DIALECTS
    from proxy.testing.schemas import values
    from proxy.testing.strategies import Damaged, Rendering, calls, chunkings, damaged, rendering, soup, tools
    from proxy.testing.streams import assert_stream_equals_whole, cuts, essence
    from proxy.testing.writing import Call

__all__ = [
    "DAMAGES",
    "DIALECTS",
    "Call",
    "Damaged",
    "Recording",
    "Rendering",
    "assert_stream_equals_whole",
    "calls",
    "chunkings",
    "cuts",
    "damaged",
    "essence",
    "recordings",
    "rendering",
    "soup",
    "tools",
    "values",
]

_NAMES = {
    "proxy.testing.damage": "DAMAGES",
    "proxy.testing.recorded": "Recording recordings",
    "proxy.testing.renderings": "DIALECTS",
    "proxy.testing.strategies": "Damaged Rendering calls chunkings damaged rendering soup tools",
    "proxy.testing.streams": "assert_stream_equals_whole cuts essence",
    "proxy.testing.schemas": "values",
    "proxy.testing.writing": "Call",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'proxy.testing' has no attribute {name!r}")
    try:
        return getattr(import_module(_PLACES[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        message = f"proxy.testing.{name} needs hypothesis: pip install 'toolgraft[testing]'"
        raise ModuleNotFoundError(message, name=error.name) from error

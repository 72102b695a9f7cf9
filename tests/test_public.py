"""The names that others may build on."""

from __future__ import annotations

import subprocess
import sys

import pytest

import proxy
import proxy.testing


def test_the_public_names() -> None:
    assert proxy.__all__ == [
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
    assert all(hasattr(proxy, name) for name in proxy.__all__)
    assert not hasattr(proxy, "Dispatcher")


@pytest.mark.parametrize("module", ["proxy", "proxy.testing"])
def test_a_package_imports_nothing_before_it_is_used(module: str) -> None:
    others = ("starlette", "uvicorn", "aiohttp", "hypothesis", "pytest", "proxy.core.parser")
    code = f"import sys, {module}; print([name for name in {others} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_what_is_missing_is_said_with_how_to_get_it() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; from proxy.testing import cuts, recordings, tools"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: proxy.testing.tools needs hypothesis: pip install 'toolgraft[testing]'"
    )


def test_the_public_names_for_tests() -> None:
    assert proxy.testing.__all__ == [
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
    for name in proxy.testing.__all__:
        assert getattr(proxy.testing, name).__class__.__name__ != "module"


def test_the_reader_needs_no_server() -> None:
    code = (
        "import sys; from proxy import parse; print([name for name in ('starlette', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"

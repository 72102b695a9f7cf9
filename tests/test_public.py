"""The names that others may build on, and the snippets of the README that use them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import proxy

README = Path(__file__).parents[1] / "README.md"


def test_the_public_names() -> None:
    assert proxy.__all__ == [
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
    assert all(hasattr(proxy, name) for name in proxy.__all__)


def test_the_library_snippets_of_the_readme_run() -> None:
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    of_the_library = [snippet for snippet in snippets if "from proxy import" in snippet]
    assert len(of_the_library) == 2
    for snippet in of_the_library:
        subprocess.run([sys.executable, "-c", snippet], check=True)


def test_the_library_needs_no_server() -> None:
    code = "import sys, proxy; print([name for name in ('starlette', 'uvicorn', 'aiohttp') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"

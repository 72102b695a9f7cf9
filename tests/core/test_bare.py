from __future__ import annotations

import pytest

from proxy.core.bare import begins_bare
from proxy.core.calls import ToolSet
from proxy.core.model import Tool

TOOLS = ToolSet((Tool("get_weather"), Tool("get_time")))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"name": "get_weather", ', True),
        ('[ {"name": "get_time"', True),
        ("{'name': 'get_time'", True),
        ('{"type": "function", ', True),
        ('{"name": "get_', None),
        ('{"na', None),
        ("{", None),
        ('{"name": "other"', False),
        ('{"city": ', False),
        ("{city", False),
        ("[1, 2]", False),
        ("{}", False),
    ],
)
def test_begins_bare(text: str, answer: bool | None) -> None:
    assert begins_bare(TOOLS, text, 0, final=False) is answer
    if answer is None:
        assert begins_bare(TOOLS, text, 0, final=True) is False


def test_without_tools_nothing_is_a_bare_call() -> None:
    assert begins_bare(ToolSet(()), '{"name": "get_time"', 0, final=False) is False

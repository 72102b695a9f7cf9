"""Tools such as clients offer: ``fixtures/tools/catalogue.jsonl``, one a line, in the words of many kinds of makers."""

from __future__ import annotations

import json

from proxy.core.model import Tool
from tests.support.conversations import FIXTURES

CATALOGUE = tuple(
    Tool.of(json.loads(line)) for line in (FIXTURES / "tools" / "catalogue.jsonl").read_text("utf-8").splitlines()
)

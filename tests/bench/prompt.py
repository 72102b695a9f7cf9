"""What tools cost in tokens, told in each style: ``python -m tests.bench.prompt MODEL.gguf`` (its tokenizer)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.request import Request, urlopen

from proxy.core.definitions import definition
from proxy.core.prompt import STYLES, render_protocol
from proxy.local import LocalModel
from tests.support.tools import CATALOGUE


def count(url: str, text: str) -> int:
    """The tokens of ``text``, as the engine at ``url`` makes them."""
    body = json.dumps({"content": text}).encode()
    with urlopen(Request(f"{url}/tokenize", body, {"content-type": "application/json"})) as reply:
        return len(json.load(reply)["tokens"])


def main(model_file: Path) -> None:
    """Print the table: for all tools together and for one, against their JSON as a client sends it."""
    raw = json.dumps([{"type": "function", "function": definition(tool)} for tool in CATALOGUE])
    with LocalModel(model_file, context=512, slots=1, threads=1) as model:
        sent = count(model.url, raw)
        print(f"{len(CATALOGUE)} tools{'tokens':>12}{'a tool':>9}{'of raw':>9}{'fixed':>8}")
        print(f"{'raw JSON':9}{sent:11,}{sent / len(CATALOGUE):9.1f}{1:9.2f}")
        for style in STYLES:
            fixed = count(model.url, render_protocol([], style=style))
            tools = count(model.url, render_protocol(CATALOGUE, style=style)) - fixed
            print(f"{style:9}{tools:11,}{tools / len(CATALOGUE):9.1f}{tools / sent:9.2f}{fixed:8}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

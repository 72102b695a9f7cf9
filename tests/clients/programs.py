"""Programs of SDKs for Node, which play every scenario, whole and streamed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tests.clients import install
from tests.clients.brain import SCENARIOS, scenarios
from tests.clients.table import Row, ways
from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.speech import Mode

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Program:
    """A script beside this file that gets the proxy's address and prints a line ``ok NAME`` for each scenario."""

    name: str
    api: str
    packages: Sequence[str]
    script: str

    def run(self, directory: Path) -> Iterator[Row]:
        """Install what it needs below ``directory`` and let it play all scenarios, before each kind of backend."""
        commands = install.npm(self.packages, install.place(self.packages, directory))
        version = install.version(self.packages[0], commands)
        script = commands.parent.parent / self.script
        script.write_text((HERE / self.script).read_text())  # where its imports are found
        for mode in get_args(Mode):
            with tempfile.TemporaryDirectory(prefix="toolgraft-home-") as home, Backend() as backend:
                backend.script(scenarios(mode))
                with proxy_before(backend, mode) as url:
                    told = install.call(["node", str(script), url], commands, Path(home), Path(home), {})
            played = {line.removeprefix("ok ").strip() for line in told.stdout.splitlines() if line.startswith("ok ")}
            left = sorted(SCENARIOS.keys() - played)
            problem = f"status {told.returncode}, not played: {left}, complained: {told.stderr.strip()[-1500:]}"
            did = f"{len(played)} scenarios"
            yield Row(
                self.name, version, self.api, mode, ways(backend.chats), did, problem if told.returncode or left else ""
            )


PROGRAMS: Sequence[Program] = (
    Program("OpenAI SDK (Node)", "Chat Completions", ["openai"], "openai_chat.mjs"),
    Program("OpenAI SDK (Node)", "Responses", ["openai"], "openai_responses.mjs"),
    Program("Anthropic SDK (Node)", "Messages", ["@anthropic-ai/sdk"], "anthropic_sdk.mjs"),
    Program(
        "Vercel AI SDK",
        "Chat Completions, Responses",
        ["ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "zod"],
        "ai_sdk.mjs",
    ),
)
"""To add a program, add its row."""

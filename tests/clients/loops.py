"""Programs that come to the model's advice by way of their tool, in whatever the client's own way of looping is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tests.clients import install
from tests.clients.brain import ADVICE, WEATHER, weather
from tests.clients.table import Row, ways
from tests.examples.pages import at
from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.speech import Mode


@dataclass(frozen=True, slots=True)
class Loop:
    """A program that names the examples' address, and what it needs; the first of the packages gives its version."""

    name: str
    api: str
    packages: Sequence[str]
    file: Path

    def run(self, directory: Path) -> Iterator[Row]:
        """Install what it needs below ``directory`` and run it, before each kind of backend."""
        of_python = self.file.suffix == ".py"
        place = install.place(self.packages, directory)
        commands = (install.pip if of_python else install.npm)(self.packages, place)
        command = [str(commands / "python") if of_python else "node", str(place / f"program{self.file.suffix}")]
        version = install.version(self.packages[0], commands)
        for mode in get_args(Mode):
            with Backend() as backend:
                told = self._play(mode, commands, command, backend)
            complaint = f"status {told.returncode}, printed {told.stdout!r}, complained: {told.stderr.strip()[-1500:]}"
            problem = "" if told.returncode == 0 and came_to_it(told.stdout) else complaint
            yield Row(self.name, version, self.api, mode, ways(backend.chats), self.file.name, problem)

    def _play(self, mode: Mode, commands: Path, command: Sequence[str], backend: Backend) -> install.Done:
        """Run ``command`` on a copy of the program, which it ends with."""
        backend.script(weather(mode))
        with tempfile.TemporaryDirectory(prefix="toolgraft-home-") as home, proxy_before(backend, mode) as url:
            Path(command[-1]).write_text(at(url, self.file.read_text("utf-8")), "utf-8")
            return install.call(command, commands, Path(home), Path(home), {})


def came_to_it(printed: str) -> bool:
    """Whether a program has ``printed`` the model's advice, with what its tool said."""
    return ADVICE in printed and WEATHER.search(printed) is not None


HERE = Path(__file__).parent

FRAMEWORKS: Sequence[Loop] = (
    Loop("LangChain", "Chat Completions", ["langchain", "langchain-openai"], HERE / "langchain_stream.py"),
    Loop("Pydantic AI", "Chat Completions", ["pydantic-ai-slim[openai]"], HERE / "pydantic_ai_stream.py"),
    Loop("OpenAI Agents SDK", "Chat Completions, Responses", ["openai-agents"], HERE / "openai_agents.py"),
    Loop("LiteLLM", "Chat Completions, Messages", ["litellm"], HERE / "litellm_loop.py"),
)
"""Frameworks for Python. To add one, add its row."""

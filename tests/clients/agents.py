"""Command lines of agents: each has to read one file and write another, configured as ``docs/examples`` says."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from tests.clients import install
from tests.clients.brain import agent
from tests.clients.table import Row, ways
from tests.examples.pages import ADDRESS, at, block, exports
from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.speech import Call, Mode

TASK = "Read the file in.txt, then write what it says, in upper case, to the file out.txt. Then say that you are done."


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's command line. The proxy's address takes the place of the examples' in its ``environment`` and its
    ``files`` (by path below its home; it works in ``work``). ``read`` and ``write`` say how it calls its tools.
    """

    name: str
    api: str
    packages: Sequence[str]
    command: Sequence[str]
    read: Callable[[Path], Call]
    write: Callable[[Path, str], Call]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def run(self, directory: Path) -> Iterator[Row]:
        """Install it below ``directory`` and let it do its task, before each kind of backend."""
        commands = install.npm(self.packages, install.place(self.packages, directory))
        version = install.version(self.packages[0], commands)
        for mode in get_args(Mode):
            with tempfile.TemporaryDirectory(prefix="toolgraft-home-") as home, Backend() as backend:
                problem = self._try(mode, commands, Path(home), backend)
            did = f"both files, in {len(backend.chats)} requests"
            yield Row(self.name, version, self.api, mode, ways(backend.chats), did, problem)

    def _try(self, mode: Mode, commands: Path, home: Path, backend: Backend) -> str:
        """What went wrong."""
        work = home / "work"
        work.mkdir()
        secret = f"secret-{secrets.token_hex(4)}"
        (work / "in.txt").write_text(secret + "\n")
        backend.script(agent(mode, self.read(work), lambda text: self.write(work, text)))
        with proxy_before(backend, mode) as url:
            for path, content in self.files.items():
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                (home / path).write_text(at(url, content))
            environment = {key: value.replace(ADDRESS, url) for key, value in self.environment.items()}
            told = install.call(self.command, commands, work, home, environment)
        written = (work / "out.txt").read_text() if (work / "out.txt").is_file() else None
        if told.returncode or written is None or written.strip() != secret.upper():
            return f"status {told.returncode}, wrote {written!r}, complained: {told.stderr.strip()[-1500:]}"
        return ""


def _opencode(name: str, api: str, provider: str) -> Agent:
    return Agent(
        name,
        api,
        ["opencode-ai"],
        ["opencode", "run", TASK],
        lambda work: Call("read", {"filePath": str(work / "in.txt")}),
        lambda work, text: Call("write", {"filePath": str(work / "out.txt"), "content": text}),
        files={"work/opencode.json": block("opencode.md", "json").replace("@ai-sdk/openai-compatible", provider)},
    )


AGENTS: Sequence[Agent] = (
    Agent(
        "Claude Code",
        "Messages",
        ["@anthropic-ai/claude-code"],
        ["claude", "-p", TASK, "--model", "local", "--allowedTools", "Read,Write", "--output-format", "text"],
        lambda work: Call("Read", {"file_path": str(work / "in.txt")}),
        lambda work, text: Call("Write", {"file_path": str(work / "out.txt"), "content": text}),
        exports("claude-code.md") | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
    ),
    Agent(
        "codex",
        "Responses",
        ["@openai/codex"],
        ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
        lambda work: Call("exec_command", {"cmd": "cat in.txt"}),
        lambda work, text: Call("exec_command", {"cmd": f"echo {text} > out.txt"}),
        files={".codex/config.toml": block("codex.md", "toml")},
    ),
    _opencode("opencode", "Chat Completions", "@ai-sdk/openai-compatible"),
    _opencode("opencode", "Responses", "@ai-sdk/openai"),
    Agent(
        "Qwen Code",
        "Chat Completions",
        ["@qwen-code/qwen-code"],
        ["qwen", "-p", TASK, "--yolo"],
        lambda work: Call("read_file", {"file_path": str(work / "in.txt")}),
        lambda work, text: Call("write_file", {"file_path": str(work / "out.txt"), "content": text}),
        exports("qwen-code.md"),
    ),
)
"""To add an agent, add its row."""

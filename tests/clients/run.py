"""Real clients against the proxy: installs each, and lets it work in front of a scripted model.

    python -m tests.clients.run [--dir DIR] [NAME ...]

An agent has to read one file and write another through a model that only writes text. A program of an SDK plays every
scenario, before such a model and before a server with tools of its own. Needs npm and the network; it takes minutes and
is no part of the test suite.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, get_args

from tests.clients.brain import agent, missing, scenarios
from tests.support.backend import Backend
from tests.support.proxy import proxy_before
from tests.support.speech import Call, Mode

HERE = Path(__file__).parent
NODE = "node@22"
TIMEOUT = 240
TASK = "Read the file in.txt, then write what it says, in upper case, to the file out.txt. Then say that you are done."

CODEX = """\
model = "scripted"
model_provider = "toolgraft"

[model_providers.toolgraft]
name = "Toolgraft"
base_url = "{url}/v1"
wire_api = "responses"
"""

OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  "autoupdate": false,
  "share": "disabled",
  "provider": {
    "toolgraft": {
      "npm": "{provider}",
      "options": {"baseURL": "{url}/v1", "apiKey": "none"},
      "models": {"scripted": {"name": "scripted"}}
    }
  }
}
"""

Files: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's command line. ``{url}`` in its words, its environment and its ``files`` (by path below its home) is
    the proxy's address, ``{work}`` its working directory. ``read`` and ``write`` say how it calls its tools.
    """

    name: str
    packages: Sequence[str]
    command: Sequence[str]
    read: Callable[[Path], Call]
    write: Callable[[Path, str], Call]
    environment: Files = field(default_factory=dict)
    files: Files = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """A script beside this file that gets the proxy's address and prints a line ``ok NAME`` for each scenario.

    ``skips`` are scenarios that it cannot play.
    """

    name: str
    packages: Sequence[str]
    script: str
    skips: frozenset[str] = frozenset()


def _opencode(name: str, provider: str) -> Agent:
    return Agent(
        name,
        ["opencode-ai"],
        ["opencode", "run", "--model", "toolgraft/scripted", TASK],
        lambda work: Call("read", {"filePath": str(work / "in.txt")}),
        lambda work, text: Call("write", {"filePath": str(work / "out.txt"), "content": text}),
        files={"work/opencode.json": OPENCODE.replace("{provider}", provider)},
    )


CLIENTS: Sequence[Agent | Program] = (
    Agent(
        "claude-code",
        ["@anthropic-ai/claude-code"],
        ["claude", "-p", TASK, "--model", "scripted", "--allowedTools", "Read,Write", "--output-format", "text"],
        lambda work: Call("Read", {"file_path": str(work / "in.txt")}),
        lambda work, text: Call("Write", {"file_path": str(work / "out.txt"), "content": text}),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_AUTH_TOKEN": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    ),
    Agent(
        "qwen-code",
        ["@qwen-code/qwen-code"],
        ["qwen", "-p", TASK, "--yolo"],
        lambda work: Call("read_file", {"file_path": str(work / "in.txt")}),
        lambda work, text: Call("write_file", {"file_path": str(work / "out.txt"), "content": text}),
        {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted"},
    ),
    Agent(
        "codex",
        ["@openai/codex"],
        ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK],
        lambda work: Call("exec_command", {"cmd": "cat in.txt"}),
        lambda work, text: Call("exec_command", {"cmd": f"echo {text} > out.txt"}),
        files={".codex/config.toml": CODEX},
    ),
    _opencode("opencode", "@ai-sdk/openai-compatible"),
    _opencode("opencode-responses", "@ai-sdk/openai"),
    Program("anthropic-sdk", ["@anthropic-ai/sdk"], "anthropic_sdk.mjs"),
    Program("openai-chat", ["openai"], "openai_chat.mjs"),
    Program("openai-responses", ["openai"], "openai_responses.mjs"),
    Program("ai-sdk", ["ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "zod"], "ai_sdk.mjs"),
)
"""To add a client, add its row."""


def install(packages: Iterable[str], into: Path) -> Path:
    """Install npm ``packages``, with a Node of their own, and return the directory of their commands."""
    into.mkdir(parents=True, exist_ok=True)
    wanted = sorted({NODE, *packages})
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *wanted], cwd=into, check=True)
    # An npm that asks before it runs install scripts has left them out: they put the programs in their places.
    for script in ("node/installArchSpecificPackage.js", "@anthropic-ai/claude-code/install.cjs"):
        path = into / "node_modules" / script
        if path.is_file():
            subprocess.run(["node", path.name], cwd=path.parent, check=True)
    return into / "node_modules" / ".bin"


def run_agent(client: Agent, commands: Path, home: Path) -> str | None:
    """Let an agent do its task. What went wrong, None if nothing did."""
    work = home / "work"
    work.mkdir()
    secret = f"secret-{secrets.token_hex(4)}"
    (work / "in.txt").write_text(secret + "\n")
    with Backend() as backend, proxy_before(backend, "xml") as url:
        backend.script(agent(client.read(work), lambda text: client.write(work, text)))

        def fill(words: str) -> str:
            return words.replace("{url}", url).replace("{work}", str(work))

        for path, content in client.files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(fill(content))
        environment = {key: fill(value) for key, value in client.environment.items()}
        told = _call([fill(word) for word in client.command], commands, work, home, environment)
        print(f"    said: {told.stdout.strip()[-300:]!r}")
        print(f"    {len(backend.chats)} requests to the model")
    written = (work / "out.txt").read_text() if (work / "out.txt").is_file() else None
    if told.returncode or written is None or written.strip() != secret.upper():
        return f"status {told.returncode}, wrote {written!r}, complained: {told.stderr.strip()[-1500:]}"
    return None


def run_program(client: Program, commands: Path, home: Path) -> str | None:
    """Let a program play all scenarios in both modes. What went wrong, None if nothing did."""
    script = commands.parent.parent / client.script
    script.write_text((HERE / client.script).read_text())  # where its imports are found
    for mode in get_args(Mode):
        with Backend() as backend, proxy_before(backend, mode) as url:
            backend.script(scenarios(mode))
            told = _call(["node", str(script), url], commands, home, home, {})
        played = [line.removeprefix("ok ").strip() for line in told.stdout.splitlines() if line.startswith("ok ")]
        left = [name for name in missing(played) if name not in client.skips]
        print(f"    {mode}: {len(set(played))} scenarios")
        if told.returncode or left:
            return f"{mode}: status {told.returncode}, not played: {left}, complained: {told.stderr.strip()[-1500:]}"
    return None


def _call(
    command: Sequence[str], commands: Path, work: Path, home: Path, environment: Files
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` with no more of this machine's environment than it needs."""
    own = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        command,
        cwd=work,
        env=own | dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def main() -> int:
    """Run the clients that are named, or all. The exit status is the number of those that failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *(client.name for client in CLIENTS)])
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "toolgraft-clients")
    options = parser.parse_args()
    logging.disable()  # the proxy's log: streams that break on purpose
    failed = 0
    for client in CLIENTS:
        if options.names and client.name not in options.names:
            continue
        print(client.name, flush=True)
        commands = install(client.packages, options.dir / client.name)
        with tempfile.TemporaryDirectory(prefix="toolgraft-home-") as home:
            run = run_agent(client, commands, Path(home)) if isinstance(client, Agent) else None
            problem = run if isinstance(client, Agent) else run_program(client, commands, Path(home))
        print(f"  {'failed: ' + problem if problem else 'ok'}", flush=True)
        failed += problem is not None
    return failed


if __name__ == "__main__":
    sys.exit(main())

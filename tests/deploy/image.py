"""Build the image without a container engine, and try it: every step of the Dockerfile in a root of its own.

    python -m tests.deploy.image DEBIAN FOLDER [TARGET]

``DEBIAN`` stands for the base image; ``debootstrap --variant=minbase bookworm DEBIAN`` makes it. ``FOLDER`` gets a root
for each stage. It has to be run by root, on Linux, and shares the network. ``PIP_…`` variables, and the machine's
certificates, are those of the build too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.backend import DONE, Backend, chunk, sse, text
from tests.support.proxy import get, http_client, post

SOURCE = Path(__file__).parents[2]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
URL = "http://127.0.0.1:8787"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "What time is it?"}]}
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}


@dataclass
class Stage:
    """One stage: where its root is, and what its instructions have set."""

    root: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    folder: str = "/"
    user: str = "0:0"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def run(
        self, *command: str, check: bool = True, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the root, as the image's user."""
        return subprocess.run(
            self.inside(command),
            env={**self.environ, **(environ or {})},
            check=check,
            text=True,
            capture_output=not check,
        )

    def inside(self, command: Sequence[str]) -> list[str]:
        enter = ["chroot", f"--userspec={self.user}", str(self.root)]
        return [*enter, "sh", "-c", f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"]


def instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile: the word, and what follows it on its lines."""
    lines = "\n".join(line for line in dockerfile.splitlines() if not line.startswith("#"))
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if line.strip():
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def build(debian: Path, folder: Path) -> dict[str, Stage]:
    """Follow the Dockerfile. Returns its stages by name."""
    stages: dict[str, Stage] = {"debian:bookworm-slim": Stage(debian)}
    stage = stages["debian:bookworm-slim"]
    building = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    for word, rest in instructions((SOURCE / "Dockerfile").read_text("utf-8")):
        print("==", word, rest, flush=True)
        match word:
            case "FROM":
                base, _, name = rest.split()
                root = folder / name
                subprocess.run(["cp", "-a", "--reflink=auto", str(stages[base].root), str(root)], check=True)
                stage = stages[name] = replace(stages[base], root=root, environ=dict(stages[base].environ))
            case "RUN":
                with certificates(stage.root):
                    stage.run("sh", "-c", rest, environ=building)
            case "COPY":
                copy(shlex.split(rest), stage, stages)
            case "WORKDIR":
                stage.folder = rest
                (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "USER":
                stage.user = rest
            case "ENV":
                for pair in shlex.split(rest):
                    name, _, value = pair.partition("=")
                    stage.environ[name] = value.replace("$PATH", stage.environ["PATH"])
            case "ENTRYPOINT":
                stage.entry, stage.command = json.loads(rest), []
            case "CMD":
                stage.command = json.loads(rest)
            case "HEALTHCHECK":
                stage.health = json.loads(rest[rest.index("[") :])
            case "EXPOSE" | "STOPSIGNAL":
                pass
            case _:
                raise SystemExit(f"{word} is not known here.")
    return stages


def copy(words: list[str], stage: Stage, stages: Mapping[str, Stage]) -> None:
    """COPY, of files and folders by their names."""
    source = SOURCE
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, target = words
    to = stage.root / (Path(stage.folder) / target).as_posix().lstrip("/")
    for name in names:
        given = source / name.lstrip("/")
        if given.is_dir():
            shutil.copytree(given, to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(given, to / given.name)


@contextmanager
def certificates(root: Path) -> Iterator[None]:
    """The machine's certificates and name servers for one step: a registry's mirror may need them."""
    inside, before = root / CERTIFICATES.relative_to("/"), b""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    inside.parent.mkdir(parents=True, exist_ok=True)
    if inside.is_file():
        before = inside.read_bytes()
    shutil.copy(CERTIFICATES, inside)
    try:
        yield
    finally:
        if before:
            inside.write_bytes(before)


@contextmanager
def started(stage: Stage, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """The image's own command, running; what it writes is shown when it has ended."""
    process = subprocess.Popen(stage.inside([*stage.entry, *stage.command]), env={**stage.environ, **environ})
    try:
        until_healthy(process)
        yield process
    finally:
        process.kill()
        process.wait()


def until_healthy(process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None, "it ended"
        with suppress(Exception):
            if get(URL + "/health").status_code == 200:
                return
        time.sleep(0.1)


def try_proxy(stage: Stage) -> None:
    """It is healthy, answers in front of a server outside, and lets a stream end when it is told to."""
    with Backend() as backend, started(stage, TOOLGRAFT_BACKEND_URL=backend.url) as process:
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^Uid:\s+10001\s", status, re.MULTILINE), status
        stage.run(*stage.health)
        backend.script(text('<tool_call>{"name": "clock", "arguments": {}}</tool_call>'))
        answer = post(URL + "/v1/chat/completions", json={**CHAT, "tools": [CLOCK]}).json()
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "clock", answer
        pieces = [chunk({"content": str(number)}) for number in range(20)]
        backend.script(sse(*pieces, chunk({}, "stop"), DONE, pause=0.05))
        with (
            http_client(URL) as client,
            client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as stream,
        ):
            rest = stream.iter_raw()
            first = next(rest)
            process.send_signal(signal.SIGTERM)
            assert (first + b"".join(rest)).endswith(DONE.encode())
        assert process.wait(20) == 0


def try_local(stage: Stage) -> None:
    """The embedded model answers."""
    with started(stage):
        asked = {**CHAT, "tools": [CLOCK], "tool_choice": "required"}
        answer = post(URL + "/v1/chat/completions", json=asked).json()
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "clock", answer


def main(debian: str, folder: str, target: str = "proxy") -> None:
    stages = build(Path(debian).resolve(), Path(folder).resolve())
    stage = stages[target]
    assert stage.run("toolgraft", "--version", check=False).returncode == 0
    for compiler in ("gcc", "cc", "c++", "pip3"):
        assert stage.run("sh", "-c", f"command -v {compiler}", check=False).returncode != 0, compiler
    (try_local if target == "local" else try_proxy)(stage)
    size = subprocess.run(["du", "-sm", "--apparent-size", str(stage.root)], capture_output=True, text=True, check=True)
    print(f"{target} is built, and works: {size.stdout.split()[0]} MB in all")


if __name__ == "__main__":
    main(*sys.argv[1:])

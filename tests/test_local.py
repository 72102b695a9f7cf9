"""The embedded engine with its real model: it answers, it ends with its parent, and its failures are told."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy.core.errors import ConfigError
from proxy.local import LocalModel
from proxy.weights import ensure_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model_file() -> Path:
    return ensure_model(lambda done, total: None)


@pytest.fixture
def model(model_file: Path) -> Iterator[LocalModel]:
    with LocalModel(model_file) as model:
        yield model


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    no_proxies = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with no_proxies.open(urllib.request.Request(url, json.dumps(body).encode() if body else None)) as reply:
        return json.load(reply)


def test_it_answers(model: LocalModel) -> None:
    assert model.alive
    assert ask(f"{model.url}/health") == {"status": "ok"}
    hello = [{"role": "user", "content": "Say hello."}]
    reply = ask(f"{model.url}/v1/chat/completions", {"messages": hello, "max_tokens": 4})
    assert reply["usage"]["completion_tokens"] == 4


def test_its_name_and_room(model: LocalModel) -> None:
    assert model.alias == "SmolLM2-135M-Instruct.Q4_1"
    assert ask(f"{model.url}/v1/models")["data"][0]["id"] == model.alias
    props = ask(f"{model.url}/props")
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 8192


def test_the_default_model_has_its_own_name() -> None:
    assert LocalModel().alias == "SmolLM2-135M-Instruct"


def test_stop_ends_it(model: LocalModel) -> None:
    process = model._process
    model.stop()
    assert not model.alive
    assert process is not None
    assert process.returncode == 0
    model.stop()


def test_a_crash_is_noticed(model: LocalModel) -> None:
    assert model._process is not None
    model._process.kill()
    model._process.wait()
    assert not model.alive
    assert model.last_words().endswith(f"(exit status {-signal.SIGKILL})")


PARENT = """\
import pathlib, sys, time
from proxy.local import LocalModel
model = LocalModel(pathlib.Path(sys.argv[1]))
model.start()
print(model._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks the engine's process up in /proc")
def test_it_ends_when_its_parent_is_killed(model_file: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(model_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[1]) as parent:
        assert parent.stdout is not None
        engine = Path("/proc") / parent.stdout.readline().decode().strip()
        assert b"engine.py" in (engine / "cmdline").read_bytes()
        parent.kill()
    patience = time.monotonic() + 30
    while b"engine.py" in _command_line(engine) and time.monotonic() < patience:
        time.sleep(0.05)
    assert b"engine.py" not in _command_line(engine)


def _command_line(process: Path) -> bytes:
    """The command line of a process of /proc, empty once it has ended."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_ctrl_c_is_left_to_the_parent(model: LocalModel) -> None:
    assert model._process is not None
    os.kill(model._process.pid, signal.SIGINT)
    assert ask(f"{model.url}/health") == {"status": "ok"}
    assert model.alive


def test_the_engine_says_why_it_cannot_load(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"x" * 100)
    model = LocalModel(broken)
    with pytest.raises(ConfigError, match=r"broken.gguf did not start(?s:.*)only supports up to version") as caught:
        model.start()
    assert "(exit status 1)" in caught.value.message
    assert not model.alive


def test_a_start_that_takes_too_long_is_given_up(model_file: Path) -> None:
    with pytest.raises(ConfigError, match="did not start"):
        LocalModel(model_file).start(timeout=0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"PK\x03\x04 a wheel, say", "is not a GGUF model file"), (b"", "is not a GGUF model file")],
)
def test_another_kind_of_file(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint):
        LocalModel(path).start()


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.gguf cannot be read: No such file"):
        LocalModel(tmp_path / "nowhere.gguf").start()


def test_without_the_extra_the_mend_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "toolgraft\[local\]"'):
        LocalModel().start()

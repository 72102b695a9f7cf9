"""The embedded model: llama.cpp's own server in a child process, on a loopback port of its own.

A child process, because the engine is native code: what kills it must not kill the proxy.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from proxy.core.errors import ConfigError
from proxy.weights import SMOLLM2, Progress, ensure_model

ENGINE = Path(__file__).with_name("engine.py")
GGUF_MAGIC = b"GGUF"
LOG_TAIL = 8192
"""How much of the end of the engine's output is looked at, in bytes."""


def require_extra(*modules: str) -> None:
    """Raise ``ConfigError`` with the mend unless ``modules``, which the ``local`` extra brings, are installed."""
    if missing := [name for name in modules if not importlib.util.find_spec(name)]:
        raise ConfigError(f'{", ".join(missing)} is not installed. Install it with: pip install "toolgraft[local]"')


def check_gguf(path: Path) -> None:
    """Raise ``ConfigError`` unless ``path`` is a model file in llama.cpp's format."""
    try:
        with path.open("rb") as file:
            head = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise ConfigError(f"The model file {path} cannot be read: {error.strerror or error}.") from error
    if head != GGUF_MAGIC:
        raise ConfigError(f"{path} is not a GGUF model file: it starts with {head!r} instead of {GGUF_MAGIC!r}.")


class LocalModel:
    """A model file being served. Usable as a context manager, or by ``start`` and ``stop``.

    ``model_file`` None means SmolLM2-135M-Instruct, fetched at the first start (``progress`` hears of it).
    ``alias`` is the model name the server reports. ``context`` is in tokens, shared by ``slots`` replies at a time;
    it is capped by what the model was trained on (8,192 for SmolLM2). ``threads`` None goes by the cores.
    ``template`` is a Jinja chat template to use instead of the model file's own.
    """

    def __init__(
        self,
        model_file: Path | None = None,
        *,
        alias: str | None = None,
        context: int = 8192,
        slots: int = 2,
        threads: int | None = None,
        template: str | None = None,
        progress: Progress = lambda done, total: None,
    ) -> None:
        self.alias = alias or (model_file.stem if model_file else SMOLLM2.name)
        self.url = ""
        self._model_file = model_file
        self._settings = {
            "alias": self.alias,
            "context": context,
            "slots": slots,
            "threads": threads,
            "template": template,
        }
        self._progress = progress
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def start(self, timeout: float = 600) -> None:
        """Return when the model has generated a token; ``url`` (``http://127.0.0.1:PORT``) is set then.

        Raises ``ConfigError`` when it cannot be had or does not answer within ``timeout`` seconds.
        """
        require_extra("xllamacpp", "filelock")
        path = self._model_file or ensure_model(self._progress)
        check_gguf(path)
        options = json.dumps({"model": str(path.absolute()), **self._settings})
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `stop`)
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter, our own script)
            [sys.executable, "-P", str(ENGINE), options],
            stdin=subprocess.PIPE,  # held open: the engine ends when it closes, however this process ends
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        try:
            line = self._first_line(self._process, timeout)
        except BaseException:  # Ctrl-C while it loads
            self.stop()
            raise
        if not line:
            self._process.wait()
            words = self.last_words()
            self.stop()
            raise ConfigError(f"The model {path} did not start. The engine's last words:\n{words}")
        self.url = json.loads(line)["url"]

    @staticmethod
    def _first_line(process: subprocess.Popen[bytes], timeout: float) -> bytes:
        """What the engine says when it is ready; empty when it ended, or was ended after ``timeout`` seconds."""
        guard = threading.Timer(timeout, process.kill)
        guard.start()
        try:
            return cast("IO[bytes]", process.stdout).readline()
        finally:
            guard.cancel()

    @property
    def alive(self) -> bool:
        """Whether the engine's process runs."""
        return self._process is not None and self._process.poll() is None

    def wait(self) -> None:
        """Return when the engine's process has ended, by itself or by ``stop``."""
        if self._process is not None:
            self._process.wait()

    def last_words(self, lines: int = 12) -> str:
        """The end of what the engine printed, with how it ended; for the message when it did."""
        if self._process is None or self._log is None:
            return ""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - LOG_TAIL))
        said = self._log.read().decode(errors="replace").splitlines()[-lines:]
        return "\n".join([*said, f"(exit status {self._process.poll()})"])

    def stop(self) -> None:
        """End the engine; at once, as nobody reads its replies any more. Harmless when it already ended."""
        if self._process is None or self._log is None:
            return
        try:
            self._process.communicate(timeout=5)  # closes its stdin
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._log.close()
        self._process = self._log = None

    def __enter__(self) -> LocalModel:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

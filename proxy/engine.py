"""The embedded engine's process: llama.cpp's HTTP server over one model file, for as long as its parent lives.

Run as a script by ``proxy.local`` with the options as one JSON argument (``model``, ``alias``, ``context``, ``slots``,
``threads``, ``template``). It writes one JSON line ``{"url": …}`` when the model has answered, then lives until its
stdin closes.
Everything the engine prints goes to stderr. It imports nothing else of this package.
"""

from __future__ import annotations

import ctypes
import http.client
import importlib
import json
import os
import signal
import sys
from typing import Any
from urllib.parse import urlsplit

PR_SET_PDEATHSIG = 1


def main(options: dict[str, Any]) -> None:
    """Load the model, answer one token, say where, and wait for the parent to go."""
    answer = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends Ctrl-C to both; the parent decides
    # Loading holds the interpreter, so stdin cannot be watched meanwhile: until then the kernel watches the parent.
    # Not longer, for what the kernel watches is the thread that started this process.
    _die_with_parent(signal.SIGKILL)
    server = _serve(options)
    _generate_one_token(server.listening_address)
    _die_with_parent(0)
    with os.fdopen(answer, "w") as out:
        out.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdin.buffer.read()
    os._exit(0)  # without the engine's orderly end, which waits for replies that nobody reads any more


def _die_with_parent(signum: int) -> None:
    """Ask Linux to send ``signum`` when the parent dies (0 = no longer)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)


def _serve(options: dict[str, Any]) -> Any:
    """The running server, on a loopback port that the system chose. Raises ``RuntimeError`` if the model won't load."""
    engine = importlib.import_module("xllamacpp")  # untyped, and only here when asked for
    params = engine.CommonParams()
    params.model.path = options["model"]
    params.model_alias = {options["alias"]}
    params.n_ctx = options["context"]
    params.n_parallel = options["slots"]
    params.kv_unified = True  # each slot may use the whole context, not its share of it
    params.cpuparams.n_threads, params.cpuparams_batch.n_threads = _threads(options["threads"])
    params.cache_ram_mib = 256  # the engine's own default for remembered prompts is 8 GiB
    params.cors_origins, params.cors_origins_explicit = "http://127.0.0.1", True  # no web page is to talk to it
    if options.get("template"):
        params.chat_template = options["template"]
    params.warmup = False  # the one token below is that
    params.ui = False
    params.offline = True
    params.verbosity = 2  # errors and warnings
    return engine.Server(params)


def _threads(wanted: int | None) -> tuple[int, int]:
    """How many threads write tokens, and how many read prompts: ``wanted``, else the cores (at most 8) but one and all.

    The engine's threads wait for each other by spinning, at every step of every token. With as many as there are cores,
    any other work on the machine (the proxy's own, say) may hold up all of them: 7 tokens/s instead of 28 in one
    measurement on two cores, one kept busy. Reading prompts on both cores took half the time of one while the machine
    was quiet, and no longer than one while it was busy.
    """
    if wanted is not None:
        return wanted, wanted
    cores = min(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1, 8)
    return max(1, cores - 1), cores


def _generate_one_token(url: str) -> None:
    """Prove that the port answers and the model generates. Raises ``RuntimeError`` or ``OSError`` if not."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    one_token = json.dumps({"prompt": "Hello", "n_predict": 1})
    for method, path, body in (("GET", "/health", None), ("POST", "/completion", one_token)):
        connection.request(method, path, body)
        response = connection.getresponse()
        said = response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}: {said[:500]!r}")
    connection.close()


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except (RuntimeError, OSError) as error:  # the engine printed its reasons; a traceback would only bury them
        sys.exit(f"{type(error).__name__}: {error}")

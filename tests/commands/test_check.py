from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proxy.cli import main
from proxy.commands import embedded
from tests.support.backend import Backend, error, silence
from tests.support.conversations import FIXTURES
from tests.support.models import PROTOCOL, llama_cpp, model, ollama, serving, talk, vllm
from tests.support.proxy import free_port

pytestmark = pytest.mark.slow


def check(backend: Backend | str, *options: str, **environ: str) -> Result:
    url = backend if isinstance(backend, str) else backend.url
    return CliRunner().invoke(main, ["check", "--backend", url, *options], env=environ)


def report(backend: Backend, *options: str) -> tuple[int, Any]:
    result = check(backend, "--quick", "--json", *options)
    return result.exit_code, json.loads(result.stdout)


def ways(told: Any) -> dict[str, int]:
    """The right replies of each way."""
    return {name: score["right"] for name, score in told["trial"].items()}


def test_llama_cpp_whose_template_knows_no_tools() -> None:
    with llama_cpp(model(forced_by="grammar")) as backend:
        code, told = report(backend)
    assert code == 0
    assert ways(told) == {"xml": 6, "example": 6, "forced": 4}
    assert told["recommended"]["settings"] == {"url": backend.url}


def test_ollama_with_a_model_that_calls_tools() -> None:
    with ollama(model(native=True), tools=True) as backend:
        code, told = report(backend)
    assert code == 0
    assert ways(told)["native"] == ways(told)["auto"] == 6
    assert told["recommended"]["settings"] == {"url": backend.url}


def test_ollama_with_a_model_that_says_it_can_and_does_not() -> None:
    with ollama(model(needs=PROTOCOL), tools=True) as backend:
        code, told = report(backend)
    assert code == 0
    assert (ways(told)["native"], ways(told)["auto"], ways(told)["xml"]) == (2, 2, 6)
    assert told["recommended"]["command"].endswith("--dispatcher xml")


def test_ollama_with_a_model_whose_calls_it_leaves_in_the_text() -> None:
    with ollama(model(), tools=True) as backend:
        code, told = report(backend)
    assert code == 0
    assert (ways(told)["native"], ways(told)["auto"]) == (2, 6)
    assert told["recommended"]["settings"] == {"url": backend.url}


def test_vllm_without_its_parser() -> None:
    refusal = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
    with vllm(model(refuses_tools=refusal)) as backend:
        code, told = report(backend)
    assert code == 0
    assert ways(told)["xml"] == 6
    assert told["recommended"]["settings"].get("dispatcher", "auto") != "native"


def test_a_server_that_nobody_knows() -> None:
    with serving(model(native=True)) as backend:
        code, told = report(backend)
    assert code == 0
    assert ways(told)["native"] == ways(told)["auto"] == 6


def test_for_people() -> None:
    with llama_cpp(model(forced_by="grammar")) as backend:
        result = check(backend, "--quick")
    assert result.exit_code == 0
    assert "llama.cpp b9-x" in result.stdout
    assert "[[backend]]" in result.stdout
    assert f"or: {shlex.join(['toolgraft', 'serve', '--backend', backend.url])}" in result.stdout
    assert result.stderr == ""


def test_a_model_that_never_calls_is_something_to_mend() -> None:
    with llama_cpp(model(talk)) as backend:
        result = check(backend, "--quick")
    assert result.exit_code == 1
    assert "calls no tool in any way" in result.stdout
    assert "Try a larger model" in result.stdout


def test_a_small_context_is_something_to_mend() -> None:
    with llama_cpp(model(), context=1024) as backend:
        code, told = report(backend)
    assert code == 1
    assert [each["mend"] for each in told["findings"] if each["level"] == "bad"] == [
        "Start llama-server with a larger -c."
    ]


def test_nobody_there() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = check(url)
    assert result.exit_code == 2
    assert "cannot be reached" in result.stdout
    assert "See that the server runs" in result.stdout


def test_a_server_that_hangs() -> None:
    with serving(silence, v1__models=silence) as backend:
        result = check(backend, "--timeout", "0.2", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["fine"] is False


def test_a_key_is_sent_and_never_shown() -> None:
    with llama_cpp(model()) as backend:
        result = check(backend, "--quick", "--backend-key-env", "MY_KEY", MY_KEY="sk-secret")
        keys = {request.header("authorization") for request in backend.requests}
    assert keys == {"Bearer sk-secret"}
    assert 'key_env = "MY_KEY"' in result.stdout
    assert "sk-secret" not in result.output


def test_a_key_that_is_missing() -> None:
    with serving(model(), v1__models=error(401, "no key")) as backend:
        result = check(backend)
    assert result.exit_code == 2
    assert "--backend-key-env" in result.stdout


def test_the_query_of_a_url_is_not_shown() -> None:
    with llama_cpp(model()) as backend:
        result = check(f"{backend.url}/v1/chat/completions?key=secret", "--quick")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"toolgraft check: {backend.url}/v1/chat/completions\n")


@pytest.mark.parametrize("options", [[], ["--backend", "http://127.0.0.1:9", "--local"]])
def test_there_is_one_backend(options: list[str]) -> None:
    result = CliRunner().invoke(main, ["check", *options])
    assert result.exit_code == 2
    assert "either --backend URL or --local" in result.output


def test_a_url_that_is_none() -> None:
    result = check("127.0.0.1:9")
    assert result.exit_code == 2
    assert "has no scheme" in result.output


def test_the_embedded_model_can_be_checked(monkeypatch: pytest.MonkeyPatch, state_file: Path) -> None:
    with llama_cpp(model(forced_by="grammar")) as backend:

        class Fake:
            alias, url = "fake", backend.url

            def __init__(self, model_file: Path | None, progress: object) -> None:
                assert model_file is None

            def __enter__(self) -> Fake:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        monkeypatch.setattr(embedded, "LocalModel", Fake)
        result = CliRunner().invoke(main, ["check", "--local", "--quick"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "toolgraft check: the embedded model"
    assert result.stdout.endswith("Recommended: toolgraft serve --local\n")
    assert not state_file.exists()


def test_the_readme_tells_of_it() -> None:
    assert "toolgraft check --backend" in (FIXTURES.parent / "README.md").read_text("utf-8")

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from unittest.mock import Mock

import pytest
from click.testing import CliRunner, Result

from proxy import server
from proxy.cli import main
from proxy.commands import embedded
from proxy.commands.serve import serve as serve_command
from proxy.config import Config
from proxy.core.model import Tool
from proxy.core.prompt import PromptOptions
from proxy.reload import Source
from proxy.template_file import read_template
from tests.support.backend import DONE, Backend, chunk, sse, text
from tests.support.conversations import FIXTURES
from tests.support.proxy import free_port, get, http_client

TOOL = Tool("clock")
COMMAND = [sys.executable, "-c", "from proxy.cli import main; main()", "serve"]


@contextmanager
def serving(*options: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and the URL that it says it listens on."""
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        assert process.stdout
        line = process.stdout.readline()
        yield process, line.split(" listens on ")[1].split("/v1")[0]
    finally:
        process.kill()
        process.communicate()


def test_it_says_where_it_listens_though_the_backend_is_down() -> None:
    backend = f"http://127.0.0.1:{free_port()}"
    with serving("--backend", backend) as (process, url):
        assert get(url + "/health").status_code == 200
        assert get(url + "/ready").status_code == 503
        assert process.poll() is None


def test_a_misspelt_variable_is_warned_of() -> None:
    with serving("--backend", "http://127.0.0.1:9", TOOLGRAFT_PROT="1") as (process, _):
        process.terminate()
        assert process.stderr
        assert "TOOLGRAFT_PROT is no setting and does nothing. Did you mean TOOLGRAFT_PORT?" in process.stderr.read()
    assert "Did you mean TOOLGRAFT_BACKEND_URL?" in serve(TOOLGRAFT_BAKEND_URL="http://h").output.replace("\n", " ")


def test_it_does_not_show_the_query_of_the_backend_s_url_which_may_hold_a_key() -> None:
    backend = f"http://127.0.0.1:{free_port()}/v1/chat/completions"
    with subprocess.Popen(
        [*COMMAND, "--port", "0", "--backend", f" {backend}?key=secret\n"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline().endswith(f" in front of {backend}\n")
        process.kill()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_open_streams_have_ended(signum: signal.Signals) -> None:
    pieces = [chunk({"content": str(number)}) for number in range(20)]
    with Backend() as backend, serving("--backend", backend.url, "--dispatcher", "native") as (process, url):
        backend.script(sse(*pieces, chunk({}, "stop"), DONE, pause=0.03))
        asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        with http_client(url) as client, client.stream("POST", "/v1/chat/completions", json=asked) as answer:
            raw = answer.iter_raw()
            first = next(raw)
            process.send_signal(signum)
            rest = b"".join(raw)
        assert (first + rest).endswith(DONE.encode())
        assert process.wait(20) == 0
        assert process.stderr
        log = process.stderr.read()
    assert "Traceback" not in log
    assert " request id=" in log


def next_line(process: subprocess.Popen[str], wanted: str) -> str:
    """The next line of the log that has ``wanted``."""
    assert process.stderr
    return next(line for line in process.stderr if wanted in line)


def test_sighup_reads_the_settings_again(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    pieces = [chunk({"content": str(number)}) for number in range(20)]
    with Backend() as backend, Backend() as other:
        file.write_text(f"[[backend]]\nurl = '{backend.url}'\ndispatcher = 'native'")
        with serving("--config", str(file)) as (process, url), http_client(url) as client:
            asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            backend.script(sse(*pieces, chunk({}, "stop"), DONE, pause=0.03))
            with client.stream("POST", "/v1/chat/completions", json={**asked, "stream": True}) as answer:
                raw = answer.iter_raw()
                first = next(raw)
                file.write_text("[[backend]]\nurll = 'x'")
                process.send_signal(signal.SIGHUP)
                assert "no key `urll`" in next_line(process, "the settings are as they were")
                file.write_text(f"[[backend]]\nurl = '{other.url}'\ndispatcher = 'native'")
                process.send_signal(signal.SIGHUP)
                next_line(process, "the settings were read again")
                other.script(text("hi"))
                assert client.post("/v1/chat/completions", json=asked).status_code == 200
                rest = b"".join(raw)
            assert (first + rest).endswith(DONE.encode())
            assert (len(backend.chats), len(other.chats)) == (1, 1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_it_ends_with_its_terminal() -> None:
    """A terminal that is closed sends SIGHUP too; whoever ran the command there wants it gone."""
    controller, terminal = os.openpty()
    program = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from proxy.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "serve", "--port", "0", "--backend", "http://127.0.0.1:9"],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        assert process.stdout
        assert " listens on " in process.stdout.readline()
        os.close(controller)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_log_can_be_json() -> None:
    with Backend() as backend, serving("--backend", backend.url, "--log-format", "json") as (process, url):
        get(url + "/nowhere")
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert process.stderr
        assert '"message": "request"' in process.stderr.read()


# ---- in this process, with a server that only takes notes


class Server:
    """Takes notes and ends at once."""

    configs: ClassVar[list[Config]] = []

    def __init__(self, config: Config, bound: object, ready: Callable[[str], None], source: Source) -> None:
        self.configs.append(config)
        ready("http://127.0.0.1:1")

    def serve_until_signal(self) -> None:
        """End at once."""


@pytest.fixture
def configs(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations that servers were started with."""
    Server.configs.clear()
    monkeypatch.setattr(server, "Server", Server)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("proxy.telemetry.configure", lambda **_: None)
    monkeypatch.setattr("proxy.commands.serve.gc", Mock())
    return Server.configs


def serve(*options: str, **environ: str) -> Result:
    return CliRunner(env=environ).invoke(main, ["serve", "--port", "0", *options])


def test_options_become_the_configuration(configs: list[Config]) -> None:
    options = ["--backend", "http://127.0.0.1:9", "--dispatcher", "xml", "--model", "m", "--backend-key-env", "KEY"]
    result = serve(*options, "--forward-client-key", "--no-system-role", KEY="sk-1")
    assert result.exit_code == 0, result.output
    (config,) = configs
    backend = config.backends[0]
    assert (backend.url, backend.dispatcher, backend.model) == ("http://127.0.0.1:9", "xml", "m")
    assert (backend.key, backend.forward_client_key) == ("sk-1", True)
    assert (backend.system_role, backend.prompt) == (False, PromptOptions())
    assert config.host == "127.0.0.1"


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ((), ()),
        (("--host", "0.0.0.0"), ("Whoever reaches this machine",)),
        (("--host", "0.0.0.0", "--client-key-env", "KEY"), ()),
        (("--cors-origins", "*"), ("Every web page",)),
        (("--cors-origins", "*", "--client-key-env", "KEY"), ()),
        (("--cors-origins", "https://a.example"), ()),
    ],
)
def test_what_is_open_without_a_key_is_warned_of(
    configs: list[Config], caplog: pytest.LogCaptureFixture, options: tuple[str, ...], warned: tuple[str, ...]
) -> None:
    result = serve("--backend", "http://127.0.0.1:9", *options, KEY="tg-1")
    assert result.exit_code == 0, result.output
    told = [record.getMessage() for record in caplog.records if record.name == "toolgraft"]
    assert len(told) == len(warned)
    assert all(line.startswith(start) for line, start in zip(told, warned, strict=True))


def test_the_readme_names_every_flag() -> None:
    readme = (FIXTURES.parent / "README.md").read_text("utf-8")
    flags = [flag for option in serve_command.params for flag in (*option.opts, *option.secondary_opts)]
    assert "--prompt-example" in flags
    assert [flag for flag in flags if not re.search(rf"^\|.*`{flag}[` ]", readme, re.MULTILINE)] == []


def test_little_is_needed(configs: list[Config]) -> None:
    assert serve("--backend", "http://127.0.0.1:9").exit_code == 0
    backend = configs[0].backends[0]
    assert (backend.dispatcher, backend.model, backend.key) == ("auto", None, None)
    assert (backend.forward_client_key, backend.system_role) == (False, True)


def test_the_prompt_can_be_set(configs: list[Config]) -> None:
    own = FIXTURES / "prompts" / "own.jinja"
    options = ["--prompt-example", "on", "--prompt-style", "compact", "--prompt-template", str(own)]
    assert serve("--backend", "http://127.0.0.1:9", *options).exit_code == 0
    prompt = configs[0].backends[0].prompt
    assert (configs[0].backends[0].prompt_example, prompt.style) == ("on", "compact")
    assert prompt.template is not None
    assert prompt.template.render([TOOL]) == read_template(own).render([TOOL])


@pytest.mark.parametrize(("given", "told"), [("auto", None), ("true", True), ("false", False)])
def test_how_replies_are_read_can_be_set(configs: list[Config], given: str, told: bool | None) -> None:
    options = ["--dialect", "mistral", "--starts-in-reasoning", given]
    assert serve("--backend", "http://127.0.0.1:9", *options).exit_code == 0
    assert (configs[0].backends[0].dialect, configs[0].backends[0].starts_in_reasoning) == ("mistral", told)


@pytest.mark.parametrize("options", [[], ["--backend", "http://127.0.0.1:9", "--local"]])
def test_there_is_one_backend(configs: list[Config], options: list[str]) -> None:
    result = serve(*options)
    assert result.exit_code == 2
    assert "either --backend URL or --local" in result.output
    assert configs == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--backend", "127.0.0.1:8080"], "http://127.0.0.1:8080"),
        (["--backend", "http://127.0.0.1:9", "--backend-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY"),
        (["--backend", "http://127.0.0.1:9", "--host", "no-such-host.invalid"], "--host"),
        (["--backend", "http://127.0.0.1:9", "--prompt-template", "no-such.jinja"], "no-such.jinja cannot be read"),
        (["--local", "--prompt-template", os.devnull], "Print each tool whole"),
        (["--backend", "http://127.0.0.1:9", "--dialect", "klingon"], "hermes"),
    ],
)
def test_what_cannot_be_used_is_one_line(monkeypatch: pytest.MonkeyPatch, options: list[str], words: str) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr("proxy.telemetry.configure", lambda **_: None)
    result = serve(*options)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1
    assert words in result.output


TWO = """\
host = "127.0.0.1"

[[backend]]
name = "a"
url = ["http://127.0.0.1:9", "http://127.0.0.1:10/v1/chat/completions?x"]
models = ["x"]

[[backend]]
name = "b"
url = "http://127.0.0.1:11"
default = true
"""


def test_a_file_may_name_the_backends(configs: list[Config], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "x.toml"
    file.write_text(TWO)
    result = serve("--config", str(file), TOOLGRAFT_LOG_FORMAT="json")
    assert result.exit_code == 0, result.output
    assert [backend.name for backend in configs[0].backends] == ["a", "b"]
    assert configs[0].log_format == "json"
    assert result.output == (
        "Toolgraft listens on http://127.0.0.1:1/v1 in front of a (http://127.0.0.1:9, "
        "http://127.0.0.1:10/v1/chat/completions), b (http://127.0.0.1:11)\n"
    )


def test_the_file_in_the_folder_is_read(configs: list[Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolgraft.toml").write_text("[[backend]]\nurl = 'http://127.0.0.1:9'\nreask = 3")
    with Backend() as backend:
        assert serve().exit_code == 0
        assert serve("--backend", backend.url, "--no-system-role").exit_code == 0
    assert [(config.backends[0].url, config.backends[0].reask) for config in configs] == [
        ("http://127.0.0.1:9", 3),
        (backend.url, 1),
    ]
    assert [config.backends[0].system_role for config in configs] == [True, False]


def test_a_file_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(TWO + "prot = 3")
    result = serve("--config", str(file))
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {file}, line 12: there is no key `prot` here.")
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "x"], "Invalid value for '--port': it must be a whole number from 0 to 65535."),
        (["--dispatcher", "nativ"], "'nativ' is not one of 'auto', 'native', 'xml'"),
        (["--backend-key-env", "sk-1"], "the name of an environment variable"),
    ],
)
def test_an_option_that_is_wrong_is_an_error_of_use(options: list[str], words: str) -> None:
    result = CliRunner().invoke(main, ["serve", "--backend", "http://127.0.0.1:9", *options])
    assert result.exit_code == 2
    assert words in result.output
    assert "sk-1" not in result.output


def test_a_port_in_use_is_one_line() -> None:
    with server.bind("127.0.0.1", 0) as held:
        held.listen()
        port = held.getsockname()[1]
        options = ["--backend", "http://127.0.0.1:9", "--port", str(port)]
        done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: Port {port} on 127.0.0.1 is in use.")
    assert done.stderr.count("\n") == 1


class Model:
    """An embedded model that starts at once."""

    url = "http://127.0.0.1:5"

    def __init__(self, file: Path | None, events: list[str]) -> None:
        self._events = events
        events.append(f"file {file}")

    def __enter__(self) -> Model:
        self._events.append("started")
        return self

    def __exit__(self, *_: object) -> None:
        self._events.append("stopped")


@pytest.fixture
def events(configs: list[Config], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    happened: list[str] = []

    def serve_beside(_: object, model: Model) -> None:
        happened.append(f"served {model.url}")

    monkeypatch.setattr(embedded, "embedded_model", lambda file: Model(file, happened))
    monkeypatch.setattr(embedded, "serve_beside", serve_beside)
    return happened


def test_the_embedded_model_lives_as_long_as_the_server(configs: list[Config], events: list[str]) -> None:
    assert serve("--local").exit_code == 0
    assert configs[0].backends[0].url == Model.url
    assert configs[0].backends[0].prompt == PromptOptions()
    assert events == ["file None", "started", f"served {Model.url}", "stopped"]


def test_another_model_file_can_be_served(configs: list[Config], events: list[str], tmp_path: Path) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(b"GGUF")
    assert serve("--model-file", str(file)).exit_code == 0
    assert events[0] == f"file {file}"


def test_what_stays_is_not_looked_through_for_garbage(configs: list[Config], monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Mock()
    monkeypatch.setattr("proxy.commands.serve.gc", collector)
    assert serve("--backend", "http://127.0.0.1:9").exit_code == 0
    assert [call[0] for call in collector.mock_calls] == ["freeze", "set_threshold"]

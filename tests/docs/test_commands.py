"""Every command of the documentation can be given: options exist, values are of their kind, files are there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec

import click
import httpx2
import pytest
from click.testing import CliRunner

from proxy.access import hash_key
from proxy.cli import COMMANDS, main
from proxy.config import BackendConfig, Config
from proxy.reload import Source
from proxy.server import in_background
from tests.docs.pages import ROOT, SHELL, Found, blocks, commands, spans
from tests.support.backend import Backend
from tests.support.proxy import http_client

KEY = "tg-docs"
SHELL_BLOCKS = blocks(*SHELL)
OURS = re.compile(r"(?:tests|docs|proxy|fixtures|\.ci)/[\w./-]*\w")

FOREIGN = {
    *("--target", "--profile"),  # docker
    *("--max-num-seqs", "--tool-call-parser", "--enable-auto-tool-choice"),  # vLLM
    *("--profile", "--against"),  # this project's benchmark
}
"""Options of other programs that the prose names."""


def given(*, piped: bool = False) -> list[tuple[Found, list[str]]]:
    """The commands of toolgraft's in blocks, or those of them that something is piped into."""
    return [
        (block, words)
        for block in SHELL_BLOCKS
        for words, before in commands(block.text)
        if words[0].rpartition("/")[2] == "toolgraft" and (before == "|") >= piped
    ]


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that ``words`` name, and what is left of them."""
    assert isinstance(main, click.Group)
    name = words[1]
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"there is no command {name}"
    return command, words[2:]


def options(command: click.Command) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}


@pytest.mark.parametrize(("where", "words"), given(), ids=str)
def test_a_command_can_be_given(where: Found, words: list[str]) -> None:
    command, rest = command_of(words)
    command.make_context(words[1], rest)


def test_commands_are_found_in_the_first_page_and_in_others() -> None:
    assert len({where.page for where, _ in given()}) > 1


@pytest.mark.parametrize("span", [each for each in spans() if each.text.startswith("toolgraft ")], ids=str)
def test_what_the_prose_names_is_there(span: Found) -> None:
    words = span.text.split()
    if words[1].startswith("-"):
        assert words[1] in options(main)
        return
    if words[1].isupper():  # a word that stands for any command
        return
    command, rest = command_of(words)
    for word in rest:
        if word.startswith("--"):
            assert word.partition("=")[0] in options(command)


@pytest.mark.parametrize("span", [each for each in spans() if re.match(r"--\w", each.text)], ids=str)
def test_each_option_that_the_prose_names_is_one(span: Found) -> None:
    known = {name for command in COMMANDS for name in options(command_of(["toolgraft", command])[0])}
    assert re.sub(r"[^\w-].*", "", span.text) in known | FOREIGN


@pytest.mark.parametrize("name", ["serve", "check"])
def test_the_first_page_has_every_option(name: str) -> None:
    told = " ".join(span.text for span in spans() if span.page.name == "README.md" and span.page.parent == ROOT)
    command, _ = command_of(["toolgraft", name])
    for option in options(command) - {"--help"}:
        assert option in told


@pytest.mark.parametrize("found", [*SHELL_BLOCKS, *spans()], ids=str)
def test_modules_and_files_that_are_named_are_there(found: Found) -> None:
    for module in re.findall(r"python3? -m ((?:tests|proxy)[\w.]*)", found.text):
        assert find_spec(module) is not None
    for path in OURS.findall(found.text) if re.match(r"[\w./ -]*$", found.text) else ():
        assert (ROOT / path).exists() or (found.page.parent / path).exists(), path


@pytest.mark.parametrize(("where", "words"), given(piped=True), ids=str)
def test_what_is_piped_into_a_command_is_taken(where: Found, words: list[str]) -> None:
    said = next(words[1] for words, _ in commands(where.text) if words[0] == "echo")
    result = CliRunner().invoke(main, words[1:], input=said)
    assert result.exit_code == 0, result.output


# ---- requests


def requests() -> list[tuple[Found, str, str, dict[str, str], str | None]]:
    """Method, path, headers and body of each request that is made with curl."""
    return [
        (block, *_request(words)) for block in SHELL_BLOCKS for words, _ in commands(block.text) if words[0] == "curl"
    ]


def _request(words: list[str]) -> tuple[str, str, dict[str, str], str | None]:
    rest = iter(words[1:])
    method, url = "", ""
    headers: dict[str, str] = {}
    body: str | None = None
    for word in rest:
        match word:
            case "-X":
                method = next(rest)
            case "-H":
                name, _, value = next(rest).partition(":")
                headers[name] = value.strip()
            case "-d":
                body = next(rest)
            case _:
                assert not word.startswith("-"), f"{word} is not known here"
                url = word
    path = re.sub(r"^http://127\.0\.0\.1:8787(?=/)", "", url)
    assert path.startswith("/"), url
    return method or ("GET" if body is None else "POST"), path, headers, body


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    with Backend() as backend:
        ours = BackendConfig(backend.url, dispatcher="xml")
        config = Config((ours,), port=0, client_keys={"ann": hash_key(KEY.encode())}, may_reload=("ann",))
        with in_background(config, Source(lambda: config)) as server, http_client(server.url) as http:
            yield http


@pytest.mark.parametrize(("where", "method", "path", "headers", "body"), requests(), ids=str)
def test_a_request_is_answered(
    client: httpx2.Client, where: Found, method: str, path: str, headers: dict[str, str], body: str | None
) -> None:
    if body is not None:
        json.loads(body)
    shown = {"authorization": f"Bearer {KEY}", **headers}
    shown = {name: value.replace("$KEY", KEY) for name, value in shown.items()}
    answer = client.request(method, path, headers=shown, content=body)
    assert answer.status_code == 200, answer.text

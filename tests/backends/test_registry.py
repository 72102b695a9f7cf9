"""How a backend's URL is read."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.backends.registry import Backend, backend_url
from proxy.config import BackendConfig
from proxy.core.errors import ConfigError
from proxy.core.prompt import PromptOptions
from proxy.measured import remember


@pytest.mark.parametrize(
    ("text", "api_root", "chat_url", "server_root"),
    [
        ("http://h:8080", "http://h:8080/v1", "http://h:8080/v1/chat/completions", "http://h:8080"),
        ("http://h:8080/", "http://h:8080/v1", "http://h:8080/v1/chat/completions", "http://h:8080"),
        (" http://h/v1/ ", "http://h/v1", "http://h/v1/chat/completions", "http://h"),
        ("HTTP://h/v1//", "http://h/v1", "http://h/v1/chat/completions", "http://h"),
        (
            "https://h/api/paas/v4",
            "https://h/api/paas/v4",
            "https://h/api/paas/v4/chat/completions",
            "https://h/api/paas",
        ),
        (
            "https://h/v1beta/openai/",
            "https://h/v1beta/openai",
            "https://h/v1beta/openai/chat/completions",
            "https://h/v1beta",
        ),
        ("http://h/llm", "http://h/llm/v1", "http://h/llm/v1/chat/completions", "http://h/llm"),
        ("http://h/v1/chat/completions", "http://h/v1", "http://h/v1/chat/completions", "http://h"),
        ("http://h/v1/chat/completions/", "http://h/v1", "http://h/v1/chat/completions", "http://h"),
        ("http://h/chat/completions", "http://h", "http://h/chat/completions", "http://h"),
        (
            "http://h/dep/x/chat/completions?v=1",
            "http://h/dep/x",
            "http://h/dep/x/chat/completions?v=1",
            "http://h/dep",
        ),
        ("http://[::1]:80/v2", "http://[::1]:80/v2", "http://[::1]:80/v2/chat/completions", "http://[::1]:80"),
        ("http://h/openai", "http://h/openai", "http://h/openai/chat/completions", "http://h"),
        ("http://h/myopenai", "http://h/myopenai/v1", "http://h/myopenai/v1/chat/completions", "http://h/myopenai"),
    ],
)
def test_the_url_rules(text: str, api_root: str, chat_url: str, server_root: str) -> None:
    backend = Backend.of(BackendConfig(url=text))
    assert (backend.api_root, backend.chat_url, backend.server_root) == (api_root, chat_url, server_root)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("localhost:8080", "http://localhost:8080"),
        ("//h/v1", "http://h/v1"),
        ("ftp://h/v1", "http:// or https://"),
        ("unix:///run/llm.sock", "http:// or https://"),
        ("http:///v1", "names no host"),
        ("http://:8080", "names no host"),
        ("http://h:99999", "http://127.0.0.1:8080/v1"),
        ("http://h:port", "http://127.0.0.1:8080/v1"),
        ("http://[::1", "http://127.0.0.1:8080/v1"),
        ("http://h/v1?x=1", "/chat/completions?"),
        ("http://h/v1#x", "fragment"),
        ("http://h /v1", "space"),
        ("http://h/v1\n/x", "control character"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_the_mend(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        backend_url(text)
    assert says in caught.value.message


@pytest.mark.parametrize("text", ["http://me:hunter2@h/v1", "me:hunter2@h:8080", "http://hunter2@h"])
def test_a_password_in_the_url_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        backend_url(text)
    assert "--backend-key-env" in caught.value.message
    assert "hunter2" not in caught.value.message


def test_a_backend_carries_what_was_configured_and_hides_its_key() -> None:
    config = BackendConfig(url="http://h", dispatcher="xml", model="m", key="s3cret")
    backend = Backend.of(config, "main")
    assert (backend.name, backend.config) == ("main", config)
    assert "s3cret" not in repr(backend)


def test_an_unknown_dialect_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="hermes"):
        Backend.of(BackendConfig("http://h", dialect="klingon"))


def test_the_example_is_shown_where_it_was_measured_to_help_or_is_asked_for() -> None:
    remember("http://h/v1", ["helped"], example=True)

    def shown(model: str | None, **said: Any) -> bool:
        return Backend.of(BackendConfig("http://h", **said)).prompt(model).example

    assert (shown("helped"), shown("other"), shown(None)) == (True, False, False)
    assert (shown("helped", prompt_example="off"), shown("other", prompt_example="on")) == (False, True)
    assert shown("other", prompt=PromptOptions(example=True))
    remember("http://h/v1", ["hindered"], example=False)
    remember("http://h/v1", [""], example=True)
    assert (shown("hindered"), shown("other"), shown(None)) == (False, True, True)


def test_the_other_options_of_the_prompt_stay() -> None:
    config = BackendConfig("http://h", prompt=PromptOptions(style="compact"), prompt_example="on")
    assert Backend.of(config).prompt("m") == PromptOptions(example=True, style="compact")

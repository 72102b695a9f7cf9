from __future__ import annotations

import dataclasses

import pytest

from proxy.config import BackendConfig, Config, key_from_environment
from proxy.core.errors import ConfigError


def test_no_variable_means_no_key() -> None:
    assert key_from_environment(None, {"KEY": "x"}) is None


def test_the_key_comes_from_the_variable_without_the_white_space_around_it() -> None:
    assert key_from_environment("KEY", {"KEY": " sk-1\n"}) == "sk-1"


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": "  "}])
def test_a_missing_variable_is_named_with_its_option(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"KEY \(--backend-key-env\) is not set"):
        key_from_environment("KEY", environ)
    with pytest.raises(ConfigError, match=r"KEY \(t.toml, line 3\) is not set"):
        key_from_environment("KEY", environ, "t.toml, line 3")


@pytest.mark.parametrize("key", ["a\r\nx-evil: 1", "naïve", "a\x00b"])
def test_a_key_that_cannot_stand_in_a_header_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        key_from_environment("KEY", {"KEY": key})
    assert "header" in caught.value.message
    assert key not in caught.value.message


def test_the_key_does_not_show_up_when_the_configuration_is_printed() -> None:
    assert "sk-secret" not in repr(Config((BackendConfig("http://127.0.0.1:1", key="sk-secret"),)))


def test_the_configuration_is_frozen() -> None:
    config = Config((BackendConfig("http://127.0.0.1:1"),))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.port = 1  # type: ignore[misc]

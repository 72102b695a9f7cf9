"""A variable that was meant to be a setting, and is none, is told of."""

from __future__ import annotations

import pytest

from proxy.settings.environment import Environment, own_prefix


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("TOOLGRAFT_PROT", "TOOLGRAFT_PORT"),
        ("toolgraft_port", "TOOLGRAFT_PORT"),
        ("TOOLGRAFT_LOGFORMAT", "TOOLGRAFT_LOG_FORMAT"),
        ("TOOLGRAFT_BAKEND_URL", "TOOLGRAFT_BACKEND_URL"),
        ("TOOLGRAFT_BACKEND", "TOOLGRAFT_BACKEND_URL"),
        ("TOOLGRAFT_MODEL", "TOOLGRAFT_BACKEND_ONLY_MODEL"),
        ("TOOLGRAFT_BACKEND_MODEL", "TOOLGRAFT_BACKEND_ONLY_MODEL"),
        ("TOOLGRAFT_DISPATCHER", "TOOLGRAFT_BACKEND_DISPATCHER"),
        ("TOOLGRAFT_BACKEND_BIG_1_DIALEKT", "TOOLGRAFT_BACKEND_BIG_1_DIALECT"),
        ("TOOLGRAFT_CONFG", "TOOLGRAFT_CONFIG"),
    ],
)
def test_a_misspelt_variable_is_told_with_the_one_that_is_meant(name: str, meant: str) -> None:
    told = Environment({name: "x", "PATH": "/bin"}).misspelt(["big 1"])
    assert told == [f"The environment variable {name} is no setting and does nothing. Did you mean {meant}?"]


@pytest.mark.parametrize(
    "name",
    [
        "TOOLGRAFT_PORT",
        "TOOLGRAFT_STATE",
        "TOOLGRAFT_BACKEND_URL",
        "TOOLGRAFT_BACKEND_BIG_1_DIALECT",
        "TOOLGRAFT_SERVICE_HOST",
        "TOOLGRAFT_SERVICE_PORT_HTTP",
        "TOOLGRAFT_PORT_8787_TCP_ADDR",
        "TOOLGRAFT_SOMETHING_ELSE",
        "MY_TOOLGRAFT_PROT",
    ],
)
def test_other_variables_are_not(name: str) -> None:
    assert Environment({name: "x"}).misspelt(["big 1"]) == []


def test_a_variable_that_was_asked_for_is_known_under_any_name() -> None:
    environment = Environment({"TOOLGRAFT_CLIENT_KEY": "sk-1"})
    assert len(environment.misspelt([])) == 1
    assert environment.get("TOOLGRAFT_CLIENT_KEY") == "sk-1"
    assert environment.misspelt([]) == []
    assert (list(environment), len(environment), "X" in environment) == (["TOOLGRAFT_CLIENT_KEY"], 1, False)


def test_a_backends_own_variables_begin_with_its_name() -> None:
    assert own_prefix("big one") == "TOOLGRAFT_BACKEND_BIG_ONE_"

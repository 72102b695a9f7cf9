"""Where a model's name leads, and which tables of backends cannot be used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proxy.backends.routing import Routing
from proxy.config import BackendConfig
from proxy.core.errors import ClientError, ConfigError


def backend(name: str, *models: str, url: str = "http://h", **options: Any) -> BackendConfig:
    return BackendConfig(url, name=name, models=models, **options)


BIG = backend("big", "qwen3-*", "gpt-4o", aliases={"fast": "qwen3-8b", "deep": "qwen3-80b"})
SMALL = backend("small", "qwen3-0.6b", "*mini*", default=True)


@pytest.mark.parametrize(
    ("asked", "name", "sent"),
    [
        ("qwen3-8b", "big", "qwen3-8b"),
        ("qwen3-0.6b", "small", "qwen3-0.6b"),
        ("gpt-4o", "big", "gpt-4o"),
        ("gpt-4o-mini", "small", "gpt-4o-mini"),
        ("fast", "big", "qwen3-8b"),
        ("deep", "big", "qwen3-80b"),
        ("anything", "small", "anything"),
        (None, "small", None),
    ],
)
def test_a_name_leads_to_a_backend_and_may_be_replaced(asked: str | None, name: str, sent: str | None) -> None:
    route = Routing([BIG, SMALL]).find(asked)
    assert (route.name, route.sent(asked)) == (name, sent)


def test_without_a_default_an_unknown_model_is_told_what_there_is() -> None:
    routing = Routing([BIG, replace(SMALL, default=False)])
    with pytest.raises(ClientError) as caught:
        routing.find("nope")
    error = caught.value
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")
    assert error.message == (
        "There is no model 'nope'. The names and patterns that lead to one: qwen3-*, gpt-4o, fast, deep, "
        "qwen3-0.6b, *mini*."
    )
    with pytest.raises(ClientError, match="names no model, and no backend is the default") as caught:
        routing.find(None)
    assert caught.value.status == 400


def test_what_there_is_may_be_too_much_to_tell() -> None:
    routing = Routing([backend("a", *(f"m{number}" for number in range(50))), backend("b", "x")])
    with pytest.raises(ClientError, match=r"m29, and 21 more\.$"):
        routing.find("nope")
    with pytest.raises(ClientError) as caught:
        routing.find("n" * 5_000)
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("config", [BackendConfig("http://h"), BIG])
def test_an_only_backend_gets_every_name_unchanged(config: BackendConfig) -> None:
    routing = Routing([config])
    for name in ("whatever", None):
        route = routing.find(name)
        assert (route.backend, route.sent(name)) == (0, name)


def test_names_matter_only_where_there_is_a_choice() -> None:
    assert not Routing([BackendConfig("http://h", models=("a",))]).looks_at_names
    assert Routing([BIG]).looks_at_names
    assert Routing([replace(BIG, aliases={}), SMALL]).looks_at_names


def test_one_name_can_be_sent_for_all() -> None:
    route = Routing([backend("a", "gpt-*", model="real"), SMALL]).find("gpt-4")
    assert route.sent("gpt-4") == "real"


def test_a_model_can_have_settings_of_its_own_by_the_name_that_is_sent() -> None:
    base = replace(BIG, dispatcher="native")
    coder = replace(base, dispatcher="xml", dialect="qwen3-coder")
    eight = replace(base, system_role=False)
    config = replace(base, per_model=(("qwen3-coder*", coder), ("qwen3-8b", eight)))
    routing = Routing([config, SMALL])
    assert routing.find("qwen3-coder-30b").config is coder
    assert routing.find("qwen3-9b").config is config
    fast = routing.find("fast").config
    assert (fast.system_role, fast.model) == (False, "qwen3-8b")
    assert routing.find("deep").config.system_role
    only = replace(coder, model="qwen3-8b", aliases={}, per_model=(("qwen3-8b", replace(eight, model="qwen3-8b")),))
    assert not Routing([only]).find("anything").config.system_role


def test_there_is_one_route_for_each_way_to_talk_to_a_backend() -> None:
    routing = Routing([BIG, SMALL])
    assert routing.find("qwen3-1") is routing.find("qwen3-2") is routing.backends[0]
    assert routing.find("fast") is routing.find("fast") is not routing.backends[0]


def test_replicas_have_names_of_their_own() -> None:
    config = backend("a", "x", url="http://h:1", replicas=("http://h:2/v1", "http://h:3"))
    route = Routing([config]).find("x")
    assert route.name == "a"
    assert [(replica.name, replica.api_root) for replica in route.replicas] == [
        ("a#1", "http://h:1/v1"),
        ("a#2", "http://h:2/v1"),
        ("a#3", "http://h:3/v1"),
    ]


def test_a_backend_without_a_name_is_called_by_its_host() -> None:
    assert Routing([BackendConfig("http://10.0.0.1:8000/v1")]).find(None).name == "10.0.0.1:8000"


def test_names_that_can_be_listed() -> None:
    routing = Routing([BIG, SMALL])
    assert routing.names(0) == ["gpt-4o", "fast", "deep"]
    assert routing.names(1) == ["qwen3-0.6b"]


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ([], "no backend"),
        ([BIG, backend("big", "x")], "Two backends are called big"),
        ([BackendConfig("http://h", models=("a",)), BackendConfig("http://h", models=("b",))], "called h"),
        ([SMALL, backend("other", "x", default=True)], "small and other are both marked as the default"),
        ([BIG, backend("idle")], "No model leads to the backend idle"),
        ([BIG, backend("b", "gpt-4o")], "'gpt-4o' leads to both big and b"),
        ([BIG, backend("b", "fast")], "'fast' leads to both big and b"),
        ([BIG, backend("b", aliases={"fast": "x"})], "'fast' leads to both big and b"),
        ([backend("a", "x", aliases={"x": "y"})], "'x' stands in `models` and in `aliases`"),
        ([backend("a", aliases={"x*": "y"})], "'x*' is a pattern"),
        ([backend("a", aliases={"x": "y"}, model="z")], "has no use for `aliases`"),
        ([backend("a", "x", replicas=("nonsense",))], "no scheme"),
        ([backend("a", "x", per_model=(("y", BackendConfig("http://h", dialect="klingon")),))], "klingon"),
    ],
)
def test_backends_that_are_in_each_other_s_way_are_refused(configs: list[BackendConfig], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Routing(configs)
    assert words in caught.value.message


def test_the_same_pattern_may_stand_twice_and_the_first_counts() -> None:
    assert Routing([backend("a", "x*"), backend("b", "x*", "y")]).find("x1").name == "a"

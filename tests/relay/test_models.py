from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.backends.capability import Capabilities, Known
from proxy.backends.probes import Facts
from proxy.backends.registry import Backend
from proxy.backends.routing import Routing
from proxy.config import BackendConfig
from proxy.core.errors import UpstreamError
from proxy.relay.models import Model, merged, models_body, read_models, with_first


def test_entries_keep_what_they_have_and_get_what_strict_clients_require() -> None:
    body = b'{"object": "list", "data": [{"id": "a", "owned_by": "llamacpp", "meta": {"n_ctx": 8192}}], "models": []}'
    assert read_models(body) == [
        {"id": "a", "object": "model", "created": 0, "owned_by": "llamacpp", "meta": {"n_ctx": 8192}}
    ]


def test_a_bare_list_is_read_and_what_is_no_model_left_out() -> None:
    assert [model["id"] for model in read_models(b'[{"id": "a"}, {"name": "b"}, 3, {"id": 4}]')] == ["a"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"data": null}', b"3"])
def test_anything_else_is_an_error(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        read_models(body)
    assert caught.value.answered == 200


def test_the_configured_model_is_first() -> None:
    models = read_models(b'[{"id": "a"}, {"id": "b", "owned_by": "x"}]')
    assert [model["id"] for model in with_first(models, "b")] == ["b", "a"]
    assert with_first(models, "b")[0]["owned_by"] == "x"
    assert [model["id"] for model in with_first(models, "c")] == ["c", "a", "b"]
    assert with_first(models, None) == models


def test_the_list_has_openai_s_shape() -> None:
    assert json.loads(models_body([{"id": "a"}])) == {"object": "list", "data": [{"id": "a"}]}


class Knowing(Capabilities):
    """Knows what it is told: facts by the name of the backend and the model."""

    def __init__(self, **facts: Known) -> None:
        self.facts = facts

    def known_of(self, backend: Backend, model: str | None, *, any_name: bool = False) -> Known | None:
        return self.facts.get("any" if any_name else f"{backend.name}/{model}")


def backend(name: str, *models: str, url: str = "http://h", **options: Any) -> BackendConfig:
    return BackendConfig(url, name=name, models=models, **options)


def listed(*names: str) -> list[Model]:
    return [{"id": name, "object": "model", "created": 3, "owned_by": name} for name in names]


def test_the_lists_of_all_become_one_in_which_each_name_leads_where_it_says() -> None:
    routing = Routing([backend("a", "x*", "y", aliases={"fast": "x1"}), backend("b", "x2", default=True)])
    models = merged(routing, [listed("x1", "x2", "z", "x1"), listed("x2", "x3", "z", "fast")], Knowing())
    assert [(entry["id"], entry["owned_by"], entry["toolgraft"]) for entry in models] == [
        ("x1", "x1", {"backend": "a"}),
        ("y", "backend", {"backend": "a"}),
        ("fast", "x1", {"backend": "a"}),
        ("x2", "x2", {"backend": "b"}),
        ("z", "z", {"backend": "b"}),
    ]


def test_a_backend_that_did_not_answer_has_no_models() -> None:
    routing = Routing([backend("a", "x", aliases={"fast": "x1"}), backend("b", "y")])
    assert [entry["id"] for entry in merged(routing, [None, listed("y")], Knowing())] == ["y"]


def test_an_only_backend_shows_all_that_it_has() -> None:
    routing = Routing([backend("a", "x*", aliases={"fast": "z"})])
    assert [entry["id"] for entry in merged(routing, [listed("x1", "z")], Knowing())] == ["x1", "z", "fast"]


def test_each_model_tells_its_mode_and_how_it_is_known() -> None:
    override = ("x2", backend("a", dispatcher="native"))
    config = backend("a", "x*", aliases={"fast": "x1"}, replicas=("http://i",), per_model=(override,))
    facts = Facts("ollama", native=True, source="It said so.")
    knowing = Knowing(**{"a#2/x1": Known(facts, 12.4), "any": Known(facts, 1.0)})
    models = merged(Routing([config]), [listed("x1", "x2", "x3")], knowing)
    known = {"backend": "a", "mode": "native", "source": "It said so.", "age": 12}
    assert {entry["id"]: entry["toolgraft"] for entry in models} == {
        "x1": known,
        "x2": {"backend": "a", "mode": "native", "source": "configured"},
        "x3": {"backend": "a"},
        "fast": known,
    }


def test_what_is_known_of_any_name_holds_for_a_server_s_only_model() -> None:
    knowing = Knowing(any=Known(Facts("llama.cpp", native=False, source="No tools."), 3.0))
    (entry,) = merged(Routing([backend("a")]), [listed("x")], knowing)
    assert entry["toolgraft"] == {"backend": "a", "mode": "xml", "source": "No tools.", "age": 3}

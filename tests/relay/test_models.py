from __future__ import annotations

import json

import pytest

from proxy.core.errors import UpstreamError
from proxy.relay.models import models_body, read_models, with_first


def test_entries_keep_what_they_have_and_get_what_strict_clients_require() -> None:
    body = b'{"object": "list", "data": [{"id": "a", "owned_by": "llamacpp", "meta": {"n_ctx": 8192}}], "models": []}'
    assert read_models(body) == [
        {"id": "a", "object": "model", "created": 0, "owned_by": "llamacpp", "meta": {"n_ctx": 8192}}
    ]


def test_a_bare_list_is_read_and_what_is_no_model_left_out() -> None:
    assert [model["id"] for model in read_models(b'[{"id": "a"}, {"name": "b"}, 3, {"id": 4}]')] == ["a"]


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"data": null}', b"3"])
def test_anything_else_is_an_error(body: bytes) -> None:
    with pytest.raises(UpstreamError):
        read_models(body)


def test_the_configured_model_is_first() -> None:
    models = read_models(b'[{"id": "a"}, {"id": "b", "owned_by": "x"}]')
    assert [model["id"] for model in with_first(models, "b")] == ["b", "a"]
    assert with_first(models, "b")[0]["owned_by"] == "x"
    assert [model["id"] for model in with_first(models, "c")] == ["c", "a", "b"]
    assert with_first(models, None) == models


def test_the_list_has_openai_s_shape() -> None:
    assert json.loads(models_body([{"id": "a"}])) == {"object": "list", "data": [{"id": "a"}]}

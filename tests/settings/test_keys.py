"""The tables agree with the configuration that is made of them."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest

from proxy.config import BackendConfig, Config
from proxy.settings.keys import BACKEND, MODEL, SERVER, TALK, Key

DEFAULTS = {
    field.name: field.default
    for kind in (Config, BackendConfig)
    for field in dataclasses.fields(kind)
    if field.default is not dataclasses.MISSING
}


def names(keys: tuple[Key, ...]) -> list[str]:
    return [key.name for key in keys]


@pytest.mark.parametrize("key", [*SERVER, *BACKEND], ids=lambda key: key.name)
def test_the_default_that_is_told_is_the_one_that_holds(key: Key) -> None:
    if key.shown:
        told = key.kind.check(tomllib.loads(f"x = {key.shown}")["x"])
        assert told == DEFAULTS.get(key.name, "full" if key.name == "prompt_style" else None)
    else:
        assert DEFAULTS.get(key.name) in (None, "", ())


@pytest.mark.parametrize("key", [*SERVER, *MODEL, *BACKEND], ids=lambda key: key.name)
def test_each_has_a_value_to_show_and_is_explained(key: Key) -> None:
    key.kind.check(tomllib.loads(f"x = {key.shown or key.example}")["x"])
    assert key.help.endswith(".")


def test_every_field_can_be_set() -> None:
    elsewhere = {"backends", "replicas", "model", "key", "prompt", "per_model"}  # url, only_model, key_env, prompt_*
    fields = [field.name for kind in (Config, BackendConfig) for field in dataclasses.fields(kind)]
    assert set(fields) - elsewhere <= {*names(SERVER), *names(BACKEND)}


def test_names_flags_and_variables_are_told_apart() -> None:
    every = names(SERVER) + names(BACKEND)
    assert len(set(every)) == len(every)
    assert "match" not in every
    flags = [key.flag for key in (*SERVER, *BACKEND) if key.flag]
    assert len(set(flags)) == len(flags)
    assert {key.name for key in TALK} < {key.name for key in MODEL}

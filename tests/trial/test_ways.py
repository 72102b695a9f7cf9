from __future__ import annotations

from proxy.config import BackendConfig
from proxy.core.prompt import PromptOptions
from proxy.trial.ways import WAYS, Way

BACKEND = BackendConfig("http://h", model="m", system_role=False, reask=0, prompt=PromptOptions(style="compact"))


def test_a_way_changes_what_it_names_and_nothing_else() -> None:
    config = Way("t", constrain="always", example="on", reask=2, style="full").config(BACKEND)
    assert (config.dispatcher, config.constrain, config.prompt_example, config.reask) == ("xml", "always", "on", 2)
    assert (config.url, config.model, config.system_role) == ("http://h", "m", False)
    assert config.prompt == PromptOptions(style="full")


def test_what_a_way_leaves_open_is_as_the_backend_has_it() -> None:
    config = Way("t", dispatcher="native").config(BACKEND)
    assert (config.dispatcher, config.constrain, config.reask, config.prompt.style) == (
        "native",
        "required",
        0,
        "compact",
    )


def test_no_two_ways_are_the_same() -> None:
    settings = [(way.config(BACKEND), way.forced) for way in WAYS.values()]
    assert all(settings.count(each) == 1 for each in settings)
    assert len({way.title for way in WAYS.values()}) == len(WAYS)

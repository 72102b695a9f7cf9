from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proxy.config import BackendConfig
from proxy.trial.prompts import BUILTIN, Call, Prompt, read_prompts
from proxy.trial.run import GIVE_UP_AFTER, Limits, Outcome, Score, due, run
from proxy.trial.ways import WAYS
from tests.support.backend import Backend, body, error, silence, text
from tests.support.models import model, serving

LIMITS = Limits(tokens=64, seconds=30)
TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
ASK = Prompt(
    "ask", "single", (TOOL,), ({"role": "user", "content": "Weather in Rome?"},), (Call("weather", {"city": "Rome"}),)
)
CHAT = Prompt("chat", "no call", (TOOL,), ({"role": "user", "content": "Hi"},))
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>'


def config(backend: Backend, **more: Any) -> BackendConfig:
    return BackendConfig(backend.url, **more)


def test_what_is_measured_is_what_a_client_of_the_proxy_gets() -> None:
    told: list[Outcome] = []
    with Backend() as backend:
        backend.script(text(CALL, usage=(50, 9)), text("Hello!", finish="length", usage=(40, 64)))
        outcomes = run(WAYS["xml"], [ASK, CHAT], config(backend, model="m"), LIMITS, told.append)
        asked = [request.json for request in backend.chats]
    assert [replace(outcome, seconds=0) for outcome in outcomes] == [
        Outcome("ask", "single", True, True, True, False, 50, 9, calls=(("weather", '{"city": "Rome"}'),)),
        Outcome("chat", "no call", False, True, True, True, 40, 64, text="Hello!"),
    ]
    assert all(outcome.seconds > 0 for outcome in outcomes)
    assert told == outcomes
    assert [(each["model"], each["temperature"], each["max_tokens"]) for each in asked] == [("m", 0, 64)] * 2
    assert "tools" not in asked[0]
    assert asked[0]["messages"][0]["role"] == "system"


def test_each_way_asks_in_its_own() -> None:
    def asked(name: str) -> Any:
        with Backend() as backend:
            backend.script(text(CALL))
            run(WAYS[name], [ASK], config(backend), LIMITS)
            return backend.chats[0].json

    system = {name: asked(name)["messages"][0]["content"] for name in ("xml", "compact", "example")}
    assert "function weather(" in system["compact"]
    assert system["example"].startswith(system["xml"])
    assert "example_population" in system["example"]
    assert asked("native")["tools"] == [TOOL]
    assert "must call a tool" in asked("forced")["messages"][-1]["content"]


def test_where_a_call_is_forced_only_prompts_that_want_one_are_asked() -> None:
    assert due(WAYS["forced"], [ASK, CHAT]) == [ASK]
    assert due(WAYS["xml"], [ASK, CHAT]) == [ASK, CHAT]


def test_errors_are_told_and_after_some_the_rest_is_not_asked() -> None:
    with Backend() as backend:
        backend.script(error(400, "does not compute"))
        outcomes = run(WAYS["native"], [ASK] * 5, config(backend), LIMITS)
        assert len(backend.chats) == GIVE_UP_AFTER
    assert [outcome.error for outcome in outcomes] == ["does not compute"] * 5


def test_one_error_is_no_reason_to_give_up() -> None:
    with Backend() as backend:
        backend.script(error(400, "no"), error(400, "no"), text(CALL), error(400, "no"))
        outcomes = run(WAYS["xml"], [ASK] * 4, config(backend), LIMITS)
    assert [outcome.right for outcome in outcomes] == [False, False, True, False]


def test_a_backend_that_says_nothing_has_its_time() -> None:
    with Backend() as backend:
        backend.script(silence)
        (outcome,) = run(WAYS["native"], [ASK], config(backend), Limits(64, 0.2))
    assert outcome.error == "no answer within 0.2 seconds"


@pytest.mark.parametrize(
    "answer", [{"choices": []}, {"choices": [{}]}, {"choices": [{"message": {"tool_calls": [{"id": "x"}]}}]}]
)
def test_a_native_answer_that_is_none_is_an_error(answer: Any) -> None:
    with Backend() as backend:
        backend.script(body(answer))
        (outcome,) = run(WAYS["native"], [ASK], config(backend), LIMITS)
    assert outcome.error == "the answer is no chat completion"


def test_a_model_that_does_it_all_gets_everything_right() -> None:
    prompts = read_prompts(BUILTIN)
    with serving(model()) as backend:
        score = Score.of(run(WAYS["xml"], prompts, config(backend), LIMITS))
    assert (score.asked, score.valid, score.right, score.calls) == (20, 20, 20, 16)


def test_outcomes_in_sum() -> None:
    outcomes = [
        Outcome("a", "c", True, True, True, False, 10, 1, 3.0),
        Outcome("b", "c", True, True, False, True, 20, 2, 1.0),
        Outcome("c", "c", False, True, True, False, 30, 3, 2.0),
        Outcome("d", "c", True, error="no"),
    ]
    assert Score.of(outcomes) == Score(4, 3, 2, 3, 2, 1, 1, 60, 6, 2.0)
    assert Score.of([]) == Score(0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)

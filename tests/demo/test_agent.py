"""The loop against a scripted API: what it sends, when it asks, and when it stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from proxy.demo.agent import MAX_TURNS, Ended, Got, Sent, play
from proxy.demo.scenes import DemoTool, PersonNeededError, Scene, ToolError


def scene(run: Callable[[str], str], final: bool = False) -> Scene:
    tool = DemoTool("look", "Look at a thing.", "thing", run, final)
    return Scene("title", "about", tool, ({"role": "user", "content": "Before."},), "Look!", "required", (), ())


def calls(*arguments: str) -> dict[str, Any]:
    made = [
        {"id": f"call_{at}", "type": "function", "function": {"name": "look", "arguments": text}}
        for at, text in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


class Api:
    """Answers with `messages`, the last one again and again, and keeps the requests."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages = list(messages)
        self.requests: list[Any] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(request.content))
        message = self._messages.pop(0) if len(self._messages) > 1 else self._messages[0]
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return httpx2.Response(
            200, json={"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        )


@pytest.fixture
def run() -> Iterator[Callable[..., list[Any]]]:
    clients = []

    def run(api: Api, scene: Scene, confirm: Callable[[str], bool] = lambda question: True) -> list[Any]:
        http = httpx2.Client(transport=httpx2.MockTransport(api.answer))
        clients.append(http)
        client = OpenAI(base_url="http://api/v1", api_key="x", http_client=http)
        return list(play(scene, client, "m", confirm))

    yield run
    for http in clients:
        http.close()


def results(request: Any) -> list[tuple[str, str]]:
    return [(item["tool_call_id"], item["content"]) for item in request["messages"] if item["role"] == "tool"]


def test_both_results_of_one_turn_go_back_together(run: Any) -> None:
    api = Api(calls('{"thing": "a"}', '{"thing": "b"}'), says("Seen."))
    moments = run(api, scene(lambda thing: f"saw {thing}"))
    first, second = api.requests
    assert (first["tool_choice"], second["tool_choice"]) == ("required", "auto")
    assert [message["content"] for message in first["messages"]] == ["Before.", "Look!"]
    assert results(second) == [("call_0", "saw a"), ("call_1", "saw b")]
    assert [type(moment) for moment in moments] == [Sent, Got, Sent, Got, Ended]
    assert [(len(moment.messages), moment.new) for moment in moments if isinstance(moment, Sent)] == [(2, 2), (5, 2)]
    assert moments[-1] == Ended("answered", "Seen.", (("look", "a"), ("look", "b")))


def test_a_failure_that_can_be_mended_goes_to_the_model_which_must_call_again(run: Any) -> None:
    def look(thing: str) -> str:
        if thing == "a":
            raise ToolError("Error: look at b.")
        return "saw it"

    api = Api(calls('{"thing": "a"}'), calls('{"thing": "b"}'), says("Seen."))
    assert run(api, scene(look))[-1].how == "answered"
    assert [request["tool_choice"] for request in api.requests] == ["required", "required", "auto"]
    assert results(api.requests[1]) == [("call_0", "Error: look at b.")]


def test_a_failure_for_a_person_ends_the_loop(run: Any) -> None:
    def look(thing: str) -> str:
        raise PersonNeededError("The key has expired.")

    api = Api(calls('{"thing": "a"}'))
    assert run(api, scene(look))[-1] == Ended("person", "The key has expired.", (("look", "a"),))
    assert len(api.requests) == 1


@pytest.mark.parametrize("yes", [True, False])
def test_what_cannot_be_undone_is_asked_first(yes: bool, run: Any) -> None:
    done: list[str] = []
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        assert done == []
        return yes

    def look(thing: str) -> str:
        done.append(thing)
        return "done"

    api = Api(calls('{"thing": "a"}'), says("Well."))
    run(api, scene(look, final=True), confirm)
    assert asked == ["The model wants look(a), which cannot be undone. Let it?"]
    assert done == (["a"] if yes else [])
    assert results(api.requests[1]) == [("call_0", "done" if yes else "The person said no. Nothing was done.")]


def test_a_model_that_calls_for_ever_is_given_up(run: Any) -> None:
    api = Api(calls('{"thing": "a"}'))
    assert run(api, scene(lambda thing: "again"))[-1].how == "gave up"
    assert len(api.requests) == MAX_TURNS


def test_a_missing_argument_is_an_empty_one(run: Any) -> None:
    api = Api(calls("{}"), says("Well."))
    assert run(api, scene(lambda thing: f"<{thing}>"))[-1].calls == (("look", ""),)

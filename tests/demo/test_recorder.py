from __future__ import annotations

import httpx2
import pytest

from proxy.demo.recorder import Exchange, Recorder
from tests.support.backend import Backend, body, error, text
from tests.support.proxy import free_port, get, post

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def ask(url: str, **more: object) -> httpx2.Response:
    return post(f"{url}/v1/chat/completions", json={**ASKED, **more})


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_model_saw_and_wrote_is_kept_and_passed_on(stream: bool) -> None:
    with Backend() as backend, Recorder(backend.url) as recorder:
        backend.script(text("Let me ", "look."))
        through, straight = ask(recorder.url, stream=stream), ask(backend.url, stream=stream)
        assert backend.chats[0].json == backend.chats[1].json
    assert through.status_code == 200
    assert through.content == straight.content
    assert through.headers["content-type"] == straight.headers["content-type"]
    assert recorder.exchanges == [Exchange(({"role": "user", "content": "hi"},), False, "Let me look.")]


def test_a_grammar_is_noted() -> None:
    with Backend() as backend, Recorder(backend.url) as recorder:
        ask(recorder.url, grammar='root ::= "x"')
    assert [exchange.grammar for exchange in recorder.exchanges] == [True]


def test_errors_and_other_paths_pass_unrecorded() -> None:
    with Backend(routes={"/props": body({"a": 1})}) as backend, Recorder(backend.url) as recorder:
        backend.script(error(400, "too long"))
        assert ask(recorder.url).json()["error"]["message"] == "too long"
        assert get(f"{recorder.url}/props").json() == {"a": 1}
    assert recorder.exchanges == []


def test_a_connection_that_breaks_breaks_here_too_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with Recorder(f"http://127.0.0.1:{free_port()}") as recorder, pytest.raises(httpx2.RemoteProtocolError):
        ask(recorder.url)
    assert capfd.readouterr() == ("", "")

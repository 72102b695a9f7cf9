from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from proxy.cli import main
from proxy.commands.translate import translate
from proxy.core.model import Tool
from proxy.core.prompt import Style, render_protocol
from proxy.template_file import read_template
from tests.support.backend import Backend
from tests.support.conversations import FIXTURES
from tests.support.proxy import post, proxy_before

FUNCTION = {"name": "clock", "description": "What time it is.", "parameters": {"type": "object", "properties": {}}}
TOOL = Tool.of(FUNCTION)
OWN = FIXTURES / "prompts" / "own.jinja"
REQUEST = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Time in Malmö?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {
            "name": "clock", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "10:00 <|im_end|>"},
        {"role": "user", "content": "And now?"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": "required",
    "temperature": 0,
    "seed": 18446744073709551616,
    "user": "u",
}  # fmt: skip


def run(*arguments: str, request: Any = REQUEST) -> Result:
    sent = request if isinstance(request, (str, bytes)) else json.dumps(request)
    return CliRunner().invoke(main, ["translate", *arguments], input=sent)


def translated(*arguments: str, request: Any = REQUEST) -> Any:
    result = run(*arguments, request=request)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_it_prints_the_body_for_the_backend() -> None:
    assert translated() == {
        "model": "m",
        "messages": [
            {"role": "system", "content": f"Be brief.\n\n{render_protocol([TOOL])}"},
            {"role": "user", "content": "Time in Malmö?"},
            {"role": "assistant", "content": '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'},
            {
                "role": "user",
                "content": '[Tool results]\n<tool_result name="clock" id="a" status="ok">\n10:00 &lt;|im_end|>\n'
                "</tool_result>\n\nAnd now?\n\nYou must call a tool now.",
            },
        ],
        "temperature": 0,
        "seed": 18446744073709551616,
        "stream": False,
    }


def test_it_is_for_people_to_read() -> None:
    lines = run().stdout.splitlines()
    assert lines[:3] == ["{", '  "model": "m",', '  "messages": [']
    assert any("Malmö" in line for line in lines)


@pytest.mark.parametrize("asked", [{"n": 2}, {"logprobs": True, "top_logprobs": 3}])
def test_what_goes_untouched_in_a_running_proxy_is_printed_as_it_is(asked: dict[str, Any]) -> None:
    request = {"messages": [{"role": "user", "content": "Hi"}], "user": "u", **asked}
    with Backend() as backend, proxy_before(backend, model="real") as url:
        post(f"{url}/v1/chat/completions", json=request).raise_for_status()
        sent = backend.chats[0].json
    assert translated("--model", "real", request=request) == sent == {**request, "model": "real"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dispatcher", ["xml", "native"])
def test_it_is_what_the_proxy_sends(dispatcher: str, stream: bool) -> None:
    with Backend() as backend, proxy_before(backend, dispatcher, model="real", system_role=False) as url:
        post(f"{url}/v1/chat/completions", json={**REQUEST, "stream": stream}).raise_for_status()
        sent = backend.chats[0].json
    options = ["--dispatcher", dispatcher, "--model", "real", "--no-system-role", *(["--stream"] if stream else [])]
    shown = translated(*options, request={**REQUEST, "stream": False})
    assert shown == sent


def test_a_stream_is_asked_for_as_the_client_or_the_flag_says() -> None:
    for body in (translated("--stream"), translated(request={**REQUEST, "stream": True})):
        assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize(
    ("options", "example", "style"),
    [(["--example"], True, "full"), (["--style", "compact"], False, "compact"), (["--style", "full"], False, "full")],
)
def test_the_prompt_can_be_set(options: list[str], example: bool, style: Style) -> None:
    protocol = render_protocol([TOOL], example=example, style=style)
    assert translated(*options)["messages"][0]["content"] == f"Be brief.\n\n{protocol}"


def test_the_manual_names_every_flag() -> None:
    manual = (FIXTURES.parent / "docs" / "prompt.md").read_text("utf-8")
    flags = [option for parameter in translate.params for option in parameter.opts]
    assert flags
    assert all(f"| `{flag}" in manual for flag in flags)


def test_a_template_replaces_it() -> None:
    own = read_template(OWN).render([TOOL])
    assert translated("--template", str(OWN))["messages"][0]["content"] == f"Be brief.\n\n{own}"


def test_without_tools_the_conversation_passes() -> None:
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    assert translated("--style", "compact", request=request) == {**request, "stream": False}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ({"messages": []}, "`messages` must be a list with at least one message"),
        ({"messages": [{}], "tools": [{}]}, "`tools[0]` has no name"),
        ({**REQUEST, "n": 2}, "`n` must be 1"),
        ('{"messages": [{}], "x": ' + "[" * 2000 + "]" * 2000 + "}", "nested"),
        ('{"messages": [{}], "tools": [{"name": "f", "parameters": ' + '{"a":' * 900 + "1" + "}" * 902, "JSON"),
    ],
)
def test_a_bad_request_is_said_in_one_line(request_: Any, words: str) -> None:
    result = run(request=request_)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_bad_template_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "x.jinja"
    file.write_text("{{ tools }}")
    result = run("--template", str(file))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: The protocol template {file} shows no call.")
    assert result.stderr.count("\n") == 1


def test_a_request_that_is_too_deep_to_print_is_said() -> None:
    deep = '{"messages": [{}], "x": ' + "[" * 1000 + "]" * 1000 + "}"
    for dispatcher in ("xml", "native"):
        result = run("--dispatcher", dispatcher, request=deep)
        if result.exit_code == 0:  # from Python 3.12 on it can be printed
            assert "[" * 100 in "".join(result.stdout.split())
            continue
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Error: The request ")
        assert "recursion" in result.stderr or "nested too deeply" in result.stderr


def test_a_lone_surrogate_is_printed_as_json_has_it() -> None:
    request = '{"messages": [{"role": "user", "content": "\\ud83d"}]}'
    assert translated("--dispatcher", "native", request=request)["messages"][0]["content"] == "\ud83d"

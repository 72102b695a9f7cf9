"""Which backends are made to call, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.backends.constrain import constrain
from proxy.backends.probes import Kind
from proxy.core import markup
from proxy.core.model import Request, Tool, ToolChoice
from tests.support.gbnf import Grammar

REQUEST = Request(
    messages=(), tools=(Tool("get_time"), Tool("get_date")), tool_choice=ToolChoice("required"), parallel=True
)
TIME, DATE = markup.tool_call("get_time", "{}"), markup.tool_call("get_date", "{}")


def accepted(request: Request, *, max_calls: int = 1, starts_in_reasoning: bool = False) -> list[str]:
    fields = constrain("llama.cpp", request, max_calls=max_calls, starts_in_reasoning=starts_in_reasoning)
    assert list(fields) == ["grammar"]
    written = Grammar(fields["grammar"])
    return [text for text in (TIME, DATE, f"{TIME}\n{DATE}", f"Hm.</think>\n{TIME}", "Hello.") if written.matches(text)]


def test_llama_cpp_is_given_a_grammar_of_one_call() -> None:
    assert accepted(REQUEST) == [TIME, DATE]


def test_a_named_tool_is_the_only_one() -> None:
    assert accepted(replace(REQUEST, tool_choice=ToolChoice("named", name="get_date"))) == [DATE]


def test_only_allowed_tools_count() -> None:
    choice = ToolChoice("required", allowed=frozenset({"get_time"}))
    assert accepted(replace(REQUEST, tool_choice=choice)) == [TIME]


def test_several_calls_are_let_through_only_where_the_client_takes_them() -> None:
    assert accepted(REQUEST, max_calls=2) == [TIME, DATE, f"{TIME}\n{DATE}"]
    assert accepted(replace(REQUEST, parallel=False), max_calls=2) == [TIME, DATE]


def test_reasoning_that_the_template_opened_comes_first() -> None:
    assert accepted(REQUEST, starts_in_reasoning=True) == [f"Hm.</think>\n{TIME}"]


def test_a_client_that_turns_thinking_off_gets_the_call_at_once() -> None:
    request = replace(REQUEST, extra={"chat_template_kwargs": {"enable_thinking": False}})
    assert accepted(request, starts_in_reasoning=True) == [TIME, DATE]


@pytest.mark.parametrize("mode", ["auto", "none"])
def test_what_is_not_required_is_not_forced(mode: str) -> None:
    choice = ToolChoice(mode)  # type: ignore[arg-type]
    assert constrain("llama.cpp", replace(REQUEST, tool_choice=choice)) == {}


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "unknown"])
def test_other_kinds_are_not_sent_what_they_do_not_know(kind: Kind) -> None:
    assert constrain(kind, REQUEST) == {}


def test_without_a_tool_to_call_nothing_is_forced() -> None:
    assert constrain("llama.cpp", replace(REQUEST, tool_choice=ToolChoice("named", name="missing"))) == {}

from __future__ import annotations

import pytest

from proxy.testing import DAMAGES

CALL = '<tool_call>\n{"name": "f", "arguments": {"s": "a\\nb", "n": true}}\n</tool_call>'


@pytest.mark.parametrize(
    ("kind", "damaged"),
    [
        ("missing-closer", CALL.removesuffix("</tool_call>")),
        ("missing-opener", CALL.removeprefix("<tool_call>")),
        ("doubled-opener", f"<tool_call>{CALL}"),
        ("lost-tag", CALL.removeprefix("<tool_call>")),
        ("missing-brace", CALL.replace("}}", "}")),
        ("extra-brace", CALL.replace("}}", "}}}")),
        ("doubled-braces", CALL.replace("{", "{{").replace("}", "}}")),
        ("trailing-comma", CALL.replace("true}}", "true,}}")),
        ("missing-comma", CALL.replace('"f",', '"f"')),
        ("single-quotes", CALL.replace('"', "'")),
        ("smart-quotes", CALL.replace('"name"', "“name”")),
        ("unquoted-key", CALL.replace('"name"', "name")),
        ("lost-quote", CALL.replace('"name', "name")),
        ("escaped-quotes", CALL.replace('"', '\\"')),
        ("python-literals", CALL.replace("true", "True")),
        ("raw-line-breaks", CALL.replace("\\n", "\n")),
        ("raw-control", CALL.replace("to", "t\x0bo", 1)),
        ("fence", f"```json\n{CALL}\n```"),
        ("fence-left-open", f"```\n{CALL}"),
        ("comment", CALL.replace('"f", ', '"f", // as asked\n')),
        ("entities", CALL.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")),
        ("cut-off", ""),
        ("said-twice", CALL + CALL),
        ("chatter", f"Sure! {CALL}\nLet me know if you need anything else."),
        ("end-of-turn", f"{CALL}<|im_end|>"),
        ("made-up-result", f"{CALL}\n<tool_response>\n{{}}\n</tool_response>\n"),
    ],
)
def test_each_kind(kind: str, damaged: str) -> None:
    assert DAMAGES[kind](CALL, lambda count: 0) == damaged


def test_a_list_that_is_not_written_to_its_end() -> None:
    assert DAMAGES["ellipsis"]('{"a": ["x", 2]}', lambda count: count - 1) == '{"a": ["x",... 2]}'


@pytest.mark.parametrize("kind", DAMAGES)
def test_nothing_is_left_as_it_was(kind: str) -> None:
    assert DAMAGES[kind]("", lambda count: 0) is None
    for at in (0, 1):
        assert DAMAGES[kind](CALL, lambda count, at=at: min(at, count - 1)) != CALL  # type: ignore[misc]

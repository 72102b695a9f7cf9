"""What a family's way of writing can say is read back: random calls, written as a family's template writes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from proxy.core.dialects import DIALECTS
from proxy.core.model import Tool
from proxy.core.parser import parse
from tests.support.reading import essence, read

Arguments = dict[str, Any]

NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
PROSE = st.text(alphabet="ab <>/=\"'\\{}[](),:|\n\té😀", max_size=24)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PROSE
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
CALLS = st.dictionaries(NAMES, VALUES, max_size=4)

TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def tool_for(arguments: Arguments) -> Tool:
    """A tool whose schema says of which type each argument is."""
    properties = {key: {"type": TYPES.get(type(value), "object")} for key, value in arguments.items()}
    return Tool("run_it", parameters={"type": "object", "properties": properties})


def raw(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tags(opening: str, parameter: str, parameter_end: str, closing: str) -> Callable[[Arguments], str]:
    """Each value as the text of an element, strings without quotes."""

    def write(arguments: Arguments) -> str:
        parts = [parameter.format(key) + raw(value) + parameter_end for key, value in arguments.items()]
        return opening + "".join(parts) + closing

    return write


def sketch(value: Any) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, list):
        return "[" + ",".join(map(sketch, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{sketch(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def jsonly(template: str) -> Callable[[Arguments], str]:
    return lambda arguments: template.replace("ARGUMENTS", json.dumps(arguments, ensure_ascii=False))


QUOTED: dict[str, Callable[[Arguments], str]] = {
    "hermes": jsonly('<tool_call>\n{"name": "run_it", "arguments": ARGUMENTS}\n</tool_call>'),
    "qwen3-coder": jsonly("<function=run_it>ARGUMENTS</function>"),
    "llama3": jsonly('<|python_tag|>{"name": "run_it", "parameters": ARGUMENTS}'),
    "mistral": jsonly("[TOOL_CALLS]run_it[ARGS]ARGUMENTS"),
    "deepseek-v3": jsonly(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>run_it\n```json\nARGUMENTS\n```<｜tool▁call▁end｜>"
    ),
    "kimi-k2": jsonly("<|tool_call_begin|>functions.run_it:0<|tool_call_argument_begin|>ARGUMENTS<|tool_call_end|>"),
    "harmony": jsonly("<|channel|>commentary to=functions.run_it <|constrain|>json<|message|>ARGUMENTS<|call|>"),
    "apertus": jsonly('<|tools_prefix|>[{"run_it": ARGUMENTS}]<|tools_suffix|>'),
    "granite": jsonly('<|tool_call|>[{"name": "run_it", "arguments": ARGUMENTS}]'),
    "command": jsonly('<|START_ACTION|>[{"tool_name": "run_it", "parameters": ARGUMENTS}]<|END_ACTION|>'),
    "lfm2": lambda arguments: (
        "<|tool_call_start|>[run_it("
        + ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        + ")]<|tool_call_end|>"
    ),
    "gemma4": lambda arguments: f"<|tool_call>call:run_it{sketch(arguments)}<tool_call|>",
}
"""Families that quote their strings: they can say anything, but Gemma cannot say its own quote."""

UNQUOTED: dict[str, Callable[[Arguments], str]] = {
    "qwen3-coder": tags(
        "<tool_call>\n<function=run_it>\n", "<parameter={}>\n", "\n</parameter>\n", "</function>\n</tool_call>"
    ),
    "minimax-m2": tags(
        '<minimax:tool_call>\n<invoke name="run_it">\n',
        '<parameter name="{}">\n',
        "\n</parameter>\n",
        "</invoke>\n</minimax:tool_call>",
    ),
    "seed-oss": tags(
        "<seed:tool_call>\n<function=run_it>\n",
        "<parameter={}>\n",
        "\n</parameter>\n",
        "</function>\n</seed:tool_call>",
    ),
    "kimi-k3": tags(
        '<|open|>call tool="run_it" index="1"<|sep|>',
        '<|open|>argument key="{}"<|sep|>',
        "<|close|>argument<|sep|>",
        "<|close|>call<|sep|>",
    ),
}
"""Families that do not: a string that is not trimmed, and that no other type's spelling claims, comes back."""


def check(dialect: str, text: str, arguments: Arguments) -> None:
    tools = [tool_for(arguments)]
    reply = parse(f"Now.\n{text}\nDone.", tools, dialect=dialect)
    assert [call.name for call in reply.calls] == ["run_it"]
    assert json.loads(reply.calls[0].arguments) == arguments
    assert reply.content.split() == ["Now.", "Done."]
    pieces = [f"Now.\n{text}\nDone."[at : at + 3] for at in range(0, len(text) + 12, 3)]
    assert essence(read(pieces, tools, dialect=dialect, stream_arguments_after=None)) == essence(reply)


@given(dialect=st.sampled_from(sorted(QUOTED)), arguments=CALLS)
def test_quoted(dialect: str, arguments: Arguments) -> None:
    assume(dialect != "gemma4" or '<|"|>' not in json.dumps(arguments, ensure_ascii=False).replace('\\"', '"'))
    check(dialect, QUOTED[dialect](arguments), arguments)


@given(dialect=st.sampled_from(sorted(UNQUOTED)), arguments=CALLS)
def test_unquoted(dialect: str, arguments: Arguments) -> None:
    check(dialect, UNQUOTED[dialect](arguments), arguments)


def test_the_rows_exist() -> None:
    assert {*QUOTED, *UNQUOTED} <= {row.name for row in DIALECTS}


@given(
    arguments=st.dictionaries(
        NAMES, st.recursive(PROSE, lambda inner: st.dictionaries(NAMES, inner, min_size=1)), max_size=3
    )
)
def test_nested_elements(arguments: Arguments) -> None:
    mark = "]<]minimax[>["

    def write(value: Any) -> str:
        if isinstance(value, str):
            return value
        return "".join(f"{mark}<{key}>{write(item)}{mark}</{key}>" for key, item in value.items())

    assume("item" not in str(arguments))
    text = f'{mark}<tool_call>{mark}<invoke name="run_it">{write(arguments)}{mark}</invoke>{mark}</tool_call>'
    check("minimax-m3", text, arguments)

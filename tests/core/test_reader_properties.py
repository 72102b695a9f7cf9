"""What holds for any reply: nothing raises, is lost, doubled or made up, and pieces equal the whole."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.events import ToolArgumentsDelta, ToolCallStart
from proxy.core.model import Json
from proxy.core.parser import Parser, parse
from proxy.testing import assert_stream_equals_whole, chunkings, essence, soup, values
from tests.support.reading import events_of, read, tool

TOOLS = (
    tool("get_weather", "city", city="string", days="integer"),
    tool("get_time"),
    tool("write_file", path="string", content="string", mode={"enum": ["a", "w"]}, tags="array", deep="object"),
)
PIECES = (
    '{"name": "get_time", "arguments": {}}', 'get_weather", "arguments": {"city": "Oslo"}}', "get_time", "get_weather",
    "<tool_call>", "</tool_call>", "<tool_call", "tool_call>", "<function=get_weather>", "<parameter=city>",
    "</function>", "<tool_result", "\ud800",
)  # fmt: skip
SOUP = soup(PIECES)
FINISHES = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "error", None])
HOW = st.fixed_dictionaries(
    {},
    optional={
        "starts_in_reasoning": st.booleans(),
        "read_calls": st.booleans(),
        "parallel": st.booleans(),
    },
)
ARGUMENTS = values({"type": "object"})
WORDS = st.text(alphabet="ab .!?\n", max_size=12)


def protocol(name: str, arguments: Json, **style: Any) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, **style)}</tool_call>"


@given(SOUP, st.data(), FINISHES, HOW)
def test_pieces_equal_the_whole(text: str, data: st.DataObject, finish: str | None, how: dict[str, Any]) -> None:
    equal_in_pieces(text, [data.draw(chunkings(text)), list(text)], finish, **how)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("```\n{\n\n", 5),
        ('Here: {"name": "get_weather", "a\x01": "<|channel|>final<|message|>"', 1),
        ('{"name": "get_weather", "arguments": "<|channel|>final', 1),
    ],
)
def test_pieces_that_once_did_not(text: str, place: int) -> None:
    equal_in_pieces(text, [[text[:place], text[place:]], list(text)], "stop")


def equal_in_pieces(text: str, chunks: list[list[str]], finish: str | None, **how: Any) -> None:
    assert_stream_equals_whole(
        text,
        lambda: Parser(TOOLS, stream_arguments_after=None, **how),
        chunkings=chunks,
        whole=lambda text: essence(parse(text, TOOLS, finish_reason=finish, **how)),
        ending=(finish,),
    )


@given(SOUP, st.integers(0, 40), FINISHES)
def test_fragments_equal_the_whole_or_end_in_an_error(text: str, after: int, finish: str | None) -> None:
    streamed = read(list(text), TOOLS, finish_reason=finish, stream_arguments_after=after)
    late = any(problem.kind == "late_reasoning" for problem in streamed.problems)
    if streamed.finish != "error" and not late:
        assert essence(streamed) == essence(parse(text, TOOLS, finish_reason=finish))


@given(st.text() | SOUP, FINISHES, HOW)
def test_no_text_raises(text: str, finish: str | None, how: dict[str, Any]) -> None:
    for tools in ((), TOOLS):
        for call in parse(text, tools, finish_reason=finish, **how).calls:
            assert isinstance(json.loads(call.arguments), dict)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["get_time", "get_weather"]), ARGUMENTS), max_size=4), WORDS)
def test_text_outside_calls_is_neither_lost_nor_doubled(turns: list[tuple[str, str, Json]], last: str) -> None:
    text = "".join(words + protocol(name, arguments) for words, name, arguments in turns) + last
    reply = parse(text)
    assert reply.content == ("".join(words for words, _, _ in turns) + last).strip()
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [turn[1:] for turn in turns]


@given(ARGUMENTS, st.sampled_from([None, 0, 2]), st.booleans())
def test_a_rendered_call_is_read_as_it_was(arguments: Json, indent: int | None, ascii_only: bool) -> None:
    text = protocol("write_file", arguments, indent=indent, ensure_ascii=ascii_only)
    (call,) = parse(text).calls
    assert json.loads(call.arguments) == arguments
    assert call.arguments in text


@given(st.dictionaries(st.sampled_from(["path", "content", "mode"]), st.text(max_size=20)), st.data())
def test_no_edit_makes_up_an_argument(arguments: dict[str, str], data: st.DataObject) -> None:
    text = protocol("write_file", arguments, ensure_ascii=False)
    at = data.draw(st.integers(0, len(text)))
    end = min(len(text), at + data.draw(st.integers(0, 4)))
    edited = (
        text[:at] + data.draw(st.sampled_from(["", '"', "\\", "}", "'", ",", "\n", "x", "</tool_call>"])) + text[end:]
    )
    for call in parse(edited, TOOLS).calls:
        for value in _strings(json.loads(call.arguments)):
            assert _stands_in(value, edited), (value, edited)


@given(st.dictionaries(st.sampled_from(["path", "content"]), st.text(max_size=20), min_size=1), st.data())
def test_no_cut_reply_gives_the_cut_call(arguments: dict[str, str], data: st.DataObject) -> None:
    text = protocol("write_file", arguments)
    body = text.removesuffix("</tool_call>")
    kept = data.draw(st.integers(0, len(body) - 1))
    for finish in ("length", "error", None):
        assert parse(text[:kept], TOOLS, finish_reason=finish).calls == ()
    assert parse(body, TOOLS, finish_reason="length").calls != ()


@given(
    st.dictionaries(st.sampled_from(["path", "content", "tags", "mode"]), values(True), min_size=1), st.integers(1, 9)
)
def test_fragments_are_always_a_prefix_of_the_arguments(arguments: Json, step: int) -> None:
    text = protocol("write_file", arguments)
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    final = parse(text, TOOLS).calls[0].arguments
    sent = ""
    for event in events_of(pieces, TOOLS, stream_arguments_after=0):
        if isinstance(event, ToolCallStart):
            assert sent == ""
        elif isinstance(event, ToolArgumentsDelta):
            sent += event.text
            assert final.startswith(sent)
    assert sent == final


TAGS = {
    "functions": ("<function=write_file>", "<parameter={}>\n{}\n</parameter>", "</function>"),
    "pairs": ("<tool_call>write_file", "<arg_key>{}</arg_key><arg_value>{}</arg_value>", "</tool_call>"),
    "invoke": (
        '<function_calls><invoke name="write_file">',
        '<parameter name="{}">{}</parameter>',
        "</invoke></function_calls>",
    ),
}
FILLER = "All work and no play makes a dull text. " * 9
RAW = st.lists(st.sampled_from([*PIECES, FILLER, FILLER + "\n", '<parameter name="path">']), max_size=8).map("".join)


@pytest.mark.parametrize("name", TAGS)
@given(
    values=st.dictionaries(st.sampled_from(["path", "content", "mode", "tags"]), RAW, min_size=1),
    step=st.integers(1, 40),
    dialect=st.booleans(),
)
def test_fragments_of_markup_are_a_prefix_or_end_in_an_error(
    name: str, values: dict[str, str], step: int, dialect: bool
) -> None:
    head, element, tail = TAGS[name]
    text = head + "".join(element.format(key, value) for key, value in values.items()) + tail
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    row = "function-calls" if dialect and name == "invoke" else "auto"
    streamed = read(pieces, TOOLS, stream_arguments_after=0, dialect=row)
    if streamed.finish != "error" and not any(problem.kind == "late_reasoning" for problem in streamed.problems):
        assert essence(streamed) == essence(parse(text, TOOLS, dialect=row))


@pytest.mark.parametrize("step", [1, 3, 5, 11])
def test_short_values_of_markup_flow_as_they_are(step: int) -> None:
    text = "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n<arg_key>content</arg_key>\n"
    text += "<arg_value>b</arg_value>\n</tool_call>"
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    streamed = read(pieces, TOOLS, stream_arguments_after=0)
    assert essence(streamed) == essence(parse(text, TOOLS))


@pytest.mark.parametrize("name", ["functions", "pairs"])
def test_a_long_value_of_markup_flows(name: str) -> None:
    head, element, tail = TAGS[name]
    content = 'if a < b and c > d: print("</p>")\n' * 3000
    text = head + element.format("path", "a.py") + element.format("content", content) + tail
    parser = Parser(TOOLS)
    sent: list[str] = []
    longest = waited = 0
    for at in range(0, len(text), 40):
        fragments = [event.text for event in parser.feed(text[at : at + 40]) if isinstance(event, ToolArgumentsDelta)]
        sent += fragments
        waited = 0 if fragments else waited + 40
        longest = max(longest, waited)
    events = parser.close("stop")
    sent += [event.text for event in events if isinstance(event, ToolArgumentsDelta)]
    assert json.loads("".join(sent)) == {"path": "a.py", "content": content}
    assert len(sent) > 8
    assert longest < len(text) / 4


HOSTILE = {
    "openers": "<tool_call>",
    "opened objects": '<tool_call>{"a": "',
    "broken objects": "<tool_call>{",
    "angle brackets": "<",
    "braces": "{",
    "backticks": "` ",
    "fences": "```\n",
    "function tags": "<function=get_time>",
    "parameters": "<function=f><parameter=p>",
    "result lines": "[Tool results] ",
    "white space": " \n",
    "inline calls": '`<tool_call>{"name": "get_time"}</tool_call>',
    "quotes": '<tool_call>{"a": "b" "',
    "closers": "</tool_call>",
    "think": "<think>",
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_replies_cost_linear_time(unit: str) -> None:
    """Ten times the text may cost at most forty times the time, whole or in pieces; quadratic would be a hundred."""

    def cost(size: int, step: int) -> float:
        text = unit * (size // len(unit))
        best = 1e9
        for _ in range(2):
            parser = Parser(TOOLS)
            begun = time.process_time()
            for at in range(0, len(text), step):
                parser.feed(text[at : at + step])
            parser.close("stop")
            best = min(best, time.process_time() - begun)
        return best

    for step in (16, 1_000_000):
        assert cost(200_000, step) < 40 * cost(20_000, step) + 0.05


def _strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [found for inner in value.values() for found in _strings(inner)]
    if isinstance(value, list):
        return [found for inner in value for found in _strings(inner)]
    return []


def _stands_in(value: str, text: str) -> bool:
    """Whether ``value`` is in ``text`` as it is, escaped, or with the escapes of the text undone."""
    if value in text or json.dumps(value, ensure_ascii=False)[1:-1] in text:
        return True
    return _unescaped(value) in _unescaped(text)


def _unescaped(text: str) -> str:
    for escape, char in (("\\n", "\n"), ("\\t", "\t"), ("\\r", "\r"), ("\\b", "\b"), ("\\f", "\f")):
        text = text.replace(escape, char)
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return text.replace("\\", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")

"""The reader against the protocol: one row a behaviour, each read whole and in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from proxy.core.collect import collect
from proxy.core.events import Finish, ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallEnd, ToolCallStart
from proxy.core.parser import Parser, parse
from tests.support.reading import events_of, read, read_every_way, tool

WEATHER = tool("get_weather", "city", city="string", days="integer")
CLOCK = tool("get_time")
WRITE = tool("write_file", "path", "content", path="string", content="string")
SHELL = tool("run", "command", command="string")
FLAGS = tool("set_flags", on="boolean", tags="array", note={"type": ["string", "null"]})
TOOLS = (WEATHER, CLOCK, WRITE, SHELL, FLAGS)

OSLO = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
NOON = '<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
OSLO_CALL = ("get_weather", {"city": "Oslo"})
NOON_CALL: tuple[str, dict[str, Any]] = ("get_time", {})


@dataclass(frozen=True)
class Row:
    """A reply and what it means. ``content`` and ``reasoning`` are ``""`` for none."""

    name: str
    text: str
    calls: tuple[tuple[str, Any], ...] = ()
    content: str = ""
    reasoning: str = ""
    finish: str | None = None
    given: str | None = "stop"
    problems: frozenset[str] = frozenset()
    how: dict[str, Any] = field(default_factory=dict)


ROWS = (
    # a call and its surroundings
    Row("plain text", "It is noon.", content="It is noon."),
    Row("empty", ""),
    Row("one call", OSLO, (OSLO_CALL,)),
    Row("text before a call", f"Let me look.\n{NOON}", (NOON_CALL,), "Let me look."),
    Row("text on both sides", f"A.\n{NOON}\nB.", (NOON_CALL,), "A.\n\nB."),
    Row("two calls", f"{OSLO}\n{NOON}", (OSLO_CALL, NOON_CALL)),
    Row("equal calls are all meant", NOON * 3, (NOON_CALL,) * 3),
    Row("a comparison is text", "if a < b and c <d> e", content="if a < b and c <d> e"),
    Row("half a tag at the end", "the operator <tool", content="the operator <tool"),
    Row("misspelt tag", '<toolcall> {"name":"get_time","arguments":{}} </toolcall>', (NOON_CALL,)),
    Row("a byte order mark", f"\ufeff<think>Hm.</think>{NOON}", (NOON_CALL,), reasoning="Hm."),
    Row("characters without width", f"<tool_call>\u200b\n\ufeff{NOON.removeprefix('<tool_call>')}", (NOON_CALL,)),
    # where a call ends
    Row(
        "an opener for a closer, then words",
        f"{NOON.removesuffix('</tool_call>')}<tool_call>\nDone.",
        (NOON_CALL,),
        "Done.",
        problems=frozenset({"dropped_markup"}),
    ),
    Row("openers without a call", "<tool_call><tool_call> is a tag.", content="<tool_call><tool_call> is a tag."),
    Row("half a closer at the end", OSLO.removesuffix("call>"), (OSLO_CALL,)),
    Row("half a closer, cut", OSLO.removesuffix("call>"), (OSLO_CALL,), given="length", finish="length"),
    Row("half a closer of tags", "<function=get_time></functio", (NOON_CALL,)),
    Row(
        "an opener in a value, and no closer of its own",
        "<tool_call>\n<function=run>\n<parameter=command>\nsed '<tool_call>{'\n</parameter>\n</function>\n</tool_call>",
        (("run", {"command": "sed '<tool_call>{'"}),),
    ),
    Row(
        "an opener in a value, and text behind the call",
        "<tool_call>\n<function=run>\n<parameter=command>\n<toolcall>\n</parameter>\n</function>\n</tool_call>\nDone.",
        (("run", {"command": "<toolcall>"}),),
        "Done.",
    ),
    Row(
        "quotes around the closer of JSON in tags",
        '<function=run>{"command": "echo "</function>" x"}</function>',
        (("run", {"command": 'echo "</function>" x'}),),
        problems=frozenset({"repaired"}),
    ),
    Row(
        "quotes around the closer of JSON behind a name",
        '<tool_call>run\n{"command": "echo "</tool_call>" x"}\n</tool_call>',
        (("run", {"command": 'echo "</tool_call>" x'}),),
        problems=frozenset({"repaired"}),
    ),
    Row(
        "a missing bracket of JSON in tags",
        '<function=run>{"command": "ls"</function>',
        (("run", {"command": "ls"}),),
        problems=frozenset({"repaired"}),
    ),
    Row("Python of no tool", '<tool_call>print("x")</tool_call>', content='<tool_call>print("x")</tool_call>'),
    Row("no closer, complete", OSLO.removesuffix("</tool_call>"), (OSLO_CALL,)),
    Row("next opener closes", OSLO.removesuffix("</tool_call>") + "\n" + NOON, (OSLO_CALL, NOON_CALL)),
    Row(
        "closer inside a string",
        '<tool_call>{"name": "run", "arguments": {"command": "grep \'</tool_call>\' x | cat"}}</tool_call>',
        (("run", {"command": "grep '</tool_call>' x | cat"}),),
    ),
    Row(
        "opener and think inside a string",
        '<tool_call>{"name": "run", "arguments": {"command": "<think>a</think><tool_call>"}}</tool_call>',
        (("run", {"command": "<think>a</think><tool_call>"}),),
    ),
    Row(
        "braces and terminators inside a string",
        '<tool_call>{"name": "run", "arguments": {"command": "}]{ <|im_end|> \\" }"}}</tool_call><|im_end|>\n',
        (("run", {"command": '}]{ <|im_end|> " }'}),),
    ),
    Row("one brace too many", OSLO.replace("}}<", "}}}<"), (OSLO_CALL,), problems=frozenset({"dropped_text"})),
    Row("one brace too few", OSLO.replace("}}<", "}<"), (OSLO_CALL,), problems=frozenset({"repaired"})),
    Row(
        "words before the closer",
        OSLO.replace("</", "\nThis asks for Oslo.</"),
        (OSLO_CALL,),
        problems=frozenset({"dropped_text"}),
    ),
    Row(
        "words and no closer",
        OSLO.removesuffix("</tool_call>") + "\nI asked.\n\nWait for it.",
        (OSLO_CALL,),
        "I asked.\n\nWait for it.",
    ),
    Row(
        "closer in quotes that are not escaped",
        '<tool_call>{"name": "run", "arguments": {"command": "grep "</tool_call>" x"}}</tool_call> Done.',
        (("run", {"command": 'grep "</tool_call>" x'}),),
        "Done.",
        problems=frozenset({"repaired"}),
    ),
    Row(
        "closer behind a string whose brackets are missing",
        '<tool_call>{"name": "run", "arguments": {"command": "ls"</tool_call> Done.',
        (("run", {"command": "ls"}),),
        "Done.",
        problems=frozenset({"repaired"}),
    ),
    Row("stray closer", f"{NOON}</tool_call> Done.", (NOON_CALL,), "Done.", problems=frozenset({"dropped_markup"})),
    Row(
        "closer without an opener",
        'Looking.\n\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        (OSLO_CALL,),
        "Looking.",
    ),
    # replies that end too early
    Row(
        "stopped inside a call",
        'Now.\n<tool_call>{"name": "run", "arguments": {"command": "rm -r',
        (),
        'Now.\n<tool_call>{"name": "run", "arguments": {"command": "rm -r',
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "cut inside a call",
        'Now.\n<tool_call>{"name": "run", "arguments": {"command": "rm -r',
        (),
        "Now.",
        finish="length",
        given="length",
        problems=frozenset({"cut"}),
    ),
    Row("cut behind a call", OSLO, (OSLO_CALL,), finish="length", given="length"),
    Row(
        "second call cut",
        OSLO + '<tool_call>{"name": "get_ti',
        (OSLO_CALL,),
        finish="length",
        given="length",
        problems=frozenset({"cut"}),
    ),
    Row("cut without a reason, in text", "It is", content="It is", finish="stop", given=None),
    Row("cut without a reason, in a call", '<tool_call>{"name"', finish="length", given=None),
    Row("filtered", "It is", content="It is", finish="content_filter", given="content_filter"),
    # bodies that are not quite JSON
    Row(
        "raw line breaks",
        '<tool_call>{"name": "run", "arguments": {"command": "a\nb\tc"}}</tool_call>',
        (("run", {"command": "a\nb\tc"}),),
        problems=frozenset({"repaired"}),
    ),
    Row(
        "Python literals",
        "<tool_call>{'name': 'set_flags', 'arguments': {'on': True, 'note': None, 'tags': ['a']}}</tool_call>",
        (("set_flags", {"on": True, "note": None, "tags": ["a"]}),),
        problems=frozenset({"repaired"}),
    ),
    Row(
        "one broken call does not lose the other",
        f'{NOON}\n<tool_call>{{"name": "get_weather", "arguments": {{"city":</tool_call>\n{OSLO}',
        (NOON_CALL, OSLO_CALL),
        '<tool_call>{"name": "get_weather", "arguments": {"city":</tool_call>',
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "an unclosed string does not swallow the next call",
        f'<tool_call>{{"name": "get_weather", "arguments": {{"city": "Rome}}}}</tool_call>\n{OSLO}',
        (OSLO_CALL,),
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome}}</tool_call>',
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "fence inside the tag",
        '<tool_call>\n```json\n{"name": "get_time", "arguments": {}}\n```\n</tool_call>',
        (NOON_CALL,),
    ),
    Row(
        "list in a tag",
        '<tool_call>[{"name": "get_time"}, {"name": "get_weather", "arguments": {"city": "Oslo"}}]</tool_call>',
        (NOON_CALL, OSLO_CALL),
    ),
    Row(
        "two objects in a tag",
        '<tool_call>\n{"name": "get_time"}\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        (NOON_CALL, OSLO_CALL),
    ),
    Row(
        "arguments that are a list",
        '<tool_call>{"name": "get_weather", "arguments": ["Oslo"]}</tool_call>',
        (),
        '<tool_call>{"name": "get_weather", "arguments": ["Oslo"]}</tool_call>',
        problems=frozenset({"unreadable"}),
    ),
    Row("not even JSON", "<tool_call>hello</tool_call> there", (), "<tool_call>hello</tool_call> there"),
    # names and types
    Row(
        "number as text", OSLO.replace('"Oslo"', '"Oslo", "days": "3"'), (("get_weather", {"city": "Oslo", "days": 3}),)
    ),
    Row("name by case", NOON.replace("get_time", "Get_Time"), (NOON_CALL,), problems=frozenset({"renamed"})),
    Row(
        "unknown name",
        NOON.replace("get_time", "teleport"),
        (("teleport", {}),),
        problems=frozenset({"unknown_tool"}),
    ),
    Row(
        "invalid arguments pass",
        OSLO.replace('"Oslo"', '"Oslo", "days": "three"'),
        (("get_weather", {"city": "Oslo", "days": "three"}),),
        problems=frozenset({"invalid_arguments"}),
    ),
    # reasoning
    Row("reasoning", "<think>Easy.</think>\n\nNoon.", content="Noon.", reasoning="Easy."),
    Row("reasoning, then a call", f"<think>Ask.</think>{NOON}", (NOON_CALL,), reasoning="Ask."),
    Row(
        "reasoning twice before the answer",
        f"<think>Ask.</think>\n<think>Or {OSLO}?</think>\nHi.",
        content="Hi.",
        reasoning=f"Ask.\n\nOr {OSLO}?",
    ),
    Row("unclosed reasoning", "<think>Hm, let me", reasoning="Hm, let me"),
    Row(
        "a draft in the reasoning is no call",
        f"<think>Maybe {OSLO} fits.</think>It is noon.",
        content="It is noon.",
        reasoning=f"Maybe {OSLO} fits.",
    ),
    Row("a draft and the call", f"<think>Maybe {OSLO}</think>{NOON}", (NOON_CALL,), reasoning=f"Maybe {OSLO}"),
    Row(
        "the only call ends the reasoning",
        f"<think>I need the time.\n{NOON}\n</think>\n",
        (NOON_CALL,),
        reasoning=f"I need the time.\n{NOON}",
        problems=frozenset({"promoted"}),
    ),
    Row(
        "a call in the reasoning with words behind it",
        f"<think>{NOON} would do.</think>",
        reasoning=f"{NOON} would do.",
    ),
    Row("prompt opened the reasoning", "Hm.</think>Noon.", (), "Noon.", "Hm.", how={"starts_in_reasoning": True}),
    Row(
        "opener written all the same", "<think>Hm.</think>Noon.", (), "Noon.", "Hm.", how={"starts_in_reasoning": True}
    ),
    Row("lone closer", f"The clock.\n</think>\n\n{NOON}", (NOON_CALL,), reasoning="The clock."),
    Row("think marks in the answer", "Hi. Use <think>x</think> so.", content="Hi. Use <think>x</think> so."),
    Row(
        "a draft amid the answer",
        f"Well.\n<think>\nOr {OSLO}?\n</think>\n{NOON}",
        (NOON_CALL,),
        "Well.",
        f"Or {OSLO}?",
    ),
    Row("a draft behind the call", f"{NOON}<think>Or {OSLO}", (NOON_CALL,), reasoning=f"Or {OSLO}"),
    Row("reasoning and more of it", "<think>A.</think>B.\n<think>C.</think>\nD.", (), "B.\n\nD.", "A.\n\nC."),
    Row("a think mark on a line of its own", "Write.\n<think>\nHm.", content="Write.", reasoning="Hm."),
    Row("think marks in code", "Write `</think>` last.", content="Write `</think>` last."),
    # calls in code, and calls without a tag
    Row("inline code", f"Write `{NOON}` to call.", content=f"Write `{NOON}` to call."),
    Row("a stray backtick", f"The ` key.\nThen ` {NOON}\nDone", (NOON_CALL,), "The ` key.\nThen ` \nDone"),
    Row("fence that ends the reply", f"Sure:\n```xml\n{OSLO}\n```\n", (OSLO_CALL,), "Sure:"),
    Row(
        "fence in an explanation",
        f"So:\n```xml\n{OSLO}\n```\nis a call.",
        content=f"So:\n```xml\n{OSLO}\n```\nis a call.",
    ),
    Row(
        "fence with an invalid call",
        f"```\n{OSLO.replace('city', 'town')}\n```",
        content=f"```\n{OSLO.replace('city', 'town')}\n```",
    ),
    Row("bare JSON", '{"name": "get_weather", "arguments": {"city": "Oslo"}}', (OSLO_CALL,)),
    Row(
        "fenced JSON, then a call on the fence's line",
        '```json\n{"name": "get_time"}\n```' + OSLO + "\nDone.",
        (OSLO_CALL,),
        '```json\n{"name": "get_time"}\n```\nDone.',
    ),
    Row(
        "fenced JSON, then a fence with a call that does not end the reply",
        '```json\n{"name": "get_time"}\n```\n```\n' + OSLO + "\n```\nDone.",
        content='```json\n{"name": "get_time"}\n```\n```\n' + OSLO + "\n```\nDone.",
    ),
    Row(
        "fenced JSON, then words and a call",
        '```json\n{"name": "get_time"}\n```\nNow:\n' + OSLO + "\nDone.",
        (OSLO_CALL,),
        '```json\n{"name": "get_time"}\n```\nNow:\n\nDone.',
    ),
    Row("fenced JSON", '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```', (OSLO_CALL,)),
    Row("bare JSON of no tool", '{"name": "me", "arguments": {}}', content='{"name": "me", "arguments": {}}'),
    Row("bare JSON that is an answer", '{"city": "Oslo"}', content='{"city": "Oslo"}'),
    Row(
        "bare JSON and more",
        '{"name": "get_time", "arguments": {}} is how.',
        content='{"name": "get_time", "arguments": {}} is how.',
    ),
    Row("a fence a call", f"```\n{OSLO}\n```\n\n```xml\n{NOON}\n```", (OSLO_CALL, NOON_CALL)),
    Row(
        "a fence with a call, then one with code",
        f"```\n{OSLO}\n```\n```python\nprint(1)\n```",
        content=f"```\n{OSLO}\n```\n```python\nprint(1)\n```",
    ),
    Row(
        "two fences in an explanation",
        f"```\n{OSLO}\n```\n```\n{NOON}\n```\nSo it is done.",
        content=f"```\n{OSLO}\n```\n```\n{NOON}\n```\nSo it is done.",
    ),
    # drafts and explanations never run
    Row("a draft within a line", f"Hi <think>{NOON}</think>", content=f"Hi <think>{NOON}</think>"),
    Row(
        "a draft behind a call's line", f"{OSLO} and <think>{NOON}</think>", (OSLO_CALL,), f"and <think>{NOON}</think>"
    ),
    Row("a think mark that is only named", f"Use the <think> tag.\n{NOON}", (NOON_CALL,), "Use the <think> tag."),
    Row(
        "a fenced example that its opener closes",
        f"Like\n```xml\n{NOON.replace('</', '<')}\n```\nso. Now:\n{OSLO}",
        (OSLO_CALL,),
        f"Like\n```xml\n{NOON.replace('</', '<')}\n```\nso. Now:",
    ),
    Row("a fenced call that its opener closes", f"```xml\n{NOON.replace('</', '<')}\n```", (NOON_CALL,)),
    Row(
        "an example within a section",
        f"```\n<tool_calls>\n{NOON}\n</tool_calls>\n```\nso.",
        content=f"```\n<tool_calls>\n{NOON}\n</tool_calls>\n```\nso.",
    ),
    Row("a fenced section of calls", f"```\n<tool_calls>\n{NOON}\n</tool_calls>\n```", (NOON_CALL,)),
    Row("cut in inline code", f"Use `{NOON}", content=f"Use `{NOON}", given="length", finish="length"),
    Row("cut in a fence", f"So:\n```\n{NOON}\n", content=f"So:\n```\n{NOON}", given="length", finish="length"),
    Row(
        "reasoning closed by another mark", f"<think>{NOON}</thinking>\n{OSLO}", reasoning=f"{NOON}</thinking>\n{OSLO}"
    ),
    Row(
        "a closer in quotes, and no other",
        '<tool_call>{"name": "run", "arguments": {"command": "rm "</tool_call>"/x',
        content='<tool_call>{"name": "run", "arguments": {"command": "rm "</tool_call>"/x',
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "an undeclared parameter that nothing closes",
        "<function=run>\n<parameter=command>\nls\n<parameter=foo>\n1\n</parameter>\n</function>",
        content="<function=run>\n<parameter=command>\nls\n<parameter=foo>\n1\n</parameter>\n</function>",
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "a line break in elements is no parameter",
        "<tool_call>\n<write_file><path>a</path>\n<content>b\n<br>\nc</content>\n</write_file></tool_call>",
        content="<tool_call>\n<write_file><path>a</path>\n<content>b\n<br>\nc</content>\n</write_file></tool_call>",
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "results made up behind a call that nothing closes",
        f"{OSLO.removesuffix('</tool_call>')}\n[Tool results]\n<tool_result name='x'>20</tool_result>\n{NOON}",
        (OSLO_CALL,),
        problems=frozenset({"fabricated_result"}),
    ),
    Row("a remark in brackets", f"{NOON.removesuffix('</tool_call>')}\n\n[Waiting]", (NOON_CALL,), "[Waiting]"),
    Row("brackets behind a call", f'{NOON}["W1"]', (NOON_CALL,), '["W1"]'),
    Row(
        "a name and its arguments apart",
        '<tool_call>{"name": "get_time"}\n{"arguments": {"zone": "UTC"}}</tool_call>',
        content='<tool_call>{"name": "get_time"}\n{"arguments": {"zone": "UTC"}}</tool_call>',
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "a value that ends in another tag",
        "<function=run>\n<parameter=command>\nls\n</command>\n</function>",
        content="<function=run>\n<parameter=command>\nls\n</command>\n</function>",
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "function tags that the answer is about",
        "Use <function=foo><parameter=x>1</parameter></function> in Qwen.",
        content="Use <function=foo><parameter=x>1</parameter></function> in Qwen.",
        problems=frozenset({"unreadable"}),
    ),
    Row(
        "JSON that is cut before it is a call",
        'Here:\n\n{\n  "type": "weather",\n  "name": "Oslo"',
        content='Here:\n\n{\n  "type": "weather",\n  "name": "Oslo"',
        given="length",
        finish="length",
    ),
    Row(
        "a bare call that is cut",
        '{"name": "get_weather", "arguments": {"city": "Os',
        given="length",
        finish="length",
        problems=frozenset({"cut"}),
    ),
    # tags around calls
    Row("attributes", '<tool_call id="1" name="get_time" n="2">{}</tool_call>', (NOON_CALL,)),
    Row("an attribute that says nothing", f"<tool_call id='1'>{NOON.removeprefix('<tool_call>')}", (NOON_CALL,)),
    Row(
        "attributes of parameters",
        '<invoke name="run" id="1"><parameter name="command" type="string">ls</parameter></invoke>',
        (("run", {"command": "ls"}),),
    ),
    Row("another family's call in our tag", '<tool_call><invoke name="get_time"></invoke></tool_call>', (NOON_CALL,)),
    Row("a closer of another kind", NOON.replace("</tool_call>", "</function>"), (NOON_CALL,)),
    Row("words behind tags", "<tool_call><function=get_time></function>\nDone.", (NOON_CALL,), "Done."),
    Row(
        "JSON in a sentence, closed",
        '{"name": "get_time"} and {"name": "get_time", "arguments": {}}</tool_call>',
        (NOON_CALL,),
        '{"name": "get_time"} and',
    ),
    Row(
        "words between calls in one tag",
        NOON.replace("</tool_call>", "\nand\n") + OSLO.removeprefix("<tool_call>"),
        (NOON_CALL, OSLO_CALL),
        "and",
    ),
    Row(
        "a tag named after a call",
        f"{NOON.removesuffix('</tool_call>')}\n\nThe <tool_call> tag.",
        (NOON_CALL,),
        "The <tool_call> tag.",
    ),
    Row("words on a fence's line", f"```I look.\n{NOON}```", (NOON_CALL,), "```I look."),
    Row("a longer closing fence", f"```\n{NOON}\n````", (NOON_CALL,)),
    # results that the model makes up
    Row(
        "a result behind a call",
        f'{OSLO}\n[Tool results]\n<tool_result name="get_weather" status="ok">12</tool_result>\n{NOON}',
        (OSLO_CALL,),
        problems=frozenset({"fabricated_result"}),
    ),
    Row("a result first", "<tool_response>12</tool_response> It is 12.", problems=frozenset({"fabricated_result"})),
    Row("a result mentioned", "The <tool_result> tag.", content="The <tool_result> tag."),
    Row("the line alone", f"{NOON}[Tool results] come later.", (NOON_CALL,), "[Tool results] come later."),
    # what the request allows
    Row("first call only", OSLO + NOON, (OSLO_CALL,), how={"parallel": False}),
    Row("no calls read", NOON, (), NOON, how={"read_calls": False}),
    Row("no calls read, reasoning is", f"<think>a</think>{NOON}", (), NOON, "a", how={"read_calls": False}),
)


def functions(name: str, **values: str) -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def pairs(name: str, **values: str) -> str:
    inner = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in values.items())
    return f"<tool_call>{name}{inner}</tool_call>"


def invoked(name: str, **values: str) -> str:
    inner = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in values.items())
    return f'<function_calls>\n<invoke name="{name}">\n{inner}</invoke>\n</function_calls>'


def raw_json(name: str, **values: str) -> str:
    """A call whose strings hold raw line breaks."""
    marked = {key: value.replace("\n", "\N{PILCROW SIGN}") for key, value in values.items()}
    text = json.dumps({"name": name, "arguments": marked}, ensure_ascii=False)
    return "<tool_call>" + text.replace("\N{PILCROW SIGN}", "\n") + "</tool_call>"


RUN = "rm -rf build"
CONTENTS = {
    "a fenced example": f"# How\n```xml\n{functions('run', command=RUN)}\n```\nThat is all.",
    "an example in a string": f"A = '{pairs('run', command=RUN)}'\nprint(A)",
    "lines of JSON": "\n".join([json.dumps({"text": functions("run", command=RUN)})] * 3),
    "lines of JSON, on one line each": "\n".join([json.dumps({"text": pairs("run", command=RUN)})] * 3),
    "invoke in JSON": json.dumps({"text": invoked("run", command=RUN)}),
    "many examples": "\n".join([functions("get_weather", city=f"c{n}") for n in range(30)]),
    "many examples in JSON": "\n".join([OSLO] * 40),
    "closers in strings": 'a = text.split("</tool_call><tool_call>")\nb = 1',
    "all closers in a string": "END = '</parameter></function></tool_call>'\nb = 1",
    "pairs' closers in a string": "a = s.endswith('</arg_value></tool_call>')\nb = 1",
    "invoke's closers in a string": 'END = "</parameter></invoke></function_calls>"\nb = 1',
    "elements of the same name": "<a>\n  <parameter name='x'>1</parameter>\n  <parameter>2</parameter>\n</a>",
    "a page": "<html>\n<body>\n<br>\n<p class='x'>a < b</p>\n</body>\n</html>",
}


@pytest.mark.parametrize("write", [functions, pairs, invoked, raw_json])
@pytest.mark.parametrize("name", CONTENTS)
def test_what_a_file_holds_never_runs(name: str, write: Callable[..., str]) -> None:
    content = CONTENTS[name]
    text = write("write_file", path="a", content=content)
    reply = read_every_way(text, TOOLS)
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] in (
        [("write_file", {"path": "a", "content": content})],
        [],  # more than one reading: then all of it is text
    )
    if name not in HARD.get(write.__name__, ()):
        assert reply.calls


HARD: dict[str, tuple[str, ...]] = {}
"""Files that have more than one reading."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_reply(row: Row) -> None:
    reply = read_every_way(row.text, TOOLS, finish_reason=row.given, **row.how)
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == list(row.calls)
    assert reply.content == row.content
    assert reply.reasoning == row.reasoning
    assert reply.finish == (row.finish or ("tool_calls" if row.calls else "stop"))
    assert row.problems <= {problem.kind for problem in reply.problems}


def test_numbers_go_through_as_written() -> None:
    digits = "9" * 5000
    arguments = f'{{"big": {digits}, "exponent": 1E+05, "float": 1.10, "id": 4611686018427387905}}'
    reply = parse(f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>')
    assert reply.calls[0].arguments == arguments


def test_call_ids_are_unique_and_can_be_given() -> None:
    first, second = parse(NOON * 2, TOOLS).calls
    assert first.id != second.id
    ids = iter(("a", "b"))
    assert [call.id for call in parse(NOON * 2, TOOLS, new_id=lambda: next(ids)).calls] == ["a", "b"]


def test_a_call_is_held_back_until_it_is_complete() -> None:
    parser = Parser(TOOLS)
    inside = []
    assert parser.feed("Look: <tool") == [TextDelta("Look:")]
    assert parser.feed('_call>{"name": "get_time", "arguments": {}') == []
    inside.append(parser.inside_call)
    events = parser.feed("}</tool_call>")
    inside.append(parser.inside_call)
    assert [type(event) for event in events] == [ToolCallStart, ToolArgumentsDelta, ToolCallEnd]
    assert inside == [True, False]
    assert parser.close("stop") == [Finish("tool_calls")]
    assert parser.close("stop") == []


def test_text_flows_at_once() -> None:
    parser = Parser(TOOLS)
    assert parser.feed("It is ") == [TextDelta("It is")]
    assert parser.feed("noon") == [TextDelta(" noon")]
    assert parser.feed(" <") == []
    assert parser.feed(" 3") == [TextDelta(" < 3")]


def test_done_tells_that_nothing_more_counts() -> None:
    parser = Parser(TOOLS, parallel=False)
    parser.feed(OSLO)
    assert parser.done
    parser = Parser(TOOLS)
    parser.feed(OSLO)
    assert not parser.done
    parser.feed("<tool_result name=")
    assert parser.done


def test_whole_returns_nothing_before_the_end() -> None:
    parser = Parser(TOOLS, whole=True)
    assert parser.feed("Let me think.</think>") == []
    assert parser.feed("Noon.") == []
    assert parser.close("stop") == [ReasoningDelta("Let me think."), TextDelta("Noon."), Finish("stop")]


def test_a_late_closer_in_a_stream_is_said() -> None:
    reply = read(["Let me think.", "</think>", "Noon."], TOOLS)
    assert reply.content == "Let me think.Noon."
    assert [problem.kind for problem in reply.problems] == ["late_reasoning"]


def test_reasoning_of_the_backend_itself() -> None:
    parser = Parser(TOOLS)
    events = parser.feed_reasoning("Ask the ") + parser.feed_reasoning("clock.") + parser.feed(NOON) + parser.close()
    reply = collect(events)
    assert reply.reasoning == "Ask the clock."
    assert len(reply.calls) == 1


@pytest.mark.parametrize("after", [0, 40])
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_long_arguments_flow(after: int, step: int) -> None:
    arguments = '{"path": "a", "days" : "3", "content": "x\\n\\"y</tool_call>\\u00e9" , "more": [1, {"a": "}"}]}'
    text = f'Hi <tool_call>{{"name": "write_file", "arguments": {arguments}}}</tool_call> there'
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    tools = (tool("write_file", path="string", days="integer", content="string"),)
    reply = read(pieces, tools, stream_arguments_after=after)
    assert reply.calls[0].arguments == parse(text, tools).calls[0].arguments
    assert reply.calls[0].arguments == arguments.replace('"3"', "3")
    assert reply.content == "Hi  there"
    if step == 1:
        events = events_of(pieces, tools, stream_arguments_after=after)
        assert sum(isinstance(event, ToolArgumentsDelta) for event in events) > 10


def test_arguments_that_cannot_be_completed_end_in_an_error() -> None:
    text = '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "print(" and that'
    events = events_of(list(text), TOOLS, stream_arguments_after=0)
    assert not any(isinstance(event, ToolCallEnd) for event in events)
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.reason == "error"
    assert finish.message


def test_a_repair_must_fit_what_was_sent() -> None:
    text = '<tool_call>{"name": "write_file", "arguments": {"path": "a", "content": "print("hi")"}}</tool_call>'
    reply = read(list(text), TOOLS, stream_arguments_after=0)
    if reply.finish != "error":
        assert json.loads(reply.calls[0].arguments) == {"path": "a", "content": 'print("hi")'}


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown dialect"):
        Parser(dialect="klingon")

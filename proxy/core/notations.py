"""The bodies of calls that rows of the dialect table share, and what makes them."""

from __future__ import annotations

import re

from proxy.core.forms import Form, Heading, JsonBody, PythonBody, TagsBody

JSON = JsonBody()
JSON_LIST = JsonBody(starts="[")
PYTHON = PythonBody()
LOOSE_PYTHON = PythonBody(loose=True)

_NAME = r"(?P<name>[\w.:/-]+)"
_ATTRIBUTE = r"""{}=(?P<quote>["'])(?P<{}>(?:(?!(?P=quote))[^<>])*)(?P=quote)"""


def headed(header: str, until: str = "{") -> JsonBody:
    """JSON arguments behind a header that names the tool."""
    return JsonBody(header=re.compile(header), until=until)


def invoke(prefix: str = "", *, before: str = "", label: str = "", behind: str = "") -> TagsBody:
    """``<invoke name="tool"><parameter name="key">value</parameter></invoke>``, with ``prefix`` in every tag's name.

    ``before`` and ``behind`` stand around each call; ``label`` matches what may stand behind the former.
    """
    tag = re.escape(prefix)
    said = r"""(?:[^<>]*?\sstring=["'](?:(?P<string>true)|(?P<json>false))["'])?[^<>]*"""
    return TagsBody(
        lead=before or f"<{prefix}invoke",
        call=re.compile(rf"{re.escape(before)}\s*{label}<{tag}invoke\s+{_ATTRIBUTE.format('name', 'name')}[^<>]*>"),
        call_end=f"</{prefix}invoke>{behind}",
        parameter=re.compile(rf"<{tag}parameter\s+{_ATTRIBUTE.format('name', 'key')}{said}>"),
        parameter_end=f"</{prefix}parameter>",
    )


def pairs(prefix: str = "", between: str = "") -> TagsBody:
    """``tool<arg_key>key</arg_key><arg_value>value</arg_value>``, with ``prefix`` in every tag's name.

    The opening tag of a value may be missing. ``between`` matches what stands between key and value.
    """
    tag = re.escape(prefix)
    space = r"(?:\s|\\n)*"
    return TagsBody(
        lead="",
        call=re.compile(r"(?P<name>[^\W\d][\w.:/-]*)(?:<tool_sep>)?(?=\s*(?:<|$)|\n|\\n)"),
        call_end=None,
        parameter=re.compile(rf"<{tag}arg_key>(?P<key>[^<]+)</{tag}arg_key>{between}{space}(?:<{tag}arg_value>|(?!<))"),
        parameter_end=f"</{prefix}arg_value>",
        loose=True,
        own_tags=True,
        trimmed=False,
    )


def functions(tag: str, parameter: str) -> TagsBody:
    """``<function name="tool"><param name="key">value</param></function>``; ``tag``, ``parameter``: up to the name."""
    return TagsBody(
        lead=tag,
        call=re.compile(rf'{tag}"(?P<name>[^"<>]+)">'),
        call_end="</function>",
        parameter=re.compile(rf'{parameter}"(?P<key>[^"<>]+)">'),
        parameter_end="</param>",
    )


def messages(openers: tuple[str, ...], *bodies: JsonBody | TagsBody | Heading) -> tuple[Form, ...]:
    """Messages below a header, which begins with a token, or with the receiver where the prompt has the token."""
    closers = ("<|call|>", "<|end|>")
    tokens = tuple(Form(opener, bodies, closers, kept=True) for opener in openers)
    return (*tokens, Form("to=", bodies, closers, kept=True, head=True))


LABELLED_CALL = headed(rf"<tool_call\s(?:[^<>]*?{_ATTRIBUTE.format('name', 'name')})?[^<>]*>\s*", until=">")
MISTRAL_CALL = headed(rf"{_NAME}\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?\s*")
DEEPSEEK_CALL = headed(rf"(?:function<｜tool▁sep｜>)?{_NAME}\s*(?:<｜tool▁sep｜>)?\s*")
FUNCTIONARY_CALL = headed(rf"{_NAME}\n")
KIMI_CALL = headed(
    r"(?:functions\.)?(?P<name>[\w./-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*",
    until="<|tool_call_argument_begin|>",
)
SOLAR_CALL = headed(r"[\w-]*<\|tool_call:name\|>(?P<name>[^<]+)<\|tool_call:args\|>\s*", until="<|tool_call:args|>")
PLAMO_CALL = headed(
    r"<\|plamo:begin_tool_name:plamo\|>(?P<name>[^<]+)<\|plamo:end_tool_name:plamo\|>\s*"
    r"<\|plamo:begin_tool_arguments:plamo\|>(?:<\|plamo:constrain\|>\w+)?<\|plamo:msg\|>\s*",
    until="<|plamo:msg|>",
)

PAIRS = pairs()
HORIZON_PAIRS = pairs("ifm|", r"\s*(?:<ifm\|arg_type>(?:(?P<string>string)|(?P<json>[^<]*))</ifm\|arg_type>)?")
STEP_TAGS = invoke(
    "steptml:", before="<｜tool_call_begin｜>", label="(?:function<｜tool_sep｜>)?", behind="<｜tool_call_end｜>"
)

FUNCTION_TAGS = TagsBody(
    lead="<function=",
    call=re.compile(r"<function=(?P<name>[^>\n<{]+)(?:>|(?=\{))"),
    call_end="</function>",
    parameter=re.compile(r"<parameter=(?P<key>[^>\n<]+)>"),
    parameter_end="</parameter>",
)

ELEMENTS = TagsBody(
    lead="<",
    until=">",
    call=re.compile(r"<(?!tool[-_]?call>)(?P<name>[^\W\d][\w.-]*)>"),
    call_end="</{name}>",
    parameter=re.compile(r"<(?P<key>[^\W\d][\w.-]*)>"),
    parameter_end="</{key}>",
    loose=True,
)
"""``<tool><key>value</key></tool>``: the names are the tags."""

MINIMAX_TAGS = TagsBody(
    lead="]<]minimax[>[<invoke",
    call=re.compile(r'\]<\]minimax\[>\[<invoke name="(?P<name>[^"<>]+)">'),
    call_end="]<]minimax[>[</invoke>",
    parameter=re.compile(r"\]<\]minimax\[>\[<(?P<key>[\w.:-]+)>"),
    parameter_end="]<]minimax[>[</{key}>",
    trimmed=False,
    nested=True,
)

KIMI_TAGS = TagsBody(
    lead="<|open|>call ",
    call=re.compile(r'<\|open\|>call tool="(?P<name>[^"]*)"[^<>]*<\|sep\|>'),
    call_end="<|close|>call<|sep|>",
    parameter=re.compile(
        r'<\|open\|>argument key="(?P<key>[^"]*)"(?:\s+type="(?:(?P<string>string)|(?P<json>[^"]*))")?\s*<\|sep\|>'
    ),
    parameter_end="<|close|>argument<|sep|>",
    trimmed=False,
)

_MESSAGE = r"(?:<\|\w+\|>|[\w .:=/-])*?<\|message\|>"
_AHEAD = r"(?=(?:<\|(?!message\|)\w+\|>|[\w .:=/-])*?"

HARMONY_CALL = headed(
    rf"{_AHEAD}\bto=(?!(?:assistant|user|self|all)\b)(?:functions\.)?(?P<name>[\w.-]+)){_MESSAGE}\s*",
    until="<|message|>",
)
BEAM_TAGS = TagsBody(
    lead="<|",
    until="<|message|>",
    call=re.compile(rf"{_AHEAD}\bto=(?P<name>[\w.-]+)){_AHEAD}<\|constrain\|>\s*xml){_MESSAGE}"),
    call_end=None,
    parameter=re.compile(r'<rfl:parameter name="(?P<key>[^"<>]+)">'),
    parameter_end="</rfl:parameter>",
)
HARMONY_THOUGHT = Heading(
    re.compile(rf"{_AHEAD}<\|channel\|>\s*analysis){_MESSAGE}"),
    until="<|message|>",
    closers=("<|end|>", "<|return|>", "<|start|>assistant"),
)
HARMONY_ANSWER = Heading(re.compile(rf"(?!{_AHEAD}\bto=self\b)){_MESSAGE}"), until="<|message|>")
INKLING_NAME = Heading(re.compile(r"<\|message_model\|>[\w.-]*(?=<\|content_)"), until="<|content_")
MUSE_THOUGHT = Heading(
    re.compile(rf"{_AHEAD}\bto=self\b){_MESSAGE}"), until="<|message|>", closers=("<|eom|>", "<|eot|>")
)

"""How each family of models writes calls: the other direction of the dialect table, as a table as well.

The first writer of a family is as its template has it, further ones as its models are known to write too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.testing.writing import Call, Way, as_object, as_python, elements, headed, keyed, sketched, tags


@dataclass(frozen=True, slots=True)
class Writer:
    """One way of writing the calls of a reply: ``begin``, calls with ``between`` between them, ``end``.

    ``before`` and ``after`` are how text around them is written, with the text for ``{}``, None where there can be
    none. Only with both can there be text, and after ``apart`` more calls, behind ``end``.
    """

    dialect: str
    way: Way
    begin: str = ""
    between: str = ""
    end: str = ""
    before: str | None = "{}\n"
    after: str | None = "\n{}"
    apart: str = "\n"

    def write(self, calls: Sequence[Call], first: int = 0) -> str:
        """``calls``, at least one, of which the first has the place ``first`` in the reply."""
        said = [self.way.write(call, number) for number, call in enumerate(calls, first)]
        return f"{self.begin}{self.between.join(said)}{self.end}"


_OBJECT = as_object()
_FUNCTION = tags("<function=NAME>\n", "<parameter=KEY>\n", "\n</parameter>\n", "</function>")
_PAIRS = tags("NAME\n", "<arg_key>KEY</arg_key>\n<arg_value>", "</arg_value>\n", "")


def _invoke(prefix: str = "", kind: str = "") -> Way:
    opening, parameter = f'<{prefix}invoke name="NAME">\n', f'<{prefix}parameter name="KEY"{kind}>'
    return tags(opening, parameter, f"</{prefix}parameter>\n", f"</{prefix}invoke>")


_DSML, _MINIMAX, _PLAMO = "｜DSML｜", "]<]minimax[>[", "<|plamo:{}:plamo|>".format

WRITERS: tuple[Writer, ...] = (
    Writer("hermes", _OBJECT.within("<tool_call>\n", "\n</tool_call>"), between="\n"),
    Writer("hermes", _OBJECT.within("<tool_call>", "</tool_call>")),
    Writer("qwen3-coder", _FUNCTION.within("<tool_call>\n", "\n</tool_call>"), between="\n"),
    Writer("qwen3-coder", headed("<function=NAME>", "</function>")),
    Writer("glm", _PAIRS.within("<tool_call>", "</tool_call>"), between="\n"),
    Writer("llama3", as_object(arguments="parameters"), "<|python_tag|>", "; "),
    Writer("llama3", headed("<function=NAME>", "</function>")),
    Writer("pythonic", as_python(), "<|python_start|>[", ", ", "]<|python_end|>"),
    Writer("pythonic", as_python(), "[", ", ", "]", before=None, after=None),
    Writer("mistral", headed("[TOOL_CALLS]NAME[ARGS]")),
    Writer("mistral", _OBJECT, "[TOOL_CALLS] [", ", ", "]"),
    Writer(
        "deepseek-v3",
        headed("<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n", "\n```<｜tool▁call▁end｜>"),
        "<｜tool▁calls▁begin｜>",
        "\n",
        "<｜tool▁calls▁end｜>",
    ),
    Writer(
        "deepseek-v3",
        headed("<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
        "<｜tool▁calls▁begin｜>",
        "",
        "<｜tool▁calls▁end｜>",
    ),
    *(
        Writer("deepseek-v3.2", _invoke(_DSML, ' string="STRING"'), f"<{_DSML}{name}>\n", "\n", f"\n</{_DSML}{name}>")
        for name in ("function_calls", "tool_calls")
    ),
    Writer(
        "deepseek-v4.1", _invoke(f"{_DSML} ", ' string="STRING"'), f"<{_DSML} calls>\n", "\n", f"\n</{_DSML} calls>"
    ),
    Writer(
        "kimi-k2",
        headed("<|tool_call_begin|>functions.NAME:NUMBER<|tool_call_argument_begin|>", "<|tool_call_end|>"),
        "<|tool_calls_section_begin|>",
        "",
        "<|tool_calls_section_end|>",
    ),
    Writer(
        "kimi-k3",
        tags(
            '<|open|>call tool="NAME" index="NUMBER"<|sep|>',
            '<|open|>argument key="KEY" type="KIND"<|sep|>',
            "<|close|>argument<|sep|>",
            "<|close|>call<|sep|>",
        ),
        "<|open|>tools<|sep|>",
        "",
        "<|close|>tools<|sep|>",
        before="<|open|>response<|sep|>{}<|close|>response<|sep|>",
    ),
    Writer("minimax-m2", _invoke(), "<minimax:tool_call>\n", "\n", "\n</minimax:tool_call>"),
    Writer("minimax-m3", elements(_MINIMAX), f"{_MINIMAX}<tool_call>\n", "\n", f"\n{_MINIMAX}</tool_call>"),
    Writer(
        "harmony",
        headed("<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>", "<|call|>"),
        before="<|channel|>commentary<|message|>{}<|end|>",
        after="<|start|>assistant<|channel|>commentary<|message|>{}<|end|>",
        apart="",
    ),
    Writer(
        "harmony",
        headed("<|start|>assistant to=functions.NAME<|channel|>commentary <|constrain|>json<|message|>", "<|call|>"),
    ),
    Writer("muse", _invoke("atem:"), "<atem:function_calls>\n", "\n", "\n</atem:function_calls>"),
    Writer("gemma4", sketched('<|"|>').within("<|tool_call>", "<tool_call|>")),
    Writer("functiongemma", sketched("<escape>").within("<start_function_call>", "<end_function_call>")),
    Writer("granite", _OBJECT, "<|tool_call|>[", ", ", "]"),
    Writer("granite-3.2", _OBJECT, "<|tool_call|>[", ", ", "]"),
    Writer("granite-20b", _OBJECT.within("<function_call> ", ""), between="\n"),
    Writer("phi4-mini", _OBJECT, "functools[", ", ", "]", before=None),
    Writer("lfm2", as_python(), "<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
    Writer("function-calls", as_python(), "<function_calls>", "\n", "</function_calls>"),
    Writer("function-calls", _invoke(), "<function_calls>\n", "\n", "\n</function_calls>"),
    Writer("nemotron", _OBJECT, "<TOOLCALL>[", ", ", "]</TOOLCALL>"),
    Writer("tool-calls", _OBJECT, "<tool_calls>[", ", ", "]</tool_calls>"),
    Writer("hunyuan", _OBJECT, "<tool_calls>[", ", ", "]</tool_calls>"),
    Writer("ernie", _OBJECT.within("<tool_call>\n", "\n</tool_call>"), between="\n"),
    Writer(
        "command", as_object("tool_name", "parameters", tool_call_id="{}"), "<|START_ACTION|>[", ", ", "]<|END_ACTION|>"
    ),
    Writer("internlm", as_object(arguments="parameters").within("<|action_start|><|plugin|>\n", "<|action_end|>")),
    Writer("apertus", keyed(), "<|tools_prefix|>[", ", ", "]<|tools_suffix|>"),
    Writer("seed-oss", _FUNCTION.within("<seed:tool_call>\n", "\n</seed:tool_call>"), between="\n"),
    Writer("longcat", _OBJECT.within("<longcat_tool_call>", "</longcat_tool_call>"), between="\n"),
    Writer("longcat", _PAIRS.within("<longcat_tool_call>", "</longcat_tool_call>"), between="\n"),
    Writer("gigachat3", _OBJECT.within("<|message_sep|>\n\nfunction call<|role_sep|>\n", "")),
    Writer("gigachat3", _OBJECT.within("<|function_call|>", "")),
    Writer(
        "step3",
        tags(
            '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">',
            '<steptml:parameter name="KEY">',
            "</steptml:parameter>",
            "</steptml:invoke><｜tool_call_end｜>",
        ),
        "<｜tool_calls_begin｜>",
        "",
        "<｜tool_calls_end｜>",
    ),
    Writer(
        "k2-horizon",
        tags(
            "<ifm|tool_call>NAME",
            "<ifm|arg_key>KEY</ifm|arg_key><ifm|arg_type>KIND</ifm|arg_type><ifm|arg_value>",
            "</ifm|arg_value>",
            "</ifm|tool_call>",
        ),
        "<ifm|tool_calls>",
        "",
        "</ifm|tool_calls>",
    ),
    Writer(
        "plamo3",
        headed(
            f"{_PLAMO('begin_tool_request')}{_PLAMO('begin_tool_name')}NAME{_PLAMO('end_tool_name')}"
            f"{_PLAMO('begin_tool_arguments')}<|plamo:constrain|>json<|plamo:msg|>",
            f"{_PLAMO('end_tool_arguments')}{_PLAMO('end_tool_request')}",
        ),
        _PLAMO("begin_tool_requests"),
        "",
        _PLAMO("end_tool_requests"),
    ),
    Writer(
        "inkling",
        as_object(arguments="args").within("<|message_model|><|content_invoke_tool_json|>", "<|end_message|>"),
        before="<|content_text|>{}<|end_message|>",
        after="<|message_model|><|content_text|>{}<|end_message|>",
    ),
    Writer("dots", _OBJECT.within("<dots_function_call>", "</dots_function_call>")),
    Writer("dots", _invoke().within("<dots_function_call>", "</dots_function_call>")),
    Writer("minicpm5", tags('<function name="NAME">', '<param name="KEY">', "</param>", "</function>"), between="\n"),
    Writer(
        "solar",
        headed("<|tool_call:begin|>idNUMBER<|tool_call:name|>NAME<|tool_call:args|>", "<|tool_call:end|>"),
        "<|begin|>assistant<|tool_calls|>",
        "",
        "<|calls|>",
        before="<|begin|>assistant<|content|>{}<|end|>",
        after=None,
    ),
    Writer("functionary", headed(">>>NAME\n"), before=None, after=None),
)

DIALECTS: tuple[str, ...] = tuple(dict.fromkeys(writer.dialect for writer in WRITERS))
"""The names of the rows that there are writers for: all of them."""


def writers(dialect: str | None = None) -> tuple[Writer, ...]:
    """The writers of a row of the dialect table, None: of all. Raises ``ValueError`` for another name."""
    found = tuple(writer for writer in WRITERS if dialect in (None, writer.dialect))
    if not found:
        raise ValueError(f"unknown dialect {dialect!r}; there are: {', '.join(sorted(DIALECTS))}")
    return found

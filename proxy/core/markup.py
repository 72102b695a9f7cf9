"""The protocol on paper: how a call and a result are written, and how other text is kept from looking like either.

The list of what is neutralised is closed: the tags ``tool_call``, ``tool_result``, ``tool_response`` and ``tools``
(opening or closing, any case, with or without attributes), and control tokens of chat templates: ``<|im_start|>`` with
ASCII or full-width bars, and the one-sided ``<|turn>`` / ``<turn|>`` of Gemma 4. ``<s>`` or ``[INST]`` are control
tokens too, but occur in code and prose, and stay.
"""

from __future__ import annotations

import re
from html import escape

from proxy.core.arguments import jsontext

_MARK = re.compile(
    r"""
    < (?=
        [ \t]*+ /? [ \t]*+ (?: tool_call | tool_result | tool_response | tools ) (?![\w-])
      | /? [|｜] [^\s<>&;]++ >
      | (?![|｜]) [^\s<>&;]++ (?<=[|｜]) >
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MARK_BUT_OF_CALLS = re.compile(rf"(?! < [ \t]*+ /? [ \t]*+ tool_call (?![\w-]) ) {_MARK.pattern}", _MARK.flags)

_PLAIN = re.compile(r"[\w.:-]+")


def neutralise(text: str, instead: str = "&lt;") -> str:
    """``text`` without anything that opens or closes our markup or is a control token, still readable.

    The ``<`` becomes ``instead``. Running it twice changes nothing more.
    """
    return _MARK.sub(instead, text) if "<" in text else text


def neutralise_own(text: str) -> str:
    """The same for what the model wrote itself in this turn: the tags of its calls stay."""
    return _MARK_BUT_OF_CALLS.sub("&lt;", text) if "<" in text else text


def neutralise_json(text: str) -> str:
    r"""The same for JSON text, where ``<`` becomes ``\u003c``: the value stays what it was.

    In valid JSON a ``<`` stands within a string only.
    """
    return neutralise(text, r"\\u003c")


def tool_call(name: str, arguments: str) -> str:
    """A call. ``arguments`` is JSON text, written as it stands but for what would break out of the tag."""
    body = f'{{"name": {jsontext.dumps(name)}, "arguments": {arguments}}}'
    return f"<tool_call>{neutralise_json(body)}</tool_call>"


def tool_result(name: str, call_id: str, body: str, *, error: bool = False) -> str:
    """The result of a call. ``body`` is any text; it is neutralised here."""
    status = "error" if error else "ok"
    head = f'<tool_result name="{_attribute(name)}" id="{_attribute(call_id)}" status="{status}">'
    return f"{head}\n{neutralise(body)}\n</tool_result>"


def _attribute(value: str) -> str:
    return value if _PLAIN.fullmatch(value) else escape(" ".join(value.split()))

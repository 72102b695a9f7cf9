"""The ways in which models write tool calls and reasoning, as one table.

A new model family is a row here and a fixture under ``fixtures/replies/``. A :class:`Dialect` says by which text a call
opens, how what follows is written (:data:`BodySpec`), and by which text it ends; ``bodies/`` reads the kinds of body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class JsonBody:
    """JSON: call objects, lists of them, or several one after another.

    ``header`` matches what stands before the JSON and names the tool in its group ``name``; the JSON is then the
    arguments alone. ``keyed`` objects are ``{"tool_name": {arguments}}``.
    """

    header: re.Pattern[str] | None = None
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class TagsBody:
    """Markup: a tag that names the tool, then one element a parameter, whose text is the value.

    ``call`` matches the tag that opens a call (group ``name``) and begins with the fixed text ``lead``; ``call_end``
    closes it (None: only the form's closer does). ``parameter`` matches what opens a value (group ``key``, and
    ``string`` = ``true`` or ``false`` where the model says whether the value is a string), ``parameter_end`` closes it;
    ``{key}`` in it stands for the key.
    """

    lead: str
    call: re.Pattern[str]
    call_end: str | None
    parameter: re.Pattern[str]
    parameter_end: str


BodySpec: TypeAlias = JsonBody | TagsBody


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a call: ``opener``, a body of one of ``bodies`` (tried in order by its first bytes), a closer.

    Without ``closers`` the call ends where its body ends. ``kept``: the opener is a part of the body.
    """

    opener: str
    bodies: tuple[BodySpec, ...]
    closers: tuple[str, ...] = ()
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A pair of marks around reasoning. ``anywhere``: it is read wherever it stands, else at the head of a reply."""

    opener: str
    closer: str
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one family of models writes. ``source`` says where that is known from.

    ``wrappers`` are marks around calls or answers that carry no meaning of their own; ``terminators`` end a turn and
    are dropped at the very end of a reply.
    """

    name: str
    source: str
    forms: tuple[Form, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()
    wrappers: tuple[str, ...] = ()
    terminators: tuple[str, ...] = ()


JSON = JsonBody()

FUNCTION_TAGS = TagsBody(
    lead="<function=",
    call=re.compile(r"<function=(?P<name>[^>\n<]+)>"),
    call_end="</function>",
    parameter=re.compile(r"<parameter=(?P<key>[^>\n<]+)>"),
    parameter_end="</parameter>",
)

FUNCTION_JSON = JsonBody(header=re.compile(r"<function=(?P<name>[^>\n<]+)>\s*"))

ARG_PAIRS = TagsBody(
    lead="",
    call=re.compile(r"(?P<name>[A-Za-z_][\w.:/-]*)(?:<tool_sep>)?(?=\s*(?:<|$)|\n)"),
    call_end=None,
    parameter=re.compile(r"<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>"),
    parameter_end="</arg_value>",
)

THINK = Reasoning("<think>", "</think>")

_HERMES_CLOSERS = ("</tool_call>", "</toolcall>", "</tool-call>")

DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        name="hermes",
        source="Nous Hermes 2 Pro and Qwen 2.5/3 chat templates; Toolgraft's own protocol. "
        "Qwen3-Coder's and GLM's bodies come within the same tag.",
        forms=tuple(
            Form(opener, (JSON, FUNCTION_JSON, FUNCTION_TAGS, ARG_PAIRS), _HERMES_CLOSERS)
            for opener in ("<tool_call>", "<toolcall>", "<tool-call>")
        ),
        reasoning=(THINK, Reasoning("<thinking>", "</thinking>"), Reasoning("<thought>", "</thought>")),
        terminators=("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<eos>", "<end_of_turn>"),
    ),
    Dialect(
        name="function-tag",
        source="Qwen3-Coder, Nemotron 3 and Llama 3.1 templates, when the outer tag is missing",
        forms=(Form("<function=", (FUNCTION_JSON, FUNCTION_TAGS), kept=True),),
    ),
)

OWN = frozenset({"hermes", "function-tag"})
"""The rows of our own protocol: their calls are read whatever they name. A call in the way of another family must be
complete, valid and of a declared tool, unless that family's row was asked for by name."""

RESULT_MARKS = ("<tool_result", "<tool_response")
"""How a tool result begins in our protocol and in the Hermes templates."""

RESULTS_LINE = "[Tool results]"
"""The line above the results in our protocol."""

"""What a model is told of calls that cannot be used, so that it makes them again as they should be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec.structs import replace

from proxy.core import markup
from proxy.core.collect import Reply
from proxy.core.events import Problem, ProblemKind
from proxy.core.history import UNKNOWN
from proxy.core.model import Message, Request, TextPart
from proxy.core.prompt import render_choice
from proxy.core.protocol import RESULTS_LINE

MEND = "Make the calls again, complete and with what was wrong put right. Write nothing but the calls."
MISSING = "No tool was called, but a call is required now. Write the call, and nothing but the call."

_FAULTS: frozenset[ProblemKind] = frozenset({"invalid_arguments", "unknown_tool", "missing_call"})
_BEGUN = re.compile(
    r"""
    \s* (?: < [^<>]* > | \[ [A-Z_]+ ] )?+ \s*  # a tag, where there is one
    (?: (?: \[ \s* )? \{ \s* ["'\w] | [\w.-]+ \( | [\w.-]* \s* < [^/\s] )  # an object, name(, or another tag
    """,
    re.VERBOSE,
)
"""How a call begins. Prose may name a tag outside of any code: that is an answer."""

_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{1,200})"')
_UNREADABLE = "This call could not be read: {}."
_SHOWN = 40
_DECODER = json.JSONDecoder(parse_int=str)  # an integer may have any number of digits
_LONGEST = 20_000  # characters of a call in which the fault is looked for


def mendable(reply: Reply) -> bool:
    """Whether ``reply`` holds a call, or lacks one, so that the model can be told to do better.

    A reply that was cut is not its fault, and one that refuses is an answer.
    """
    whole = reply.finish in ("stop", "tool_calls") and not reply.refusal
    return whole and any(is_fault(problem) and _apart(problem, reply.content) for problem in reply.problems)


def is_fault(problem: Problem) -> bool:
    """Whether the model can mend what ``problem`` is about."""
    if problem.kind == "unreadable":
        return _BEGUN.match(problem.detail) is not None
    return problem.kind in _FAULTS


def _apart(problem: Problem, content: str) -> bool:
    """Whether what could not be read begins a line: within one it is what the answer is about."""
    at = content.find(problem.detail.removesuffix("…")) if problem.kind == "unreadable" else 0
    return at <= 0 or content[:at].rstrip(" \t").endswith("\n")


def corrected(prepared: Request, request: Request, reply: Reply) -> Request:
    """``prepared``, which got ``reply``, with what the model wrote and what was wrong with it as two further turns.

    ``request`` is the client's own. The turns alternate as those before them, and nothing before them changes, so that
    what the server has kept of the prompt still serves.
    """
    *before, last = prepared.messages
    said, told = TextPart(_written(reply)), TextPart(_told(request, reply))
    if last.role == "assistant":  # the backend has gone on with it
        turns = [replace(last, content=(*last.content, said)), Message("user", (told,))]
    elif said.text:
        turns = [last, Message("assistant", (said,)), Message("user", (told,))]
    else:
        turns = [replace(last, content=(*last.content, TextPart(f"\n\n{told.text}")))]
    return replace(prepared, messages=(*before, *turns))


def _written(reply: Reply) -> str:
    """The reply in the words of the protocol, without its reasoning. What could not be read stands as it is."""
    text = markup.neutralise_own(reply.content)
    calls = [markup.tool_call(call.name, call.arguments) for call in reply.calls]
    return "\n".join([text, *calls] if text else calls)


def _told(request: Request, reply: Reply) -> str:
    """The failed results of the calls, then what to do."""
    results = [*_of_calls(reply), *_of_what_was_no_call(reply)]
    told = "\n".join([RESULTS_LINE, *results, "", MEND]) if results else MISSING
    return f"{told} {render_choice(request)}".rstrip()


def _of_calls(reply: Reply) -> Iterator[str]:
    for index, call in enumerate(reply.calls):
        faults = [problem.message for problem in reply.problems if problem.call == index and is_fault(problem)]
        words = "\n".join(faults) or "This call is right, but was not run since another one is wrong. Make it again."
        yield markup.tool_result(call.name, call.id, words, error=True)


def _of_what_was_no_call(reply: Reply) -> Iterator[str]:
    for problem in reply.problems:
        if problem.kind == "unreadable" and is_fault(problem):
            written = _whole(problem, reply.content)
            name = _NAME.search(written)
            yield markup.tool_result(name[1] if name else UNKNOWN, UNKNOWN, _why(written), error=True)


def _whole(problem: Problem, content: str) -> str:
    """What ``problem`` is about and what follows it: the problem quotes the beginning only."""
    start = content.find(problem.detail.removesuffix("…"))
    return problem.detail if start < 0 else content[start : start + _LONGEST]


def _why(written: str) -> str:
    """What is wrong with a call that cannot be read: its JSON, where it is JSON."""
    start = written.find("{")
    if start < 0:
        return _UNREADABLE.format("it holds no JSON object")
    try:
        value, _ = _DECODER.raw_decode(written, start)
    except RecursionError:
        return _UNREADABLE.format("its JSON is nested too deeply")
    except json.JSONDecodeError as error:
        if error.pos >= len(written.rstrip()):
            return _UNREADABLE.format(f"its JSON is not complete. It ends with {_quote(written)}")
        return _UNREADABLE.format(f"its JSON is wrong behind {_quote(written[start : error.pos])}: {error.msg}")
    if isinstance(value.get("name"), str):
        return _UNREADABLE.format("`arguments` must be a JSON object, and a closing tag must end the call")
    return _UNREADABLE.format("it must be a JSON object with the members `name` and `arguments`")


def _quote(text: str) -> str:
    text = " ".join(text.split())
    return f"`{text}`" if len(text) <= _SHOWN else f"`…{text[-_SHOWN:]}`"

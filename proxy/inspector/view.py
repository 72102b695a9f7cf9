"""Exchanges as the page shows them: JSON values, made of the bytes that were kept when somebody looks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

from proxy.core.collect import Reply, collect
from proxy.core.errors import ClientError
from proxy.core.events import Problem
from proxy.core.grammar import AUTO
from proxy.core.model import Json, Tool
from proxy.core.tool_lint import lint
from proxy.inspector.answer import chat_events, is_stream, read_answer
from proxy.inspector.explain import EXPLANATIONS
from proxy.inspector.export import curl, fixture, shown_tools
from proxy.inspector.marks import Reading, Segment, marked
from proxy.inspector.ring import Entry
from proxy.surfaces.base import Surface
from proxy.surfaces.chat import Chat
from proxy.surfaces.messages import Messages
from proxy.surfaces.responses import Responses
from proxy.tape import Kept, Tape, Turn
from proxy.telemetry import RequestLog
from proxy.wire import jsonio

MOST_SHOWN = 200_000
"""Characters of one text that the page gets: the first half of them, and the last."""

MOST_MARKED = 100_000
"""Characters of a model's text in which calls are marked; a longer one is shown without marks."""

SURFACES: dict[str, Callable[[bytes], Surface]] = {"chat": Chat, "messages": Messages, "responses": Responses}

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')
_DEEPEST = 12


def summary(entry: Entry) -> dict[str, Json]:
    """The line of an exchange in the list, and its points in the charts."""
    log = entry.log
    return {
        **log.fields(),
        "number": entry.number,
        "began": round(entry.began, 3),
        "running": entry.running,
        "path": entry.path,
        "kept": entry.tape is not None,
        "verdict": entry.outcome.word,
        "calls": {
            "right": entry.outcome.right,
            "repaired": entry.outcome.repaired,
            "refused": entry.outcome.refused,
        },
        "first_ms": _ms(log.started, log.first),
        "rate": _rate(log),
    }


def detail(entry: Entry, url: str) -> dict[str, Json]:
    """All that is known of an exchange with a client that had come to ``url``."""
    shown: dict[str, Json] = {"summary": summary(entry), "method": entry.method, "headers": entry.headers}
    tape = entry.tape
    if tape is None:
        return shown
    asked = tape.shown(tape.asked)
    tools, problem = _tools(entry.log.surface, asked)
    reading = _reading(tape, tools, entry.log)
    told = tape.shown(tape.told)
    turns = [_turn(tape, turn, reading if entry.log.mode == "xml" else None) for turn in tape.turns]
    shown["asked"] = {
        **_body(tape.asked, asked),
        "problem": problem,
        "curl": curl(url + entry.path, entry.headers, asked, "TOOLGRAFT_KEY"),
    }
    shown["tools"] = shown_tools(tools)
    shown["lint"] = lint_of(tools)
    shown["turns"] = turns
    answer = read_answer(entry.log.surface, told)
    shown["told"] = {**_body(tape.told, told), "reply": None if answer is None else _reply(answer)}
    return shown


def exchange_fixture(entry: Entry, turn: int) -> Json | None:
    """What the model wrote in a turn as a fixture; None if there is none."""
    tape = entry.tape
    if tape is None or not 0 <= turn < len(tape.turns):
        return None
    tools, _ = _tools(entry.log.surface, tape.shown(tape.asked))
    reading = _reading(tape, tools, entry.log)
    wrote = _wrote(tape.shown(tape.turns[turn].came))
    return fixture(wrote.content, reading, wrote.finish)


def tried(text: str, reading: Reading, finish_reason: str) -> dict[str, Json]:
    """What the reader makes of a text that somebody gave it."""
    segments, reply = marked(text, reading, finish_reason)
    return {
        "segments": _segments(segments),
        "reply": _reply(reply),
        "problems": [explained(problem) for problem in reply.problems],
        "lint": lint_of(reading.tools),
        "fixture": fixture(text, reading, finish_reason),
    }


def explained(problem: Problem) -> dict[str, Json]:
    """A finding with what it means."""
    about = EXPLANATIONS[problem.kind]
    return {
        "kind": problem.kind,
        "call": problem.call,
        "message": problem.message,
        "detail": problem.detail,
        "verdict": about.verdict,
        "title": about.title,
        "why": about.why,
        "mend": about.mend,
    }


def lint_of(tools: Sequence[Tool]) -> list[Json]:
    """What could be said better in ``tools``."""
    return [
        {"rule": each.rule, "tool": each.tool, "argument": each.argument, "message": each.message}
        for each in lint(tools)
    ]


def _ms(start: float, end: float | None) -> float | None:
    return None if end is None else round((end - start) * 1000, 1)


def _rate(log: RequestLog) -> float | None:
    """Tokens a second: from the first one on in a stream, else over all of the backend's time."""
    start = log.first if log.stream else log.asked
    if start is None or log.answered is None or not log.completion_tokens or log.answered - start < 0.001:
        return None
    return round(log.completion_tokens / (log.answered - start), 1)


def _tools(surface: str, asked: bytes) -> tuple[tuple[Tool, ...], str | None]:
    """The tools that a request offers, and what is wrong with it, if anything is."""
    try:
        return SURFACES[surface](asked).request().offered, None
    except ClientError as error:
        problem = error.message
    try:
        given = jsonio.loads(asked)
        return tuple(Tool.of(tool) for tool in given["tools"]), problem
    except (ValueError, TypeError, KeyError, AttributeError):
        return (), problem


def _reading(tape: Tape, tools: Sequence[Tool], log: RequestLog) -> Reading:
    settings = tape.settings
    if settings is None:
        return Reading(tools, AUTO, log.model)
    return Reading(tools, settings.dialect, settings.model, settings.starts_in_reasoning, settings.parallel)


def _turn(tape: Tape, turn: Turn, reading: Reading | None) -> dict[str, Json]:
    """``reading`` None: the backend read the calls itself."""
    sent, came = tape.shown(turn.sent), tape.shown(turn.came)
    wrote = _wrote(came)
    segments: list[Segment] = []
    if reading is not None and len(wrote.content) <= MOST_MARKED:
        segments = marked(wrote.content, reading, wrote.finish)[0]
    elif wrote.content:
        segments = [Segment("text", wrote.content)]
    return {
        "url": turn.url,
        "asked": round(turn.asked, 3),
        "status": turn.status,
        "error": turn.error,
        "sent": _body(turn.sent, sent),
        "came": _body(turn.came, came),
        "segments": _segments(segments),
        "reasoning": wrote.reasoning,
        "calls": [{"name": call.name, "arguments": call.arguments} for call in wrote.calls],
        "finish": wrote.finish,
        "problems": [explained(problem) for problem in turn.problems],
        "curl": curl(turn.url, (), sent, "BACKEND_KEY"),
    }


def _wrote(came: bytes) -> Reply:
    """What the model wrote, with what the backend made of it by itself."""
    return collect(chat_events(came))


def _segments(segments: Iterable[Segment]) -> list[Json]:
    return [
        {
            "kind": segment.kind,
            "text": _shortened(segment.text)[0],
            "calls": [{"name": name, "arguments": arguments} for name, arguments in segment.calls],
            "problems": [explained(problem) for problem in segment.problems],
        }
        for segment in segments
    ]


def _reply(reply: Reply) -> dict[str, Json]:
    return {
        "content": _shortened(reply.content)[0],
        "reasoning": _shortened(reply.reasoning)[0],
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls],
        "finish": reply.finish,
    }


def _body(kept: Kept, data: bytes) -> dict[str, Json]:
    """A body as text: JSON indented where it is that and whole, else as it came."""
    text = data.decode("utf-8", "replace")
    if not is_stream(data) and not kept.cut:
        text = indented(text)
    shown, left_out = _shortened(text)
    return {"text": shown, "size": kept.size, "cut": kept.cut or left_out > 0}


def indented(text: str) -> str:
    """A JSON text with a line for each member; numbers keep their spelling. What is no JSON comes back as it is."""
    try:
        jsonio.loads(text)
    except ValueError:
        return text
    out: list[str] = []
    depth = 0
    before = ""
    for word in _TOKEN.findall(text):
        if word in "}]":
            depth -= 1
            if before not in "{[":
                out.append(_line(depth))
        elif before and before in "{[":
            out.append(_line(depth))
        if word[0] == '"':
            out.append(json.dumps(json.loads(word), ensure_ascii=False))
        else:
            out.append(word)
        if word in "{[":
            depth += 1
        elif word == ",":
            out.append(_line(depth))
        elif word == ":":
            out.append(" ")
        before = word
    return "".join(out)


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, _DEEPEST)


def _shortened(text: str) -> tuple[str, int]:
    """``text``, or its beginning and its end, and how many characters are missing between the two."""
    left_out = len(text) - MOST_SHOWN
    if left_out <= 0:
        return text, 0
    half = MOST_SHOWN // 2
    return f"{text[:half]}\n\n… {left_out:,} characters are not shown …\n\n{text[-half:]}", left_out

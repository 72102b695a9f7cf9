"""The marks that a reader looks for, made from the rows of the dialect table once and kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from proxy.core.dialects import DIALECTS, OWN
from proxy.core.forms import Dialect, Form, Heading, Reasoning, TagsBody
from proxy.core.protocol import RESULT_MARKS, RESULTS_LINE
from proxy.core.scanner import Marks

AUTO = "auto"
_CODE = ("`", "~~~")
_BARE = ("{", "[")
_LONGEST_MODEL = 200  # characters of a model's name that are looked at


@dataclass(frozen=True, slots=True)
class Grammar:
    """Some dialect rows, turned over: from a mark to what it means."""

    forms: dict[str, Form]  # by the opener of a call
    foreign: frozenset[str]  # openers whose calls must be declared and valid
    bare: bool  # calls may come without any mark, among text
    closers_of: dict[str, tuple[str, ...]]  # by the opener of reasoning
    anywhere: frozenset[str]  # openers of reasoning that count wherever they stand
    wrappers: frozenset[str]
    terminators: frozenset[str]
    stray_closers: frozenset[str]  # closers that mean nothing outside of a call
    late_closers: frozenset[str]  # closers of other families: the same, once there was a call
    openers: Marks
    heads: Marks  # openers that count as the first thing of an answer alone
    closers: Marks
    section_ends: Marks  # what may stand behind the last call of several, closers of other families among it
    ends: Marks
    think_openers: Marks
    think_closers: Marks
    lone_closers: frozenset[str]  # those of them that mean nothing else, so that one without its opener tells
    terminator_marks: Marks
    results: Marks
    marks: Marks  # everything that means something in an answer
    plain_marks: Marks  # the same where no call may be read


def grammar(dialect: str = AUTO, model: str | None = None) -> Grammar:
    """The grammar of one row by its name, or of all rows (``"auto"``). Raises ``ValueError`` for an unknown name.

    A row that was asked for says how calls are written; reasoning and the ends of turns are read as in all rows. With
    all rows, those whose family ``model`` is of by its name are its own.
    """
    if dialect == AUTO:
        return _of_all(families((model or "")[:_LONGEST_MODEL]))
    return _of_one(dialect)


@lru_cache(maxsize=1024)
def families(model: str) -> frozenset[str]:
    """The names of the rows whose family ``model`` is of by its name: ``mistralai/Devstral-Small`` is a ``mistral``."""
    return frozenset(row.name for row in DIALECTS if row.models and re.search(row.models, model, re.IGNORECASE))


@cache
def _of_one(name: str) -> Grammar:
    rows = tuple(row for row in DIALECTS if row.name == name)
    if not rows:
        known = ", ".join(sorted(row.name for row in DIALECTS))
        raise ValueError(f"unknown dialect {name!r}; there are: {AUTO}, {known}")
    return _grammar(rows, frozenset({name}), (*rows, *_always()), bare=rows[0].bare)


@cache
def _of_all(known: frozenset[str]) -> Grammar:
    """All rows, those of the families ``known`` being the model's own."""
    rows = (*_always(), *(row for row in DIALECTS if row.name in known and not row.auto))
    return _grammar(rows, OWN | known, rows, bare=False)


def _always() -> tuple[Dialect, ...]:
    return tuple(row for row in DIALECTS if row.auto)


def _grammar(rows: Iterable[Dialect], own: frozenset[str], around: Iterable[Dialect], *, bare: bool) -> Grammar:
    """``rows`` say how calls are written, ``around`` what else there is in a reply."""
    forms = _merged(form for row in rows for form in row.forms)
    foreign = _merged(form for row in rows if row.name not in own for form in row.forms)
    known = _merged(form for row in rows if row.name in own for form in row.forms)
    reasoning = [pair for row in around for pair in row.reasoning]
    closers_of = _closers_of(reasoning)
    anywhere = frozenset(pair.opener for pair in reasoning if pair.anywhere)
    stray_closers = frozenset(closer for form in known.values() for closer in form.closers)
    late_closers = frozenset(closer for form in foreign.values() for closer in form.closers)
    late_closers = (late_closers | _ends_of(known.values())) - stray_closers
    think_closers = frozenset(pair.closer for pair in reasoning)
    wrappers = frozenset(mark for row in rows for mark in row.wrappers)
    strays = frozenset(pair.closer for pair in reasoning if pair.anywhere)
    terminators = frozenset(mark for row in around for mark in row.terminators)
    openers = frozenset(opener for opener, form in forms.items() if not form.head)
    headings = frozenset(
        opener for opener in openers if any(isinstance(body, Heading) for body in forms[opener].bodies)
    )
    plain = {*_CODE, *anywhere, *closers_of, *think_closers, *terminators, *headings}
    return Grammar(
        forms=forms,
        foreign=frozenset(foreign) - frozenset(known),
        bare=bare,
        closers_of=closers_of,
        anywhere=anywhere,
        wrappers=wrappers | strays,
        terminators=terminators,
        stray_closers=stray_closers,
        late_closers=late_closers,
        openers=Marks(openers),
        heads=Marks(frozenset(forms) - openers),
        closers=Marks(stray_closers),
        section_ends=Marks(wrappers | stray_closers | late_closers),
        ends=Marks({*openers, *stray_closers, *late_closers}),
        think_openers=Marks(closers_of),
        think_closers=Marks(think_closers),
        lone_closers=think_closers - wrappers - late_closers - terminators,
        terminator_marks=Marks(terminators),
        results=Marks(RESULT_MARKS),
        marks=Marks({*plain, *_BARE, *openers, *stray_closers, *late_closers, *wrappers, *RESULT_MARKS, RESULTS_LINE}),
        plain_marks=Marks(plain),
    )


def _merged(forms: Iterable[Form]) -> dict[str, Form]:
    """``forms`` by opener; those with the same opener become one, whose bodies are tried one after another."""
    merged: dict[str, Form] = {}
    for form in forms:
        first = merged.get(form.opener)
        if first is None:
            merged[form.opener] = form
        else:
            bodies = dict.fromkeys((*first.bodies, *form.bodies))
            closers = dict.fromkeys((*first.closers, *form.closers))
            merged[form.opener] = replace(first, bodies=tuple(bodies), closers=tuple(closers))
    return merged


def _ends_of(forms: Iterable[Form]) -> frozenset[str]:
    """The tags that close calls within what stands around them."""
    bodies = (body for form in forms for body in form.bodies if isinstance(body, TagsBody))
    return frozenset(body.call_end for body in bodies if body.call_end and "{" not in body.call_end)


def _closers_of(reasoning: Iterable[Reasoning]) -> dict[str, tuple[str, ...]]:
    closers_of: dict[str, list[str]] = {}
    for pair in reasoning:
        if pair.opener:
            closers_of.setdefault(pair.opener, []).append(pair.closer)
    return {opener: tuple(dict.fromkeys(closers)) for opener, closers in closers_of.items()}

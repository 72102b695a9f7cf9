"""The marks that a reader looks for, made from the rows of the dialect table once and kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from proxy.core.dialects import DIALECTS, OWN, RESULT_MARKS, RESULTS_LINE, Dialect, Form
from proxy.core.scanner import Marks

AUTO = "auto"
_CODE = ("`", "~~~")
_BARE = ("{", "[")


@dataclass(frozen=True, slots=True)
class Grammar:
    """Some dialect rows, turned over: from a mark to what it means."""

    forms: dict[str, Form]  # by the opener of a call
    foreign: frozenset[str]  # openers whose calls must be declared and valid
    closers_of: dict[str, tuple[str, ...]]  # by the opener of reasoning
    anywhere: frozenset[str]  # openers of reasoning that count wherever they stand
    wrappers: frozenset[str]
    terminators: frozenset[str]
    stray_closers: frozenset[str]
    openers: Marks
    closers: Marks
    ends: Marks
    think_openers: Marks
    think_closers: Marks
    terminator_marks: Marks
    results: Marks
    marks: Marks  # everything that means something in an answer
    plain_marks: Marks  # the same where no call may be read


@cache
def grammar(dialect: str = AUTO) -> Grammar:
    """The grammar of one row by its name, or of all rows (``"auto"``). Raises ``ValueError`` for an unknown name."""
    if dialect == AUTO:
        return _grammar(DIALECTS, OWN)
    rows = [row for row in DIALECTS if row.name == dialect]
    if not rows:
        known = ", ".join(sorted(row.name for row in DIALECTS))
        raise ValueError(f"unknown dialect {dialect!r}; there are: {AUTO}, {known}")
    return _grammar(rows, frozenset({dialect}))


def _grammar(rows: list[Dialect] | tuple[Dialect, ...], own: frozenset[str]) -> Grammar:
    forms: dict[str, Form] = {}
    closers_of: dict[str, list[str]] = {}
    for row in rows:
        for form in row.forms:
            forms.setdefault(form.opener, form)
        for pair in row.reasoning:
            closers_of.setdefault(pair.opener, []).append(pair.closer)
    anywhere = frozenset(pair.opener for row in rows for pair in row.reasoning if pair.anywhere)
    foreign = frozenset(form.opener for row in rows if row.name not in own for form in row.forms)
    own_openers = frozenset(form.opener for row in rows if row.name in own for form in row.forms)
    closers = frozenset(closer for form in forms.values() for closer in form.closers)
    think_closers = frozenset(closer for some in closers_of.values() for closer in some)
    wrappers = frozenset(mark for row in rows for mark in row.wrappers)
    terminators = frozenset(mark for row in DIALECTS for mark in row.terminators)
    plain = {*_CODE, *closers_of, *think_closers, *terminators}
    return Grammar(
        forms=forms,
        foreign=foreign - own_openers,
        closers_of={opener: tuple(some) for opener, some in closers_of.items()},
        anywhere=anywhere,
        wrappers=wrappers,
        terminators=terminators,
        stray_closers=closers,
        openers=Marks(forms),
        closers=Marks(closers),
        ends=Marks({*forms, *closers}),
        think_openers=Marks(closers_of),
        think_closers=Marks(think_closers),
        terminator_marks=Marks(terminators),
        results=Marks(RESULT_MARKS),
        marks=Marks({*plain, *_BARE, *forms, *closers, *wrappers, *RESULT_MARKS, RESULTS_LINE}),
        plain_marks=Marks(plain),
    )

"""What the dialect table is made of: the ways to write a call, its surroundings, and reasoning.

A body is what stands between the opener of a call and its end; ``bodies/`` reads the kinds of body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class JsonBody:
    """JSON: call objects, lists of them, or several one after another.

    ``header`` matches what stands before the JSON and may name the tool in its group ``name``; the JSON is then the
    arguments alone, an object. It is over, matched or not, where ``until`` stands. ``starts`` are the brackets with
    which JSON without a header may begin. ``keyed`` objects are ``{"tool_name": {arguments}}``.
    """

    header: re.Pattern[str] | None = None
    until: str = "{"
    starts: str = "{["
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class TagsBody:
    """Markup: a tag that names the tool, then one element a parameter, whose text is the value.

    ``call`` matches the tag that opens a call (group ``name``) and begins with the fixed text ``lead``; ``call_end``
    closes it (None: only the form's closer does). ``parameter`` matches what opens a value (group ``key``, and
    a group ``string`` or ``json`` where the model says that the value is a string, or that it is JSON),
    ``parameter_end`` closes it. ``{name}`` and ``{key}`` in the closing tags stand for the name and the key.
    Instead of elements a JSON object of all arguments may stand in the call. With ``until`` more must be seen than
    ``lead`` to tell that it is a call: all up to there.

    ``loose``: the tags could be anything, so the tool must be a declared one; with ``own_tags`` only where no element
    stands in the call, since those are like no others.
    ``trimmed``: a line break right behind the opening tag is layout, and so is then one before the closing tag.
    ``nested``: elements in a value make it an object, or a list if they are all called ``item``.
    """

    lead: str
    call: re.Pattern[str]
    call_end: str | None
    parameter: re.Pattern[str]
    parameter_end: str
    until: str = ""
    loose: bool = False
    own_tags: bool = False
    trimmed: bool = True
    nested: bool = False

    @property
    def forgiven(self) -> bool:
        """Whether tags that are missing can be told from those of a value."""
        return not self.nested and (not self.loose or self.own_tags)


@dataclass(frozen=True, slots=True)
class PythonBody:
    """Python calls with keyword arguments, ``[f(a=1), g()]``, the brackets optional.

    ``loose``: what stands around it could hold anything, so the tool must be a declared one.
    """

    loose: bool = False


@dataclass(frozen=True, slots=True)
class SketchBody:
    """``call:name{key:value}``: an object whose keys have no quotes and whose strings stand between ``quote`` marks."""

    quote: str


@dataclass(frozen=True, slots=True)
class Heading:
    """No call: what a template writes above a message. It is dropped; ``pattern`` matches it.

    It is over, matched or not, where ``until`` stands. With ``closers`` the message is reasoning, which they end; one
    that begins as an opener does is then read as such.
    """

    pattern: re.Pattern[str]
    until: str
    closers: tuple[str, ...] = ()


BodySpec: TypeAlias = JsonBody | TagsBody | PythonBody | SketchBody


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a call: ``opener``, then one of ``bodies`` (tried in order by its first bytes), then a closer.

    Without ``closers`` the call ends where its body ends. ``kept``: the opener is a part of the body. ``head``: it
    counts only as the first thing of an answer. ``declared``: answers may be about it, so the tool must be a declared
    one.
    """

    opener: str
    bodies: tuple[BodySpec | Heading, ...]
    closers: tuple[str, ...] = ()
    kept: bool = False
    head: bool = False
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A pair of marks around reasoning. ``anywhere``: it is read wherever it stands, else at the head of a reply."""

    opener: str
    closer: str
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one family of models writes. ``source`` says where that is known from.

    ``models`` matches, in any case, the names of the family's models: with such a model the row is its own, and its
    calls are read whatever they name. ``wrappers`` are marks around calls or answers that carry no meaning of their
    own; one that is an opener as well is such a mark where a call follows. ``terminators`` end a turn and are dropped
    at the very end of a reply. ``bare``: calls may come without any mark, as JSON or a list of Python calls, text
    around them or not; that is believed only of a row that was asked for. ``auto`` False: read only when asked for by
    its name or the model's, since its marks are things that any model may write.
    """

    name: str
    source: str
    models: str = ""
    forms: tuple[Form, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()
    wrappers: tuple[str, ...] = ()
    terminators: tuple[str, ...] = ()
    bare: bool = False
    auto: bool = True

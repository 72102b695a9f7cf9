"""The language of prompt templates: that part of jinja2 which ends, stays small and cannot reach into the program.

There are ``if``, ``for``, ``set``, comparisons and the filters of ``FILTERS``; a mapping's ``items()``, ``keys()``,
``values()`` and ``get()`` are read as filters too. There is nothing that could run on (macros, recursion), grow
(arithmetic, concatenation), or be of no use here (includes, blocks). What is left works off a budget.
Values are data: JSON, or text. Nothing that they hold opens or closes our tags; what the template writes itself does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, cast

from jinja2 import ChainableUndefined, TemplateError, TemplateRuntimeError, TemplateSyntaxError, Undefined, nodes
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import pass_context
from jinja2.visitor import NodeTransformer

from proxy.core import markup
from proxy.core.definitions import to_json
from proxy.core.model import Json
from proxy.core.signatures import signature

LONGEST_SOURCE = 65_536
"""Characters of a template."""

BUDGET = 4_000_000
"""Characters that one rendering may make; a prompt of a million tokens."""

PASS = 40
"""What a pass of a loop costs of it."""

_OWN = "\ufdd0"
"""A code point that is no character. It stands for the ``<`` of the template's own tags until all is put together and
looked through: two values side by side must not make a tag either."""

_BUDGET = "the budget"  # no template can name a variable with a space in it
_METHODS = frozenset({"items", "keys", "values", "get"})
_KNOWN = (
    nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign, nodes.Name, nodes.Const, nodes.List,
    nodes.Tuple, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Compare, nodes.Operand,
    nodes.Not, nodes.And, nodes.Or, nodes.CondExpr, nodes.Call, nodes.Keyword,
)  # fmt: skip


class Script:
    """A template, compiled. Raises ``ValueError`` saying what is wrong with it, and in which line.

    ``names`` are the variables that it may use.
    """

    def __init__(self, source: str, names: Iterable[str]) -> None:
        if len(source) > LONGEST_SOURCE:
            raise ValueError(f"it is longer than {LONGEST_SOURCE:,} characters")
        try:
            tree = _ENVIRONMENT.parse(source)
            _check(tree, frozenset(names))
            tree = _Tamer().visit(tree)
            self._template = _ENVIRONMENT.from_string(tree.set_environment(_ENVIRONMENT))
        except TemplateSyntaxError as error:
            raise ValueError(f"line {error.lineno}: {error.message}") from None
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def run(self, values: Mapping[str, Json]) -> str:
        """The text it makes. Raises ``ValueError`` with the reason if it makes none."""
        budget = _Budget()
        made = []
        try:
            for piece in self._template.generate({**values, _BUDGET: budget}):
                budget.spend(len(piece))
                made.append(piece)
        except TemplateError as error:
            raise ValueError(error.message) from None
        except Exception as error:  # a template may compare, index and filter what does not go together
            raise ValueError(f"{type(error).__name__}: {error}") from None
        return markup.neutralise("".join(made)).replace(_OWN, "<")


class _Budget:
    def __init__(self) -> None:
        self._left = BUDGET

    def spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise TemplateRuntimeError("it makes more text, or goes through more, than any model could read")


def _check(tree: nodes.Template, names: frozenset[str]) -> None:
    """Raise ``TemplateSyntaxError`` at the first thing that is not in the language."""
    for node in tree.find_all(nodes.Node):
        if type(node) not in _KNOWN:
            _refuse(node, f"`{getattr(node, 'operator', None) or type(node).__name__.lower()}`")
        if isinstance(node, nodes.For) and node.recursive:
            _refuse(node, "a recursive loop")
        if isinstance(node, (nodes.List, nodes.Tuple)) and not all(map(_is_plain, node.items)):
            _refuse(node, "a list of anything but constants")
        if isinstance(node, nodes.Call) and not (isinstance(node.node, nodes.Getattr) and node.node.attr in _METHODS):
            _refuse(node, "a call of anything but items(), keys(), values() or get()")
    unknown = sorted(find_undeclared_variables(tree) - names)
    if unknown:
        raise TemplateSyntaxError(f"there is no variable `{unknown[0]}`; there are {', '.join(sorted(names))}", 1)


def _is_plain(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) or (isinstance(node, nodes.Name) and node.ctx == "store")


def _refuse(node: nodes.Node, what: str) -> NoReturn:
    raise TemplateSyntaxError(
        f"{what} is not in the language of these templates, which has if, for, set, comparisons and filters",
        node.lineno,
    )


class _Tamer(NodeTransformer):
    """Makes methods into filters, has loops counted, and knows the template's own tags by a mark."""

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802 (the name is jinja2's)
        node.data = markup.neutralise(node.data, _OWN)
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        called = cast(nodes.Getattr, node.node)  # as checked before
        return nodes.Filter(
            called.node, called.attr, node.args, node.kwargs, node.dyn_args, node.dyn_kwargs, lineno=node.lineno
        )

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "counted", [], [], None, None, lineno=node.lineno)
        return node


class _Environment(ImmutableSandboxedEnvironment):
    """Attributes are the keys of mappings; nothing else has any, but for the state of a loop."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return super().getattr(obj, attribute) if isinstance(obj, LoopContext) else self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)


def _shown(value: Any) -> str:
    """A value as it is printed."""
    if isinstance(value, Undefined):
        return ""
    text = value if isinstance(value, str) else to_json(value)
    return text.replace(_OWN, "\ufffd")


def _metered(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, with the text that it makes counted."""

    @pass_context
    def run(context: Context, *args: Any, **options: Any) -> Any:
        made = filter_(*args, **options)
        context[_BUDGET].spend(len(made) if isinstance(made, str) else 1)
        return made

    return run


@pass_context
def _counted(context: Context, values: Any) -> Iterator[Any]:
    """The passes of a loop. What cannot be gone through is empty, as odd schemas are everywhere."""
    for value in values if isinstance(values, Iterable) else ():
        context[_BUDGET].spend(PASS)
        yield value


@pass_context
def _join(context: Context, values: Any, separator: str = "") -> str:
    words = []
    for word in _counted(context, values):
        words.append(_shown(word))
        context[_BUDGET].spend(len(words[-1]) + len(separator))
    return separator.join(words)


def _mapping(value: Any) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


FILTERS: Mapping[str, Callable[..., Any]] = {
    "tojson": _metered(to_json),
    "signature": _metered(signature),
    "trim": _metered(lambda value: _shown(value).strip()),
    "upper": _metered(lambda value: _shown(value).upper()),
    "lower": _metered(lambda value: _shown(value).lower()),
    "capitalize": _metered(lambda value: _shown(value).capitalize()),
    "title": _metered(lambda value: _shown(value).title()),
    "items": lambda value: list(_mapping(value).items()),
    "keys": lambda value: list(_mapping(value)),
    "values": lambda value: list(_mapping(value).values()),
    "get": lambda value, key, default="": _mapping(value).get(key, default),
    "join": _join,
    **{
        name: JINJA_FILTERS[name]
        for name in (
            "count", "d", "default", "first", "last", "length", "map", "reject", "rejectattr", "select", "selectattr",
        )
    },
}  # fmt: skip
"""``tojson`` writes short JSON, ``signature`` a tool as a TypeScript-like signature; the others do as in jinja2."""


def _environment() -> _Environment:
    made = _Environment(
        undefined=ChainableUndefined, finalize=_shown, trim_blocks=True, lstrip_blocks=True, cache_size=0
    )
    made.globals.clear()
    made.filters = {**FILTERS, "counted": _counted}
    return made


_ENVIRONMENT = _environment()

"""Hypothesis strategies: tools, calls of them, replies that hold such calls, and what happens to replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from proxy.core.grammar import grammar
from proxy.core.model import Json, Tool
from proxy.testing.damage import DAMAGES
from proxy.testing.renderings import writers
from proxy.testing.schemas import KEYS, TEXTS, values
from proxy.testing.writing import Call

PROSE = st.text(alphabet="ab .,:!?'é\n", max_size=16)
"""What stands around calls unless told otherwise: words without markup."""

_VERBS = ("get", "set", "find", "send", "list", "delete", "write_file", "runCode", "a")
_NOUNS = ("", "_time", "_weather", "_mail", "_items2", "_")
_NAMES = st.builds(str.__add__, st.sampled_from(_VERBS), st.sampled_from(_NOUNS))
_BITS = (
    '{"name": "', '", "arguments": {', "}}", "{", "}", "[", "]", '"', "'", ":", ",", "\\", "\n", "\n\n", " ", "`",
    "```", "```json\n", "~~~", "<", ">", "/", "=",
    "<parameter=", "</parameter>", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>", "</s>", "It is noon.", "é", "🍸", "\x00", "null",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rendering:
    """A reply as a model of one family writes it: ``text``, in which ``calls`` are made in the way of ``dialect``.

    ``prose`` are the texts before, between and after the calls. What is read out of ``text`` is ``calls``, in this
    order, and the words of ``prose``.
    """

    dialect: str
    text: str
    calls: tuple[Call, ...]
    prose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Damaged:
    """A text that is no longer what it was. ``kind`` is one of ``DAMAGES``."""

    kind: str
    text: str


@st.composite
def tools(draw: DrawFn, *, min_size: int = 1, max_size: int = 3) -> tuple[Tool, ...]:
    """Tools with names of their own, and JSON Schemas of the kinds that clients send."""
    names = draw(st.lists(_NAMES, min_size=min_size, max_size=max_size, unique=True))
    return tuple(Tool(name, f"The tool {name}.", draw(_objects(_schemas()))) for name in names)


def calls(
    tools: Iterable[Tool | Mapping[str, Json]], *, min_size: int = 1, max_size: int = 3
) -> SearchStrategy[tuple[Call, ...]]:
    """Valid calls of ``tools``, in any vendor's shape. Raises ``ValueError`` when one has no name, or there is none."""
    given = [Tool.of(tool) for tool in tools]
    if not given:
        raise ValueError("there are no tools that could be called")
    one = st.one_of([st.builds(Call, st.just(tool), _arguments(tool)) for tool in given])
    return st.lists(one, min_size=min_size, max_size=max_size).map(tuple)


@st.composite
def rendering(
    draw: DrawFn,
    calls: Sequence[Call],
    dialect: str | None = None,
    *,
    prose: SearchStrategy[str] = PROSE,
) -> Rendering:
    """``calls``, at least one, as models of the row ``dialect`` write them (None: any row that can say them).

    Text of ``prose`` stands around them where the family has a place for it. Calls that the row has no way to say (a
    string with its own closing tag in it) are rejected, as by hypothesis' ``assume``. Raises ``ValueError`` for an
    unknown row.
    """
    able = [writer for writer in writers(dialect) if all(map(writer.way.says, calls))]
    if not able:
        reject()
    writer = draw(st.sampled_from(able))
    divided = writer.before is not None and writer.after is not None
    starts = [0, *(at for at in range(1, len(calls)) if divided and draw(st.booleans())), len(calls)]
    places = [writer.before, *([writer.after] * (len(starts) - 1))]
    said = [draw(prose) if place is not None else "" for place in places]
    around = [place.replace("{}", told) if place and told else "" for place, told in zip(places, said, strict=True)]
    text = around[0]
    for start, end, words in zip(starts, starts[1:], around[1:], strict=False):
        text += writer.write(calls[start:end], start) + words + (writer.apart if end < len(calls) else "")
    return Rendering(writer.dialect, text, tuple(calls), tuple(said))


def damaged(text: str, kinds: Iterable[str] | None = None) -> SearchStrategy[Damaged]:
    """``text`` with one damage of ``kinds`` (None: of all ``DAMAGES``) that changes it.

    Raises ``ValueError`` for an unknown kind; a text that none of them changes cannot be drawn.
    """
    wanted = tuple(DAMAGES) if kinds is None else tuple(kinds)
    unknown = sorted({*wanted} - {*DAMAGES})
    if unknown:
        raise ValueError(f"unknown damage {unknown[0]!r}; there are: {', '.join(DAMAGES)}")
    able = [kind for kind in wanted if DAMAGES[kind](text, lambda count: 0) is not None]

    @st.composite
    def one(draw: DrawFn, kind: str) -> Damaged:
        changed = DAMAGES[kind](text, lambda count: draw(st.integers(0, count - 1)))
        return Damaged(kind, text if changed is None else changed)

    return st.sampled_from(able).flatmap(one) if able else st.nothing()


def chunkings(text: str) -> SearchStrategy[list[str]]:
    """``text`` in pieces, as it may arrive: whole, cut anywhere, maybe with empty pieces, or in single characters."""
    places = st.lists(st.integers(0, len(text)), max_size=8).map(sorted)
    anywhere = places.map(lambda cuts: [text[start:end] for start, end in pairwise([0, *cuts, len(text)])])
    return anywhere | st.integers(1, 5).map(lambda size: [text[at : at + size] for at in range(0, len(text), size)])


def soup(words: Iterable[str] = (), *, max_size: int = 14) -> SearchStrategy[str]:
    """Texts of pieces of markup of all families, in no order; ``words`` are further pieces, names of tools say."""
    marks = sorted(grammar().marks.marks)
    piece = st.sampled_from([*words, *_BITS]) | st.sampled_from(marks) | st.text(max_size=3)
    return st.lists(piece, max_size=max_size).map("".join)


def _arguments(tool: Tool) -> SearchStrategy[dict[str, Json]]:
    schema = tool.parameters
    if not isinstance(schema, dict) or not schema.keys() & {"type", "$ref", "allOf", "anyOf", "oneOf", "properties"}:
        schema = {"type": "object", **(schema if isinstance(schema, dict) else {})}
    return values(schema).filter(lambda arguments: isinstance(arguments, dict))


def _schemas() -> SearchStrategy[Json]:
    """Schemas of one value."""
    bounds = st.integers(-50, 50)
    plain = st.one_of(
        st.just({"type": "string"}),
        st.just({"type": "boolean"}),
        st.just({"type": "number"}),
        st.just({"type": "integer"}),
        bounds.map(lambda low: {"type": "integer", "minimum": low, "maximum": low + 20}),
        st.lists(TEXTS, min_size=1, max_size=3, unique=True).map(lambda texts: {"type": "string", "enum": texts}),
        st.integers(1, 9).map(lambda most: {"type": "string", "maxLength": most}),
        st.sampled_from(["date", "email", "uri", "uuid"]).map(lambda name: {"type": "string", "format": name}),
        st.just({"type": ["string", "null"]}),
        st.just({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        st.just({}),
    )
    return st.recursive(
        plain,
        lambda inner: _objects(inner) | inner.map(lambda item: {"type": "array", "items": item, "maxItems": 3}),
        max_leaves=4,
    )


@st.composite
def _objects(draw: DrawFn, inner: SearchStrategy[Json]) -> Json:
    members = draw(st.dictionaries(KEYS, inner, max_size=3))
    required = [key for key in members if draw(st.booleans())]
    schema: dict[str, Json] = {"type": "object", "properties": members, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema

"""What makes tools hard to call, as far as it shows in their definitions: a model knows of a tool what these say.

Advice, not rules: a tool with findings works. Each finding says what to write instead.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias

from proxy.core.arguments.schema import ToolSchema
from proxy.core.model import Json, Tool
from proxy.core.tokens import size_of, tokens_of

Rule: TypeAlias = Literal[
    "many_tools",  # a small model chooses worse among many
    "long_tools",  # all of it is in each prompt
    "same_name",  # a call of it could be of either
    "similar_names",  # names that are easily taken for each other
    "same_description",  # nothing tells two tools apart
    "no_description",
    "vague_description",  # it says no more than the name, or next to nothing
    "long_description",
    "vague_name",
    "broken_schema",  # the arguments cannot be validated
    "unknown_required",  # required, but not described
    "many_arguments",
    "deep_arguments",  # objects in objects in objects
    "argument_description",
    "argument_type",
    "argument_format",  # a date, a URL … that nothing says how to write
    "argument_enum",  # the description lists what the schema could
    "argument_items",  # a list or an object of nobody knows what
]

MANY_TOOLS = 30
MANY_TOKENS = 8_000
MANY_ARGUMENTS = 12
LONG_DESCRIPTION = 2_000
DEEPEST = 4
"""Objects within objects that are looked into; what is deeper is a finding."""

MOST_FINDINGS = 200
SHOWN = 8
"""Names that one finding lists."""

_SHORTEST_SIMILAR = 6
_MOST_READ = 2_000  # characters of a description in which values are looked for
_MOST_PROPERTIES = 200
_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*|\d+")
_VAGUE_NAMES = frozenset(
    {
        *("tool", "function", "func", "fn", "call", "do", "run", "action", "execute", "exec", "process", "handle"),
        *("helper", "util", "test"),
    }
)
_EMPTY_WORDS = frozenset(
    {
        *("a", "an", "the", "this", "that", "it", "is", "and", "or", "some", "for", "to", "of", "with", "from", "in"),
        *("on", "does", "do", "use", "used", "using", "uses", "call", "calls", "tool", "function", "method", "api"),
        *("thing", "things", "stuff", "data", "something", "helper", "utility"),
    }
)
_TYPED = frozenset({"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"})
_CLOSED = frozenset({"enum", "const", "anyOf", "oneOf", "$ref", "pattern"})
_WRITTEN = frozenset({*_CLOSED, "format", "examples", "example", "default"})
_VALUE = r"""(?:"[^"\s]{1,40}"|'[^'\s]{1,40}'|`[^`\s]{1,40}`)"""
_BARE = r"[\w.-]{1,30}"
_LISTED = re.compile(
    rf"{_VALUE}(?:\s*(?:,|\||/|,?\s*\bor\b)\s*{_VALUE})+"
    rf"|\b(?:one of|(?:allowed|valid|possible) values?(?: are| is)?)\b\s*:?\s*"
    rf"[(\[]?{_BARE}(?:\s*(?:,|\||/)\s*{_BARE})*\s*(?:,|\||/|,?\s*\bor\b)\s*{_BARE}"
    rf"|\beither {_BARE}(?:, {_BARE})* or {_BARE}"
    rf"|\({_BARE}(?:\s*[|/]\s*{_BARE})+\)",
    re.IGNORECASE,
)
_NOT_ALL = re.compile(
    r"\b(?:e\.g\.|eg|examples?|such as|like|including|(?:if|when|unless)\b[^.;]{0,60})\W*$", re.IGNORECASE
)
"""What stands before values that are not all there are."""

_SAYS_HOW = re.compile(
    r"\d|e\.g\.|for example|such as|\bISO\b|YYYY|https?:|\bRFC|\blike\b|\bformat\b|\bin the form\b", re.I
)
_FORMATS: Mapping[str, str] = {
    "date": '"format": "date", or an example (2026-05-01)',
    "day": '"format": "date", or an example (2026-05-01)',
    "birthday": '"format": "date", or an example (2026-05-01)',
    "time": '"format": "date-time" or "time", or an example',
    "datetime": '"format": "date-time", or an example',
    "timestamp": '"format": "date-time", or whether it is in seconds',
    "deadline": '"format": "date-time", or an example',
    "since": '"format": "date-time", or an example',
    "until": '"format": "date-time", or an example',
    "duration": "its unit, or an example (PT15M)",
    "url": '"format": "uri"',
    "uri": '"format": "uri"',
    "email": '"format": "email"',
    "uuid": '"format": "uuid"',
    "phone": "an example (+41 44 668 18 00)",
    "color": "an example (#ff8800)",
    "currency": "an example (CHF)",
    "language": "an example (de)",
    "locale": "an example (de-CH)",
    "country": "an example (CH)",
    "timezone": "an example (Europe/Zurich)",
    "tz": "an example (Europe/Zurich)",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``message`` is a sentence or two: what is so, and what to write. ``tool`` None: it is about all of them.

    ``argument`` is a path (``filter.since``), None where it is about the tool.
    """

    rule: Rule
    message: str
    tool: str | None = None
    argument: str | None = None


def lint(tools: Sequence[Tool]) -> tuple[Finding, ...]:
    """What could be said better in ``tools``, at most ``MOST_FINDINGS``. Never raises, whatever their schemas hold."""
    return tuple(islice(_findings(tools), MOST_FINDINGS))


def _findings(tools: Sequence[Tool]) -> Iterator[Finding]:
    if len(tools) > MANY_TOOLS:
        yield Finding(
            "many_tools", f"{len(tools)} tools. Small models choose worse among many; offer those that may be needed."
        )
    tokens = tokens_of(sum(map(size_of, tools)))
    if tokens > MANY_TOKENS:
        yield Finding("long_tools", f"The tools take about {tokens:,} tokens of each prompt. Shorten the longest.")
    yield from _alike(tools)
    for tool in tools:
        yield from _of_tool(tool)


def _alike(tools: Sequence[Tool]) -> Iterator[Finding]:
    """Tools that are easily taken for each other. Linear in their number."""
    counts = Counter(tool.name for tool in tools)
    for name, count in counts.items():
        if count > 1:
            yield Finding("same_name", f"{count} tools have this name. Give each its own.", name)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        for key in _likenesses(name):
            groups[key].append(name)
    told: set[frozenset[str]] = set()
    for group in groups.values():
        pair = frozenset(group)
        if len(pair) > 1 and not any(pair <= known for known in told):
            told.add(pair)
            message = (
                f"These names are easily taken for each other: {_listed(group)}. Let each say what is special to it."
            )
            yield Finding("similar_names", message, group[0])
    described: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        if text := " ".join(tool.description.lower().split()):
            described[text].append(tool.name)
    for same in described.values():
        if len(set(same)) > 1:
            message = f"The same description stands at {_listed(same)}. Say when to use which."
            yield Finding("same_description", message, same[0])


def _likenesses(name: str) -> set[str]:
    """Keys that names share which differ only in case, separators, the order of words, a plural, or one letter."""
    words = [word.lower() for word in _WORD.findall(name)]
    plain = "".join(words)
    keys = {f"={plain}", "+" + " ".join(sorted(word.removesuffix("s") for word in words))}
    letters = name if name.isalpha() else "".join(char for char in name if not char.isdigit()) or name
    if len(letters) >= _SHORTEST_SIMILAR and len(name) <= 64:
        keys |= {f"-{plain[:at]}*{plain[at + 1 :]}" for at in range(len(plain))}
    return keys


def _of_tool(tool: Tool) -> Iterator[Finding]:
    name, text = tool.name, tool.description.strip()
    words = [word.lower() for word in _WORD.findall(name)]
    if set(words) <= _VAGUE_NAMES or (len(words) == 1 and len(name) < 3) or re.fullmatch(r"[a-z]+_?\d+", name):
        yield Finding(
            "vague_name", "The name does not say what the tool does. A verb and a noun do: get_weather.", name
        )
    if not text:
        yield Finding(
            "no_description", "There is no description. Say in a sentence what it does and when to use it.", name
        )
    elif not {word.lower() for word in re.findall(r"[^\W_]+", text)} - _EMPTY_WORDS - set(words):
        yield Finding("vague_description", f"The description says no more than the name: {_cut(text)}", name)
    elif len(text) < 16 or len(text.split()) < 3:
        yield Finding("vague_description", f"A few words hardly tell when to use it: {_cut(text)}", name)
    elif len(text) > LONG_DESCRIPTION:
        yield Finding("long_description", f"The description has {len(text):,} characters, in each prompt.", name)
    if tool.custom or tool.parameters is None:
        return
    problem = ToolSchema(tool.parameters).problem
    if problem is not None:
        yield Finding("broken_schema", problem.message, name)
    if isinstance(tool.parameters, Mapping):
        yield from _of_object(tool.parameters, name, "", 1)


def _of_object(schema: Mapping[str, Json], tool: str, path: str, depth: int) -> Iterator[Finding]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    if isinstance(required, list):
        unknown = [each for each in required if isinstance(each, str) and each not in properties]
        if unknown:
            message = f"Required, but described nowhere: {_listed(unknown)}. Add them to `properties`."
            yield Finding("unknown_required", message, tool, path or None)
    if len(properties) > MANY_ARGUMENTS:
        message = f"{len(properties)} arguments. Make rare ones optional, or make two tools of it."
        yield Finding("many_arguments", message, tool, path or None)
    bare: list[str] = []
    for key, value in islice(properties.items(), _MOST_PROPERTIES):
        if not isinstance(value, Mapping):
            continue
        if not (isinstance(value.get("description"), str) and value["description"].strip()):
            bare.append(key)
        yield from _of_argument(value, tool, key, f"{path}.{key}" if path else key, depth)
    if bare:
        yield Finding(
            "argument_description", f"No description: {_listed(bare)}. Say what to write.", tool, path or None
        )


def _of_argument(schema: Mapping[str, Json], tool: str, name: str, path: str, depth: int) -> Iterator[Finding]:
    kind = schema.get("type")
    given = schema.get("description")
    text = given[:_MOST_READ] if isinstance(given, str) else ""
    if not _TYPED & schema.keys() and "properties" not in schema:
        yield Finding("argument_type", 'There is no type. Give one: "type": "string".', tool, path)
    if kind == "string" and not _CLOSED & schema.keys() and (found := _values(text)):
        if {"true", "false"} <= set(re.findall(r"[a-z]+", found.lower())):
            yield Finding("argument_enum", f'It is true or false: make it "type": "boolean". ({found})', tool, path)
        else:
            yield Finding("argument_enum", f"The description lists values; put them into `enum`: {found}", tool, path)
    elif kind == "string" and not _WRITTEN & schema.keys() and not _SAYS_HOW.search(text):
        last = ([word.lower() for word in _WORD.findall(name)] or [""])[-1]
        if last in _FORMATS:
            message = f"Nothing says how to write it. Add {_FORMATS[last]}."
            yield Finding("argument_format", message, tool, path)
    if kind == "array" and not {"items", "prefixItems"} & schema.keys():
        yield Finding("argument_items", "A list of what? Add `items`.", tool, path)
    open_object = not {"properties", "additionalProperties", "patternProperties"} & schema.keys()
    if kind == "object" and open_object and not _TYPED - {"type"} & schema.keys():
        yield Finding("argument_items", "An object with which members? Add `properties`.", tool, path)
    inner = schema.get("items") if kind == "array" else schema
    if isinstance(inner, Mapping) and isinstance(inner.get("properties"), Mapping):
        if depth < DEEPEST:
            yield from _of_object(inner, tool, path if inner is schema else f"{path}[]", depth + 1)
        else:
            message = f"It is more than {DEEPEST} objects deep. Small models lose count of the brackets: flatten it."
            yield Finding("deep_arguments", message, tool, path)


def _values(text: str) -> str:
    """The values that ``text`` lists, shortened; "" if there are none, or if they are examples."""
    text = " ".join(text.split())  # long runs of white space cost the pattern dear
    found = _LISTED.search(text)
    return _cut(found[0]) if found and not _NOT_ALL.search(text[: found.start()][-80:]) else ""


def _listed(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    more = f" and {len(unique) - SHOWN} more" if len(unique) > SHOWN else ""
    return ", ".join(map(_cut, unique[:SHOWN])) + more


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:80] + "…"

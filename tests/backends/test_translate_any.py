"""Random schemas: whatever their grammar lets through is valid, by a validator that knows nothing of grammars."""

from __future__ import annotations

import json
import random

import jsonschema_rs
from hypothesis import assume, given
from hypothesis import strategies as st

from proxy.backends.schemas import NoValueError, TooLargeError
from proxy.core.model import Json
from tests.backends.test_translate import translate
from tests.support.gbnf import Grammar

NAMES = st.sampled_from(["a", "ab", "abc", "id", "name", "Ünïcode", 'quo"te', "back\\slash", "new\nline", "", "$ref x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-50, 50) | st.sampled_from([0.5, -1.25e10, 1e22]) | NAMES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
ANYTHING: st.SearchStrategy[Json] = st.booleans()
BOUNDS = st.integers(-300, 300) | st.sampled_from([0.5, -2.75, 1e3, 0])


def some(**optional: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def numbers(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(["integer", "number"]))
    low = draw(st.sampled_from([None, "minimum", "exclusiveMinimum"]))
    high = draw(st.sampled_from([None, "maximum", "exclusiveMaximum"]))
    one, other = sorted([draw(BOUNDS), draw(BOUNDS)])
    return {"type": kind} | ({low: one} if low else {}) | ({high: other} if high else {})


STRINGS = some(minLength=st.integers(0, 4), maxLength=st.integers(4, 9)).map(lambda words: {"type": "string", **words})
SCALARS = st.one_of(
    numbers(),
    STRINGS,
    st.lists(numbers(), min_size=2, max_size=2).map(lambda both: {"allOf": both}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["integer", "string", "null"]}]),
    st.lists(VALUES, min_size=1, max_size=5).map(lambda values: {"enum": values}),
    VALUES.map(lambda value: {"const": value}),
    st.sampled_from([True, {}, {"description": "anything"}, {"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}]),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    declared = draw(st.dictionaries(NAMES, inner, max_size=4))
    required = draw(st.lists(st.sampled_from([*declared, "other"]), unique=True, max_size=3))
    schema: dict[str, Json] = {"type": "object", "required": required}
    open_ended = draw(st.booleans())
    if declared or not open_ended:
        schema["properties"] = declared
    schema |= draw(some(additionalProperties=ANYTHING | inner, minProperties=st.integers(0, 1)))
    if schema.get("additionalProperties") is False:
        schema["required"] = [name for name in required if name in declared]
    return schema


@st.composite
def maps(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    keys = st.just({"enum": ["x", "y"]}) | st.just({"minLength": 2, "maxLength": 4})
    words = some(
        additionalProperties=inner,
        minProperties=st.integers(0, 1),
        maxProperties=st.integers(1, 5),
        propertyNames=keys,
    )
    return {"type": "object", **draw(words)}


def arrays(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    words = some(
        items=inner,
        prefixItems=st.lists(inner, min_size=1, max_size=2),
        minItems=st.integers(0, 3),
        maxItems=st.integers(3, 6),
    )
    return words.map(lambda words: {"type": "array", **words})


@st.composite
def combined(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    base = draw(objects(inner))
    names = sorted(base.get("properties", {}))
    match draw(st.sampled_from(["anyOf", "allOf", "one of", "required"])):
        case "anyOf":
            return {"anyOf": draw(st.lists(inner, min_size=1, max_size=3)), "title": "T"}
        case "one of":
            return {"oneOf": [{"type": "object", "properties": {"x": draw(inner)}}, {"type": "string"}]}
        case "allOf":
            return {"allOf": [base, {"type": "object", "properties": {"of its own": True}, "minProperties": 1}]}
        case _:
            return {**base, "anyOf": [{"required": [name]} for name in names] or [True]}


SCHEMAS = st.recursive(
    SCALARS, lambda inner: objects(inner) | maps(inner) | arrays(inner) | combined(inner), max_leaves=8
)


@given(SCHEMAS, SCHEMAS, SCHEMAS, st.integers(0, 2**32))
def test_whatever_is_let_through_is_valid(schema: Json, one: Json, two: Json, seed: int) -> None:
    root = {"$defs": {"one": one, "two": two}, "allOf": [schema]}
    try:
        text = translate(root)
    except (NoValueError, TooLargeError):
        assume(False)
    written = Grammar(text)
    validator = jsonschema_rs.Draft202012Validator(root, offline=True)
    rng = random.Random(seed)
    for _ in range(5):
        try:
            sample = written.sample(rng)
        except RecursionError:
            continue  # a definition that requires itself has no end
        assert len(sample) > 10**6 or validator.is_valid(json.loads(sample)), sample

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from proxy.core.arguments.schema import ToolSchema
from proxy.core.fragments import ArgumentStream

SCHEMA = ToolSchema(
    {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "any": {}}}
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["text", "count", "any", 'q"', "list"]),
    st.text(max_size=12)
    | st.integers()
    | st.integers().map(str)
    | st.lists(st.integers() | st.text(max_size=3), max_size=3)
    | st.dictionaries(st.text(max_size=3), st.none() | st.text(max_size=3), max_size=3),
)


@given(ARGUMENTS, st.sampled_from([None, 1]), st.integers(1, 9), st.booleans())
def test_what_went_out_begins_the_final_arguments(
    arguments: dict[str, object], indent: int | None, step: int, ascii_only: bool
) -> None:
    text = json.dumps(arguments, indent=indent, ensure_ascii=ascii_only)
    final = SCHEMA.coerce(text)[0]
    stream = ArgumentStream(SCHEMA)
    for at in range(0, len(text), step):
        stream.feed(text[at : at + step])
        assert final.startswith(stream.sent)
    assert len(stream.sent) >= len(final.rstrip("}\n \t")) - len(json.dumps(list(arguments.values())[-1:] or ""))


def test_a_string_streams_and_its_quote_waits() -> None:
    stream = ArgumentStream(SCHEMA)
    assert stream.feed('{"text": "a') == '{"text": "a'
    assert stream.feed("b") == "b"
    assert stream.feed('"') == ""
    assert stream.feed(" ") == ""
    assert stream.feed(",") == '" '
    assert stream.sent == '{"text": "ab" '


def test_a_value_of_another_type_waits_until_it_is_converted() -> None:
    stream = ArgumentStream(SCHEMA)
    assert stream.feed('{"count": "1') == "{"
    assert stream.feed('2", ') == '"count": 12'


def test_nothing_goes_out_behind_a_quote_that_was_no_end() -> None:
    stream = ArgumentStream(SCHEMA)
    stream.feed('{"text": "print(')
    assert stream.feed('"hi") and more", ') == ""
    assert stream.sent == '{"text": "print('

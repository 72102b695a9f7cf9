from __future__ import annotations

import pytest

from proxy.core.arguments.ends import Follow, end_of_string, follow
from proxy.core.arguments.strings import NoReadingError


@pytest.mark.parametrize(
    ("text", "closers", "expected"),
    [
        (', "b": 1}', "}", Follow.EXACT),
        (" ,\n'b' : 1}", "}", Follow.EXACT),
        (", b: 1}", "}", Follow.EXACT),
        (r", \"b\": 1}", "}", Follow.EXACT),
        (r', "b\"c": 1}', "}", Follow.EXACT),
        (', "b"}', "}", Follow.NONE),
        (", then", "}", Follow.NONE),
        (",}", "}", Follow.EXACT),
        (", 1]", "]", Follow.EXACT),
        (", then]", "]", Follow.NONE),
        (', "b": 1}', "]", Follow.EXACT),
        ("}", "}", Follow.EXACT),
        ("}]}", "}]}", Follow.EXACT),
        ('} , "b": 1}', "}}", Follow.EXACT),
        ("}, b}", "}}", Follow.NONE),
        ("}, {}]", "]}", Follow.EXACT),
        ("} }", "}", Follow.LOOSE),
        ("}", "}}", Follow.LOOSE),
        ("", "}", Follow.LOOSE),
        ("]", "}", Follow.LOOSE),
        ("] x", "}", Follow.NONE),
        ("", "", Follow.EXACT),
        (", 1", "", Follow.NONE),
        ("}; {", "}", Follow.EXACT),
        ("} [", "}", Follow.EXACT),
        ("},", "}", Follow.EXACT),
        ("} x", "}", Follow.NONE),
        ("// c\n}", "}", Follow.NONE),
        (": 1}", "}", Follow.NONE),
        (")", "}", Follow.NONE),
    ],
)
def test_follow(text: str, closers: str, expected: Follow) -> None:
    assert follow(text, 0, list(closers)) is expected


def test_follow_past_comments() -> None:
    assert follow('/* c */, // d\n"b": 1}', 0, ["}"], comments=True) is Follow.EXACT
    assert follow("// no end of line }", 0, ["}"], comments=True) is Follow.NONE
    with pytest.raises(NoReadingError):
        follow(', // c",\n "b": 1}', 0, ["}"], comments=True)


@pytest.mark.parametrize(
    ("text", "closers", "content"),
    [
        ('"x", "b": 1}', "}", "x"),
        (r'"x\"", "b": 1}', "}", r"x\""),
        ('"print("hi")"}', "}", 'print("hi")'),
        ('"he said "yes", then "no"", "b": 1}', "}", 'he said "yes", then "no"'),
        ('"{"name": "foo"}"}', "}", '{"name": "foo"}'),
        ('""exact phrase""}', "}", '"exact phrase"'),
        ('"6" pipe", "n": 1}', "}", '6" pipe'),
        ("'what's up'}", "}", "what's up"),
        ("'the users' plan', 'n': 1}", "}", "the users' plan"),
        ('"a "b" c"', "", 'a "b" c'),
        ('"a "b" c"]', "]", 'a "b" c'),
    ],
)
def test_the_only_end(text: str, closers: str, content: str) -> None:
    end, _ = end_of_string(text, 0, list(closers))
    assert text[1:end] == content


@pytest.mark.parametrize(
    ("text", "closers"),
    [
        ('"open', "}"),
        ('"print("hi")","path":"a.py"}', "}"),  # content may go on to the very end
        ('"{"name":"foo","v":"1"}"}', "}"),
        ('"x, "b": "y"}', "}"),  # a quote is missing rather than superfluous
        ('"x\n "b": "y"}', "}"),
        ('"x" "b": "y"}', "}"),  # a comma is missing
        ('"x, "y"]', "]"),
        ('"say "hi" now", "ok"]', "]"),
        ('"x" + "y"}', "}"),  # may be an expression
        ('"x" "y"}', "}"),
        ('"""doc"""}', "}"),  # Python's long strings
        ('"say "hi}', "}"),
        ('"say "hi"}', "}"),  # the quotation may be the end of the string as well
        ("'say 'hi'}", "}"),
        ('"x "y" z"}}', "}"),
        (r'"C:\dir\"}', "}"),
        (r'"C:\dir\", "x":"y"}', "}"),
        ('"a"b", c: "d"}', "}"),
    ],
)
def test_no_end_or_more_than_one(text: str, closers: str) -> None:
    with pytest.raises(NoReadingError):
        end_of_string(text, 0, list(closers))

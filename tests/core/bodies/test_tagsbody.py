"""Bodies of markup: where values end, above all."""

from __future__ import annotations

import pytest

from proxy.core.bodies.base import RawCall, Status, Value
from proxy.core.bodies.tagsbody import TagsReader
from proxy.core.forms import TagsBody
from proxy.core.notations import ELEMENTS, FUNCTION_TAGS, KIMI_TAGS, MINIMAX_TAGS, PAIRS, invoke
from proxy.core.scanner import Marks

CLOSERS = Marks(("</tool_call>",))
OPENERS = Marks(("<tool_call>", "<function="))


def run(text: str, spec: TagsBody = FUNCTION_TAGS, closers: Marks = CLOSERS) -> tuple[Status, str, list[RawCall]]:
    reader = TagsReader(spec, closers, OPENERS)
    at, status = reader.take(text, 0, final=True)
    return status, text[at:], reader.reading.calls


def values(text: str, spec: TagsBody = FUNCTION_TAGS) -> dict[str, str]:
    """The raw values of the one call in ``text``, which a closer and more text follow."""
    status, rest, (call,) = run(text + "</tool_call>", spec)
    assert (status, rest) == (Status.DONE, "")
    assert not isinstance(call.arguments, str)
    return {value.key: value.text for value in call.arguments}


def function(*parameters: tuple[str, str], name: str = "f") -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters)
    return f"<function={name}>\n{inner}</function>"


QUOTED = f"<tool_call>\n{function(('x', '1'), ('y', '2'), name='g')}\n</tool_call>"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "plain",
        "two\n\nlines\n",
        "  indented",
        "ends with a closer </parameter> in a sentence",
        "a </function> and a </tool_call> in a sentence",
        "opens <parameter=z> and <function=h> in a sentence",
        "<div>\n  <p>a < b</p>\n</div>",
        QUOTED,
        f"{QUOTED}\n{QUOTED}",
        f"{QUOTED}\n</parameter> stands alone",
        "<parameter=x>\n1\n</parameter>",
        "<function=g>\n</function>",
    ],
)
@pytest.mark.parametrize("behind", ["", "\n<tool_call>", " and text"])
def test_a_value_may_hold_anything_that_is_closed(value: str, behind: str) -> None:
    text = f"\n{function(('path', 'a.md'), ('content', value))}\n</tool_call>"
    status, rest, calls = run(text + behind)
    assert (status, rest) == (Status.DONE, behind)
    assert calls == [RawCall("f", (Value("path", "a.md"), Value("content", value)))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<parameter=a>1</parameter>", {"a": "1"}),
        ("<parameter=a>\n1</parameter>", {"a": "1"}),
        ("<parameter=a>1\n</parameter>", {"a": "1\n"}),
        ("<parameter=a>\n\n1\n\n</parameter>", {"a": "\n1\n"}),
        ("<parameter= a >1</parameter>", {"a": "1"}),
        ("", {}),
    ],
)
def test_one_line_break_at_each_end_is_layout(text: str, found: dict[str, str]) -> None:
    assert values(f"<function=f>{text}</function>") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<parameter=a>\n1\n<parameter=b>\n2\n</parameter>\n", {"a": "1", "b": "2"}),
        ("<parameter=a>1", {"a": "1"}),
        ("<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n", {"a": "1", "b": "2"}),
    ],
)
def test_a_value_that_is_never_closed_ends_where_the_next_tag_begins(text: str, found: dict[str, str]) -> None:
    assert values(f"<function=f>{text}</function>") == found


def test_a_call_that_is_never_closed_ends_with_the_form() -> None:
    assert values("<function=f><parameter=a>1</parameter>") == {"a": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function></tool_call>",
        "<function=f>words</function></tool_call>",
        "<function=f><parameter=a>1</parameter>\nwords\n</function></tool_call>",
        "<function=f>\n<parameter=a>\n1\n</parameter>\n<parametr=b>\n2\n</parameter>\n</function></tool_call>",
        "<function=f><parameter=a>1</tool_call> and text",
        "<function=f><parameter=a>1",
        "<function=f",
        "<function=f>{not json}</function></tool_call>",
    ],
)
def test_what_has_no_single_reading_is_refused(text: str) -> None:
    assert run(text)[0] is Status.MORE


@pytest.mark.parametrize("behind", ["words</tool_call>", "\n</function>", " <x>"])
def test_text_behind_the_last_tag_ends_the_body(behind: str) -> None:
    assert run("<function=f></function>" + behind) == (Status.DONE, behind, [RawCall("f", ())])


@pytest.mark.parametrize(
    "text",
    [
        "<function=f><parameter=a>1</parameter></parameter></function>",
        "<function=f>\n<parameter=a>\n1\n</parameter>\n</parameter>\n</function>",
        "<function=f><parameter=a>1</parameter></tool_call>",
        "<function=f><parameter=a>1</parameter></function></functi",
    ],
)
def test_tags_too_many_or_too_few_around_whole_values(text: str) -> None:
    assert run(text)[2][0].arguments == (Value("a", "1"),)


def test_the_next_call_ends_one_without_its_last_tag() -> None:
    calls = run("<function=f><parameter=a>1</parameter>\n<function=g></function></tool_call>", closers=CLOSERS)[2]
    assert [call.name for call in calls][:1] == ["f"]


def test_elements_of_the_same_kind_are_data() -> None:
    inner = '<a>\n<parameter name="x">1</parameter>\n  <parameter>2</parameter> <parameter>3</parameter>\n</a>'
    assert values(function(("a", inner), ("b", "2"))) == {"a": inner, "b": "2"}


def test_several_calls_in_one_tag() -> None:
    text = f"{function(('a', '1'))}\n{function(name='g')}\n</tool_call>"
    assert [call.name for call in run(text, closers=CLOSERS)[2]] == ["f"]  # the next opener ends the first
    assert [call.name for call in run(text, invoke())[2]] == []
    two = '<invoke name="f"></invoke>\n<invoke name="g"><parameter name="a">1</parameter></invoke></tool_call>'
    assert [call.name for call in run(two, invoke())[2]] == ["f", "g"]


def test_without_closers_the_call_ends_with_its_own_closing_tag() -> None:
    text = f"{function(('a', QUOTED))}\n</tool_call>"
    status, rest, (call,) = run(text, closers=Marks(()))
    assert (status, rest) == (Status.DONE, "\n</tool_call>")
    assert call.arguments == (Value("a", QUOTED),)


def test_json_instead_of_elements() -> None:
    assert run('<function=f>{"a": "</tool_call>"}</function></tool_call>')[2] == [RawCall("f", '{"a": "</tool_call>"}')]
    assert run('<function=f>{"a": 1}')[2] == [RawCall("f", '{"a": 1}')]
    (mended,) = run("<function=f>{'a': 1}</function></tool_call>")[2]
    assert (mended.arguments, bool(mended.repairs)) == ('{"a": 1}', True)


def test_pairs() -> None:
    text = "f\n<arg_key>a</arg_key>\n<arg_value>1 </arg_value> x</arg_value>\n<arg_key>b</arg_key>\n2</arg_value>\n"
    assert values(text, PAIRS) == {"a": "1 </arg_value> x", "b": "2"}
    assert run("f</tool_call>", PAIRS)[2] == [RawCall("f", (), loose=True)]
    assert run('f\n{"a": 1}</tool_call>', PAIRS)[2] == [RawCall("f", '{"a": 1}', loose=True)]
    assert run("f", PAIRS)[0] is Status.MORE
    assert run("f\nwords</tool_call>", PAIRS)[0] is Status.MORE


def test_elements() -> None:
    text = "<write>\n<path>a.html</path>\n<content>\n<p>b</p>\n</content>\n</write>\n"
    assert values(text, ELEMENTS) == {"path": "a.html", "content": "<p>b</p>"}


def test_elements_are_told_by_their_first_tag() -> None:
    assert TagsReader.fits(ELEMENTS, "<tool_call", final=False) is None
    assert TagsReader.fits(ELEMENTS, "<tool_call>{", final=False) is False
    assert TagsReader.fits(ELEMENTS, "<読む>", final=False) is True


def test_what_the_model_says_of_a_value() -> None:
    text = (
        '<invoke name="f"><parameter name="a" string="true">1</parameter><parameter name="b" string="false">2'
        "</parameter><parameter name='c'>3</parameter></invoke></tool_call>"
    )
    assert run(text, invoke())[2] == [RawCall("f", (Value("a", "1", True), Value("b", "2", False), Value("c", "3")))]


def test_attributes_are_unescaped() -> None:
    text = '<|open|>call tool="a&amp;b" index="1"<|sep|><|open|>argument key="k&quot;" type="string"<|sep|>&amp;'
    (call,) = run(f"{text}<|close|>argument<|sep|><|close|>call<|sep|></tool_call>", KIMI_TAGS)[2]
    assert call == RawCall("a&b", (Value('k"', "&amp;", True),))


def minimax(inner: str) -> str:
    """MiniMax's markup of ``[a]…[/a]``."""
    marked = inner.replace("[", "\0").replace("]", ">").replace("\0", "]<]minimax[>[<")
    return f']<]minimax[>[<invoke name="f">{marked}]<]minimax[>[</invoke></tool_call>'


@pytest.mark.parametrize(
    ("inner", "value"),
    [
        ("[a]\n x <b> [/a]", Value("a", "\n x <b> ")),
        ("[a][b]1[/b][c][d]x[/d][/c][/a]", Value("a", '{"b": "1", "c": {"d": "x"}}', False)),
        ("[a]\n[item]1[/item]\n[item]2[/item]\n[/a]", Value("a", '["1", "2"]', False)),
        ("[a][a]1[/a][/a]", Value("a", '{"a": "1"}', False)),
        ("[a][item][b]1[/b][/item][/a]", Value("a", '[{"b": "1"}]', False)),
        ("[a][/a]", Value("a", "")),
    ],
)
def test_nested_elements(inner: str, value: Value) -> None:
    assert run(minimax(inner), MINIMAX_TAGS)[2] == [RawCall("f", (value,))]


@pytest.mark.parametrize("inner", ["[a]1[/b]", "[a][b]1[/b]2[/a]", "[a][b]1[/b][b]2[/b][/a]", "[a][b]1[/a]"])
def test_elements_that_do_not_match_are_refused(inner: str) -> None:
    assert run(minimax(inner), MINIMAX_TAGS)[0] is Status.MORE


def test_depth_is_bounded() -> None:
    deep = "".join(f"[n{depth}]" for depth in range(3_000))
    assert run(minimax(deep) + " text", MINIMAX_TAGS)[0] is Status.MORE
    assert run("<function=g>\n<parameter=x>\n" * 3_000 + "</tool_call>")[0] is Status.MORE


@pytest.mark.parametrize(
    ("spec", "text", "fits"),
    [
        (FUNCTION_TAGS, "<func", None),
        (FUNCTION_TAGS, "<function=", True),
        (FUNCTION_TAGS, "<fn", False),
        (PAIRS, "get_we", None),
        (PAIRS, "get_weather", None),
        (PAIRS, "get_weather\n", None),
        (PAIRS, "get_weather\n<", None),
        (PAIRS, "get_weather<arg_key>", True),
        (PAIRS, "get_weather\nx", True),
        (PAIRS, "get weather", False),
        (PAIRS, "{", False),
    ],
)
def test_fits(spec: TagsBody, text: str, fits: bool | None) -> None:
    assert TagsReader.fits(spec, text, final=False) is fits

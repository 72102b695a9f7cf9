from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core import templating
from proxy.core.templating import BUDGET, FILTERS, LONGEST_SOURCE, PASS, Script
from tests.support.conversations import markup_in, risky_text

NAMES = ("a", "b")


def run(source: str, **values: Any) -> str:
    return Script(source, NAMES).run(values)


def refusal(source: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        Script(source, NAMES)
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ a }}", '{"x":[1,null,true],"items":{"y":"z"}}'),
        ("{{ a.x[0] }}{{ a['x'][1] }}{{ a.x[1:] }}", "1null[null,true]"),
        ("{{ a.items }}|{{ a.items.y }}|{{ a['items'].y }}", '{"y":"z"}|z|z'),
        ("{{ a.none }}{{ a.none.deeper.still }}{{ a.x.y.z }}{{ a.keys }}{{ a.x.append }}", ""),
        ("{% for k, v in a.items() %}{{ k }}={{ v }};{% endfor %}", 'x=[1,null,true];items={"y":"z"};'),
        ("{% for k in a %}{{ loop.index }}{{ k }}{% if not loop.last %},{% endif %}{% endfor %}", "1x,2items"),
        ("{% for k in a.keys() %}{{ k }}{% endfor %}{{ a.values() | length }}", "xitems2"),
        ("{{ a.get('none', 'no') }}{{ a.get('none') }}{{ a.get('x') | length }}", "no3"),
        ("{% for x in a.none %}x{% else %}none{% endfor %}{% for x in 5 %}x{% endfor %}", "none"),
        ("{% for x in b.items() %}x{% endfor %}{{ b.keys() }}{{ b.get('a') }}", "[]"),
        ("{% for x in a.x if x %}{{ x }}{% endfor %}", "1true"),
        ("{% set x = a.x %}{{ x | first }}{{ 'yes' if x is defined and 1 in x and not b else 'no' }}", "1no"),
        ("{{ ['p', 'q'] | join(', ') }} {{ a | join }} {{ a.x | join('-') }}", "p, q xitems 1-null-true"),
        ("{{ a.x | map('tojson') | join(' ') }} {{ [1] | tojson }}", "1 null true [1]"),
        ("{{ ' x ' | trim | upper }}{{ a.x | upper }} {{ 'ONE two' | lower | title }} {{ 'x y' | capitalize }}",
         "X[1,NULL,TRUE] One Two X y"),
        ("{{ a.none | default('no') }}{{ a.none | d('no') }}{{ a.x | count }}", "nono3"),
        ("{% if a %}\n  {% if b %}\n  x\n  {% endif %}\n{% endif %}\n{# none #}\n<tools>", "  x\n<tools>"),
        ("{% raw %}{{ a }}{% endraw %}", "{{ a }}"),
    ],
)  # fmt: skip
def test_what_a_template_can_say(source: str, text: str) -> None:
    assert run(source, a={"x": [1, None, True], "items": {"y": "z"}}, b="text") == text


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("\n{% macro m() %}{{ m() }}{% endmacro %}", "line 2: `macro`"),
        ("{% include 'x' %}", "`include`"),
        ("{% extends 'x' %}", "`extends`"),
        ("{% import 'x' as x %}", "`import`"),
        ("{% block x %}{% endblock %}", "`block`"),
        ("{% set x %}{{ a }}{% endset %}", "`assignblock`"),
        ("{% filter upper %}{% endfilter %}", "`filterblock`"),
        ("{% for x in a recursive %}{{ loop(x) }}{% endfor %}", "a recursive loop"),
        ("{% for x in a %}{{ loop(x) }}{% endfor %}", "a call of anything but"),
        ("{{ range(9) }}", "a call of anything but"),
        ("{{ 'x'.format(a) }}", "a call of anything but"),
        ("{{ a.__class__() }}", "a call of anything but"),
        ("{{ a ~ b }}", "`concat`"),
        ("{{ a + b }}", "`+`"),
        ("{{ 'x' * 99999999999 }}", "`*`"),
        ("{{ 9 ** 9 ** 9 }}", "`**`"),
        ("{{ '%099999999d' % 1 }}", "`%`"),
        ("{{ [a, a] }}", "a list of anything but constants"),
        ("{{ {'a': a} }}", "`dict`"),
        ("{% set a.b = 1 %}", "`nsref`"),
        ("{{ a | random }}", "random"),
        ("{{ a | replace('', b) }}", "replace"),
        ("{{ a is odder }}", "odder"),
        ("{{ c }}", "no variable `c`; there are a, b"),
        ("{{ namespace }}", "no variable `namespace`"),
        ("{% if a %}", "line 1: "),
        ("{{ a b }}", "line 1: "),
        ("{{ " + "(" * 5000 + "a" + ")" * 5000 + " }}", "nested too deeply"),
        ("x" * (LONGEST_SOURCE + 1), "longer than"),
    ],
)
def test_what_it_cannot_say(source: str, words: str) -> None:
    assert words in refusal(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ a.__class__ }}",
        "{{ a['__class__']['__mro__'] }}",
        "{{ ''.__class__ }}",
        "{% for x in [1] %}{{ loop.__init__ }}{{ loop._iterator }}{{ loop.__class__.__mro__ }}{% endfor %}",
        "{{ b | map(attribute='__class__') | first }}",
    ],
)
def test_the_program_is_out_of_reach(source: str) -> None:
    assert "class" not in run(source, a={}, b=["x"])


NESTED = "{% for x in a %}" * 6 + "{% endfor %}" * 6
GROWING = "{% set x0 = a | tojson %}" + "".join(
    "{% set x" + str(at) + " = x" + str(at - 1) + " | tojson %}" for at in range(1, 60)
)
WIDE = "{% for x in a %}{% for y in a %}{{ b }}{% endfor %}{% endfor %}"
JOINED = "{{ a | join(b) }}"


@pytest.mark.parametrize("source", [NESTED, GROWING, WIDE, JOINED])
def test_no_template_runs_on(source: str) -> None:
    script = Script(source, NAMES)
    with pytest.raises(ValueError, match="than any model could read"):
        script.run({"a": ['"'] * 100, "b": "x" * (BUDGET // 90)})


def test_the_budget_is_that_of_one_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templating, "BUDGET", 3 * PASS + 3)
    script = Script("{% for x in a %}{{ x }}{% endfor %}", NAMES)
    for _ in range(2):
        assert script.run({"a": ["x"] * 3}) == "xxx"
    with pytest.raises(ValueError, match="any model"):
        script.run({"a": ["x"] * 4})


@pytest.mark.parametrize("source", ["{{ a < b }}", "{{ a | first }}", "{{ a | map('nothing') | join }}"])
def test_what_goes_wrong_is_said(source: str) -> None:
    script = Script(source, NAMES)
    with pytest.raises(ValueError, match=r"^\w+.*\w"):
        script.run({"a": 5, "b": "x"})


def test_a_values_own_code_points_mean_nothing() -> None:
    assert run("{{ a }}tools>{{ b }}", a="\ufdd0", b=["\ufdd0tools>"]) == '\ufffdtools>["\ufffdtools>"]'


def test_the_manual_names_every_filter() -> None:
    manual = (Path(__file__).parents[2] / "docs" / "prompt.md").read_text("utf-8")
    methods = {"items", "keys", "values", "get"}
    assert all(f"x.{name}(" in manual for name in methods)
    assert all(f"`{name}`" in manual for name in FILTERS.keys() - methods - {"count", "d"})


@given(risky_text, st.dictionaries(risky_text, risky_text | st.lists(risky_text, max_size=2), max_size=2))
def test_values_cannot_forge_markup(text: str, mapping: dict[str, Any]) -> None:
    source = "<tools>\n{{ a }}{{ a }} <{{ a }} {{ b }} {{ a | trim }} {{ b | join(' ') }} {{ b | tojson | upper }}"
    source += "{% for k, v in b.items() %}{{ k }} {{ v }} {% endfor %}\n</tools>"
    assert markup_in(run(source, a=text, b=mapping)) == ["<tools", "</tools"]

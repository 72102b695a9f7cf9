from __future__ import annotations

import pytest

from proxy.core import dialects
from proxy.core.parser import parse
from proxy.testing import DIALECTS, Call
from proxy.testing.renderings import WRITERS, writers
from tests.support.reading import tool

TOOLS = (tool("get_weather", city="string", days="integer"), tool("get_time"))
ROWS = {row.name: row for row in dialects.DIALECTS}


def test_there_is_a_writer_for_every_row_of_the_table() -> None:
    assert {*DIALECTS} == {*ROWS}
    with pytest.raises(ValueError, match=r"unknown dialect 'klingon'; there are: apertus"):
        writers("klingon")


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.dialect)
def test_every_writer_can_say_a_plain_call(writer: object) -> None:
    assert writer in WRITERS
    plain = [Call(TOOLS[0], {"city": "Oslo", "days": 3}), Call(TOOLS[1])]
    for each in WRITERS:
        if each is writer:
            assert all(map(each.way.says, plain))
            reply = parse(each.write(plain), TOOLS, dialect=each.dialect)
            assert [call.name for call in reply.calls] == ["get_weather", "get_time"]

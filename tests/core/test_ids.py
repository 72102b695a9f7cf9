from __future__ import annotations

import re

import pytest

from proxy.core.ids import new_id


@pytest.mark.parametrize("size", [1, 8, 12])
def test_an_id_has_its_length_whatever_it_begins_with(size: int) -> None:
    assert all(re.fullmatch(f"req_[0-9a-f]{{{2 * size}}}", new_id("req_", size)) for _ in range(600))


def test_no_two_are_alike() -> None:
    assert len({new_id("call_") for _ in range(1000)}) == 1000
